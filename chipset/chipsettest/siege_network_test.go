package chipsettest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// connect is a script that succeeds when a connection is made, see TestReach.
func connect(to string) string {
	return `REACH="` + to + `" "$HELPER" -test.run='^TestReach$'`
}

// networkActs are those of a worker that wants to reach what network.allow does not name. In the rig that they are done to it
// names localhost:$ALLOWED. The machine has a server at $ALLOWED and one at $CLOSED, which also listens at the address $MACHINE.
func networkActs() []speechAct {
	acts := []speechAct{
		{name: "it reaches what is allowed", script: connect("get:http://localhost:$ALLOWED/")},
		{name: "it reaches what is allowed by the proxy", script: connect("proxied:http://localhost:$ALLOWED/")},
		{name: "it reaches servers of its own", script: connect("own:127.0.0.1:0") + " && " + connect("own:[::1]:0")},
	}
	for _, act := range [][2]string{
		{"it goes past the proxy to the machine's loopback", "tcp:127.0.0.1:$CLOSED"},
		{"it goes past the proxy by IPv6", "tcp:[::1]:$CLOSED"},
		{"it goes past the proxy to an address", "tcp:$MACHINE"},
		{"it sends UDP", "udp:$MACHINE"},
		{"it asks a name server", "udp:1.1.1.1:53"},
		{"it asks the name server of the machine", "lookup:localhost.siege.example.org"},
		{"it asks for the metadata of a cloud", "tunnel:169.254.169.254:80"},
		{"it tunnels to the machine's loopback", "tunnel:127.0.0.1:$CLOSED"},
		{"it tunnels to localhost", "tunnel:localhost:$CLOSED"},
		{"it tunnels to localhost with a dot", "tunnel:localhost.:$CLOSED"},
		{"it tunnels to an IPv4 address in IPv6", "tunnel:[::ffff:127.0.0.1]:$CLOSED"},
		{"it tunnels to all addresses", "tunnel:0.0.0.0:$CLOSED"},
		{"it tunnels to an address as a number", "tunnel:2130706433:$CLOSED"},
		{"it tunnels to the machine", "tunnel:$MACHINE"},
		{"it tunnels to a host that nobody named", "tunnel:example.org:443"},
		{"it tunnels to a port that nobody named", "tunnel:localhost:22"},
		{"it asks the proxy for the machine's loopback", "proxied:http://127.0.0.1:$CLOSED/"},
		{"it names an allowed host and asks for another", "raw:GET http://127.0.0.1:$CLOSED/ HTTP/1.1|Host: localhost:$ALLOWED"},
		{"it hides a host in a user's name", "proxied:http://localhost:$ALLOWED@127.0.0.1:$CLOSED/"},
		{"it is redirected to another host", "proxied:http://localhost:$ALLOWED/redirect"},
		{"it sends a head without an end", "raw:GET http://localhost:$ALLOWED/ HTTP/1.1|Host: localhost:$ALLOWED|X: $(head -c 300000 /dev/zero | tr '\\0' x)"},
		{"it asks the proxy for a file", "raw:GET file:///etc/passwd HTTP/1.1|Host: localhost:$ALLOWED"},
		{"it talks to the proxy as to a server", "raw:GET / HTTP/1.1|Host: localhost:$ALLOWED"},
	} {
		acts = append(acts, speechAct{name: act[0], script: connect(act[1]), fails: true})
	}
	return append(acts,
		speechAct{name: "it opens a raw socket", script: connect("ip4:icmp:127.0.0.1"), fails: true},
		speechAct{name: "it joins the network of its supervisor", script: `nsenter --net="/proc/$SUPERVISOR/ns/net" true`, fails: true})
}

// layNetwork has one worker try what a network of its own stops.
func layNetwork(t *testing.T, bin string) {
	if err := sandbox.NetworkMissing(); err != nil {
		t.Skip(err)
	}
	closed, machine := listenAnywhere(t)
	allowed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://127.0.0.1:"+closed+"/", http.StatusFound)
		}
	}))
	t.Cleanup(allowed.Close)
	_, port, err := net.SplitHostPort(allowed.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &siege{T: t, box: "auto"}
	s.World = chipsettest.New(t, bin, chipsettest.Options{Definition: s.definition("network: {allow: [\"localhost:"+port+"\"]}", "allow: {env: [ALLOWED, CLOSED, MACHINE]}"),
		Env: []string{"ALLOWED=" + port, "CLOSED=" + closed, "MACHINE=" + machine}})
	s.doActs(networkActs())
	for _, host := range []string{"example.org", "169.254.169.254", "localhost:" + closed} {
		if inbox := s.Chipset("inbox"); strings.Count(inbox, "wanted to connect to "+host+"\n") != 1 {
			t.Errorf("the person is not told once of %s:\n%s", host, inbox)
		}
	}
}

// listenAnywhere opens a server on every address of the machine, and returns its port and an address of it beyond loopback.
func listenAnywhere(t *testing.T) (port, machine string) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	machine = "127.0.0.1:" + port
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			machine = net.JoinHostPort(prefix.Addr().String(), port)
		}
	}
	conn, err := net.DialTimeout("tcp", machine, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close() // so a worker that can't connect is refused by the sandbox
	return port, machine
}

// TestReach is what a worker of the siege runs to connect to something, so that the machine needs no tools for it.
func TestReach(t *testing.T) {
	way, to, _ := strings.Cut(os.Getenv("REACH"), ":")
	if way == "" {
		t.Skip("workers of the siege run it")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := reach(ctx, way, to); err != nil {
		t.Fatal(err)
	}
}

func reach(ctx context.Context, way, to string) error {
	switch way {
	case "own":
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", to)
		if err != nil {
			return err
		}
		defer l.Close()
		return reach(ctx, "tcp", l.Addr().String())
	case "swap":
		return swap(to)
	case "get", "proxied":
		return get(ctx, to, way == "proxied")
	case "tunnel":
		return ask(ctx, "CONNECT "+to+" HTTP/1.1|Host: "+to)
	case "raw":
		return ask(ctx, to)
	case "lookup":
		resolver := net.Resolver{PreferGo: true}
		_, err := resolver.LookupHost(ctx, to)
		return err
	}
	if way == "ip4" {
		way, to = "ip4:icmp", strings.TrimPrefix(to, "icmp:")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, way, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("x"))
	return err
}

// swap connects to a socket of its own again and again, while another thread puts another name in the place of that one's.
func swap(to string) error {
	own := "own.sock"
	l, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	defer l.Close()
	var address syscall.RawSockaddrUnix
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			for _, name := range []string{own, to} {
				select {
				case <-done:
					return
				default:
				}
				name += "\x00"
				for i := range name {
					address.Path[i] = int8(name[i])
				}
			}
		}
	}()
	address.Family = syscall.AF_UNIX
	for range 500 {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err == nil {
			err = syscall.SetNonblock(fd, true)
		}
		if err != nil {
			return err
		}
		_, _, errno := syscall.Syscall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address)), uintptr(len(to)+3))
		peer, err := syscall.Getpeername(fd)
		syscall.Close(fd)
		if at, is := peer.(*syscall.SockaddrUnix); errno == 0 && err == nil && is && at.Name == to {
			return nil
		}
	}
	return errors.New("it was never reached")
}

// get asks for a page as the variables say, or by the proxy in any case.
func get(ctx context.Context, address string, proxied bool) error {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if proxied {
		transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(os.Getenv("HTTP_PROXY")) }
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusBadGateway {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	return nil
}

// ask says lines to the proxy, and wants an answer of success or of a server behind it.
func ask(ctx context.Context, lines string) error {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", proxy.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, strings.ReplaceAll(lines, "|", "\r\n")+"\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusNotFound {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
	return fmt.Errorf("%s: %s", answer.Status, text)
}

// landlockVersion is that of the kernel, 0 for none.
func landlockVersion() int {
	kind, _ := sandbox.Kind()
	version := 0
	if _, err := fmt.Sscanf(kind, "landlock %d", &version); err != nil {
		return 0
	}
	return version
}
