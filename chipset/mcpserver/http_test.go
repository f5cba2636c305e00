package mcpserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
)

func TestListenOnThisMachineAlone(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "example.com:80", "192.0.2.1:80", "127.0.0.1", "x", "127.0.0.1.example.com:80"} {
		if l, err := Listen(t.Context(), addr); !errors.Is(err, actor.ErrInvalid) {
			t.Errorf("%s: %v", addr, err)
			if l != nil {
				l.Close()
			}
		}
	}
}

// TestGuard: neither another name for this machine nor a page of another origin
// gets through.
func TestGuard(t *testing.T) {
	r := rigtest.New(t, "")
	server := New(t.Context(), Options{Open: func(context.Context) (*actor.Actor, error) {
		return &actor.Actor{Rig: r, ID: "polecat-alpha"}, nil
	}})
	l, err := Listen(t.Context(), "127.0.0.1:0")
	rigtest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l, "secret") }()
	url := "http://" + l.Addr().String() + Path
	for name, c := range map[string]struct {
		host, origin, token string
		want                int
	}{
		"as it should be":    {"", "", "secret", 200},
		"a page of here":     {"", "http://localhost:1234", "secret", 200},
		"another name":       {"evil.example:80", "", "secret", 403},
		"rebound":            {"evil.example", "http://evil.example", "secret", 403},
		"a name that begins": {"localhost.evil.example", "", "secret", 403},
		"another page":       {"", "https://evil.example", "secret", 403},
		"a page of a file":   {"", "null", "secret", 403},
		"a page of nothing":  {"", "file:///x", "secret", 403},
		"without the token":  {"", "", "", 401},
		"another token":      {"", "", "secret2", 401},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		rigtest.Must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if c.host != "" {
			req.Host = c.host
		}
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		res, err := http.DefaultClient.Do(req)
		rigtest.Must(t, err)
		res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%s: %d, expected %d", name, res.StatusCode, c.want)
		}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer("secret")}}, nil)
	rigtest.Must(t, err)
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hook_show"})
	if err != nil || res.IsError {
		t.Errorf("over HTTP: %v %v", res, err)
	}
	session.Close()
	cancel()
	rigtest.Must(t, <-served)
}

// TestSocket: this user alone can connect, with the token and under any name, and of two servers one listens.
func TestSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcp") // the path of a socket is short
	rigtest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	rigtest.Must(t, err)
	stale.SetUnlinkOnClose(false)
	rigtest.Must(t, stale.Close())

	l, err := ListenSocket(t.Context(), path)
	rigtest.Must(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	if _, err := ListenSocket(t.Context(), path); !errors.Is(err, state.ErrConflict) {
		t.Fatalf("a second server: %v", err) // the first one would never be called again
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	server := New(t.Context(), Options{})
	go func() { served <- server.Serve(ctx, l, "secret") }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	for token, want := range map[string]int{"secret": 200, "secret2": 401, "": 401} {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://chipset"+Path, strings.NewReader(body))
		rigtest.Must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(req)
		rigtest.Must(t, err)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("token %q: %d, expected %d", token, res.StatusCode, want)
		}
	}
	cancel()
	rigtest.Must(t, <-served)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
}

// bearer adds a token to every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// Who is refused holds no connection open, not even with a body that never comes.
func TestRefusedEndsTheConnection(t *testing.T) {
	server := New(t.Context(), Options{Open: func(context.Context) (*actor.Actor, error) { return nil, errors.New("not asked for") }})
	l, err := Listen(t.Context(), "127.0.0.1:0")
	rigtest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l, "secret") }()
	conn, err := net.Dial("tcp", l.Addr().String())
	rigtest.Must(t, err)
	defer conn.Close()
	rigtest.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, "POST "+Path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx")
	rigtest.Must(t, err)
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 401") {
		t.Errorf("%q, %v", answer, err)
	}
	cancel()
	rigtest.Must(t, <-served)
}
