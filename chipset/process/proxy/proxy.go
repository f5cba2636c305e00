// Package proxy lets a command without a network of its own reach the hosts that it may, and no others.
//
//	command ──HTTP, CONNECT──▶ 127.0.0.1:61080 of its own network ──▶ supervisor's Proxy ──▶ host
//
// The listener belongs to the command's network, and the process that accepts its connections to the machine's. Names are
// resolved here, so a command needs no DNS, and each address is checked when it is connected to.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// headerTimeout is how long a client may take for the head of a request, dialTimeout how long a host may take to answer.
	headerTimeout, dialTimeout = 10 * time.Second, 30 * time.Second
	maxHeader                  = 64 << 10
	// maxConnections are open at once. More of them wait.
	maxConnections = 256
	// maxVisits is how many hosts are recorded.
	maxVisits = 100
)

// Visit counts the traffic with one host.
type Visit struct {
	// Host has a port where that is neither 80 nor 443.
	Host string `json:"host"`
	// Connections were made, Refused were not allowed.
	Connections int `json:"connections,omitempty"`
	Refused     int `json:"refused,omitempty"`
	// Sent and Received are in bytes.
	Sent     int64 `json:"sent,omitempty"`
	Received int64 `json:"received,omitempty"`
}

// Proxy answers one command.
type Proxy struct {
	rules Rules
	// slots holds one value for each open connection of the command.
	slots chan struct{}
	ctx   context.Context //nolint:containedctx // the life of the proxy, which ends all that it connects
	end   context.CancelFunc

	mu     sync.Mutex
	visits map[string]*traffic
	open   map[io.Closer]bool
}

type traffic struct {
	connections, refused, sent, received atomic.Int64
}

// New makes a proxy. It does nothing before Serve.
func New(rules Rules) *Proxy {
	ctx, end := context.WithCancel(context.Background())
	return &Proxy{rules: rules, slots: make(chan struct{}, maxConnections), ctx: ctx, end: end, visits: map[string]*traffic{}, open: map[io.Closer]bool{}}
}

// Serve answers the connections of a listener, until Close.
func (p *Proxy) Serve(l net.Listener) {
	silent := log.New(io.Discard, "", 0)
	transport := &http.Transport{DialContext: p.dial, DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: 10 * time.Minute, MaxResponseHeaderBytes: 1 << 20}
	forward := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: silent,
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.Host = r.Out.URL.Host },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { answer(w, err) }}
	server := &http.Server{ErrorLog: silent, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, IdleTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return p.ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				p.tunnel(w, r)
			case r.URL.Scheme != "http" || r.URL.Host == "":
				http.Error(w, "chipset: this is a proxy for HTTP", http.StatusBadRequest)
			default:
				forward.ServeHTTP(w, r)
			}
		})}
	p.keep(server)
	defer p.forget(server)
	_ = server.Serve(limited{l, p.slots}) // it ends with Close
}

// Relay passes the connections of a listener on to an address of this machine that the rules name.
func (p *Proxy) Relay(l net.Listener, address string) {
	p.keep(l)
	defer p.forget(l)
	for {
		conn, err := (limited{l, p.slots}).Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors
			continue
		}
		go func() {
			defer conn.Close()
			if host, err := p.dial(p.ctx, "tcp", address); err == nil {
				p.join(conn, host)
			}
		}()
	}
}

// Close ends the proxy and every connection.
func (p *Proxy) Close() {
	p.end()
	p.mu.Lock()
	open := p.open
	p.open = nil
	p.mu.Unlock()
	for c := range open {
		_ = c.Close()
	}
}

// Visits returns the traffic so far by host, refused hosts first.
func (p *Proxy) Visits() []Visit {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Visit
	for host, t := range p.visits {
		all = append(all, Visit{host, int(t.connections.Load()), int(t.refused.Load()), t.sent.Load(), t.received.Load()})
	}
	slices.SortFunc(all, func(a, b Visit) int {
		if (a.Refused > 0) != (b.Refused > 0) {
			return b.Refused - a.Refused
		}
		if a.Host < b.Host {
			return -1
		}
		return 1
	})
	return all
}

// RefusedError is returned for a host that the rules don't allow.
type RefusedError struct{ Host string }

func (e *RefusedError) Error() string {
	return "the rig's network rules refuse " + e.Host + " (network.allow in chipset.yaml)"
}

// dial connects to a host as the rules allow it.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port := split(address)
	shown := host
	if port != "80" && port != "443" {
		shown = net.JoinHostPort(host, port)
	}
	t := p.visit(shown)
	if !p.rules.host(host, port) {
		t.refused.Add(1)
		return nil, &RefusedError{shown}
	}
	refused := &RefusedError{}
	dialer := net.Dialer{Timeout: dialTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !p.rules.address(to.Addr()) {
			refused.Host = to.Addr().String()
			return refused
		}
		return nil
	}}
	conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(host, port))
	if errors.As(err, &refused) {
		t.refused.Add(1)
		return nil, fmt.Errorf("%s: %w", shown, refused)
	}
	if err != nil {
		return nil, err
	}
	t.connections.Add(1)
	return &counted{conn, t}, nil
}

// visit returns the counters of a host. Beyond maxVisits all share one.
func (p *Proxy) visit(host string) *traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.visits[host] == nil && len(p.visits) >= maxVisits {
		host = "others"
	}
	if p.visits[host] == nil {
		p.visits[host] = &traffic{}
	}
	return p.visits[host]
}

// tunnel connects the client with a host and passes bytes on.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	host, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		answer(w, err)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = host.Close()
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = host.Close()
		return
	}
	early := make([]byte, buffered.Reader.Buffered())
	if _, err := io.ReadFull(buffered, early); err == nil {
		_, _ = host.Write(early) // the copies fail if this does
	}
	p.join(client, host)
}

// answer tells a client what failed.
func answer(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		code = http.StatusForbidden
	}
	http.Error(w, "chipset: "+err.Error(), code)
}

// join passes bytes on both ways until both are done, and closes both.
func (p *Proxy) join(a, b net.Conn) {
	p.keep(a)
	p.keep(b)
	defer p.forget(a)
	defer p.forget(b)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, err := io.Copy(way[0], way[1])
			if half, can := way[0].(interface{ CloseWrite() error }); err == nil && can {
				_ = half.CloseWrite()
				return
			}
			_, _ = a.Close(), b.Close()
		})
	}
	both.Wait()
}

// keep has Close close something.
func (p *Proxy) keep(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		_ = c.Close()
		return
	}
	p.open[c] = true
}

func (p *Proxy) forget(c io.Closer) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.Close()
}

// counted is a connection to a host.
type counted struct {
	net.Conn
	traffic *traffic
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.traffic.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.traffic.sent.Add(int64(n))
	return n, err
}

// CloseWrite ends what is sent, and not what is received.
func (c *counted) CloseWrite() error {
	if half, can := c.Conn.(*net.TCPConn); can {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}

// limited is a listener that accepts no more connections than there are slots.
type limited struct {
	net.Listener
	slots chan struct{}
}

func (l limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotted{Conn: conn, free: func() { <-l.slots }}, nil
}

// slotted gives its slot back when it is closed.
type slotted struct {
	net.Conn
	once sync.Once
	free func()
}

func (c *slotted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.free)
	return err
}

// CloseWrite ends what is sent, and not what is received.
func (c *slotted) CloseWrite() error {
	if half, can := c.Conn.(*net.TCPConn); can {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}
