package mcpserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state"
)

// Path is the path of the HTTP endpoint.
const Path = "/mcp"

const (
	// idleSession is how long a session is kept without a request.
	idleSession = time.Hour
	// farewell is how long open requests may take when the server ends.
	farewell = 2 * time.Second
)

// Listen opens a port for HTTP on this machine alone; port 0 takes a free one.
// Errors: actor.ErrInvalid for an address that others could reach.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, actor.Invalidf("%q is not an address such as 127.0.0.1:7777", addr)
	}
	if !loopback(host) {
		return nil, actor.WithHint(actor.Invalidf("%q is not this machine's own address", host),
			"whoever reaches the port speaks as you: only 127.0.0.1, ::1 and localhost are allowed")
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
}

// ListenSocket opens a Unix socket for HTTP that this user alone can connect to (0600). path lies in a private folder.
// A socket that a dead process left there is replaced; the end of the listener removes it. Errors: state.ErrConflict
// when another server listens on it.
func ListenSocket(ctx context.Context, path string) (net.Listener, error) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer folder.Close() // with the lock: of two servers that start at once one listens
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		return nil, &os.PathError{Op: "lock", Path: folder.Name(), Err: err}
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return nil, state.Conflictf(path, "another server listens there")
	case errors.Is(err, unix.ECONNREFUSED):
		_ = os.Remove(path) //nolint:forbidigo // a socket is not state; Listen reports a failure
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Serve answers HTTP clients until ctx ends. token is the bearer token that they must send, or "" for none.
func (s *Server) Serve(ctx context.Context, l net.Listener, token string) error {
	srv := &http.Server{Handler: s.Handler(token), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	done := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		if srv.Shutdown(ending) != nil {
			_ = srv.Close() // streams have no end of their own
		}
	})
	defer done()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Handler is the endpoint. It refuses web pages of other origins and foreign host
// names: a page in a person's browser must not speak as their agent.
func (s *Server) Handler(token string) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.inner },
		&mcp.StreamableHTTPOptions{SessionTimeout: idleSession})
	mux := http.NewServeMux()
	mux.Handle(Path, guard(token, inner))
	return mux
}

func guard(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case !bySocket(r) && !ownHost(r.Host):
			refuse(w, "this server has no such name", http.StatusForbidden)
		case !ownOrigin(r.Header.Get("Origin")):
			refuse(w, "not for web pages of another origin", http.StatusForbidden)
		case token != "" && subtle.ConstantTimeCompare([]byte(bearer), []byte(token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, "a bearer token is wanted", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers, and ends the connection without waiting long for the rest of the request: who may not enter holds nothing open.
func refuse(w http.ResponseWriter, why string, code int) {
	w.Header().Set("Connection", "close")
	soon := time.Now().Add(time.Second)                     //nolint:forbidigo // the deadline of a connection
	_ = http.NewResponseController(w).SetReadDeadline(soon) // a recorder of a test has none
	http.Error(w, why, code)
}

// bySocket reports whether a request came over a Unix socket, which no web page can reach.
func bySocket(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return local != nil && local.Network() == "unix"
}

// ownHost reports whether a Host header is a loopback name or address.
func ownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return loopback(name)
}

// ownOrigin reports whether an Origin header is missing or names a page of this machine.
func ownOrigin(origin string) bool {
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && loopback(u.Hostname())
}
