package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
)

// TestMCPOverStandardIO drives the real binary as a client does.
func TestMCPOverStandardIO(t *testing.T) {
	defer gittest.Isolate()()
	dir := gittest.Repo(t)
	chipset := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "chipset", args...)
		cmd.Dir = dir
		return cmd
	}
	connect := func(cmd *exec.Cmd) *mcp.ClientSession {
		t.Helper()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	call := func(s *mcp.ClientSession, tool string, args map[string]any) (string, bool) {
		t.Helper()
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[0].(*mcp.TextContent).Text, res.IsError
	}
	outside := connect(chipset("mcp", "--crew", "me"))
	if text, failed := call(outside, "status", nil); !failed || !strings.Contains(text, "chipset init") {
		t.Errorf("outside of a rig: %q", text)
	}
	if out, err := chipset("init", "--worker", "sh", "--test", "true").CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	if text, failed := call(outside, "status", nil); failed {
		t.Errorf("after init: %q", text)
	}
	if err := outside.Close(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
	alpha := connect(chipset("mcp", "--as", "polecat-alpha"))
	defer alpha.Close()
	text, _ := call(alpha, "mail_send", map[string]any{"to": "mayor", "subject": "hello", "body": "there"})
	name := text[strings.LastIndex(text, " ")+1:]
	out, err := chipset("mail", "peek", filepath.Join("mayor", name), "--json").Output()
	if err != nil || !strings.Contains(string(out), `"from": "polecat-alpha"`) {
		t.Errorf("stored %s, %v", out, err)
	}
	// A worker is its agent, whatever the flag says.
	posing := chipset("mcp", "--as", "human")
	posing.Env = append(posing.Environ(), "CHIPSET_AGENT=polecat-alpha", "CHIPSET_SESSION=ses-1")
	worker := connect(posing)
	defer worker.Close()
	if text, failed := call(worker, "mail_inbox", nil); !failed || !strings.Contains(text, "a worker's session can speak only as") {
		t.Errorf("a worker posed as the person: %q", text)
	}
}

// TestMCPOverHTTPAsksForAToken: whoever connects must bear the token, and nobody speaks as the person.
func TestMCPOverHTTPAsksForAToken(t *testing.T) {
	defer gittest.Isolate()()
	dir := gittest.Repo(t)
	chipset := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "chipset", args...)
		cmd.Dir = dir
		return cmd
	}
	if out, err := chipset("init", "--worker", "sh", "--test", "true").CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	serve := func(args ...string) (url, token string) {
		t.Helper()
		cmd := chipset(append([]string{"mcp", "--http", "127.0.0.1:0"}, args...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
		})
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if made, found := strings.CutPrefix(lines.Text(), "token "); found {
				return url, made
			}
			url = lines.Text()
		}
		t.Fatal("no token is printed")
		return "", ""
	}
	url, token := serve("--as", "polecat-alpha")
	transport := func(url, token string) *mcp.StreamableClientTransport {
		return &mcp.StreamableClientTransport{Endpoint: url, MaxRetries: -1,
			HTTPClient: &http.Client{Transport: bearer(token)}}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "t"}, nil)
	for _, wrong := range []string{"", "x" + token} {
		if _, err := client.Connect(t.Context(), transport(url, wrong), nil); err == nil {
			t.Errorf("a client with the token %q is served", wrong)
		}
	}
	session, err := client.Connect(t.Context(), transport(url, token), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mail_send", Arguments: map[string]any{"to": "mayor", "subject": "s", "body": "b"}})
	if err != nil || res.IsError {
		t.Errorf("%+v, %v", res, err)
	}
	url, token = serve()
	if session, err = client.Connect(t.Context(), transport(url, token), nil); err != nil {
		t.Fatal(err)
	}
	res, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "status"})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "nobody speaks as the person") {
		t.Errorf("as the person: %+v, %v", res, err)
	}
}

// TestMCPOnASocket: --http without an address takes the same private socket at every start.
func TestMCPOnASocket(t *testing.T) {
	dir := t.TempDir()
	serve := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "chipset", append([]string{"mcp", "--crew", "me", "--json"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "XDG_RUNTIME_DIR=", "TMPDIR="+os.TempDir())
		return cmd
	}
	first := serve("--http")
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Process.Kill() })
	var at struct{ URL, Socket, Token string }
	if err := json.NewDecoder(out).Decode(&at); err != nil || at.Socket == "" || at.Token == "" {
		t.Fatalf("%+v, %v", at, err)
	}
	if text, err := serve("--http").CombinedOutput(); err == nil || !strings.Contains(string(text), at.Socket) {
		t.Errorf("a second server: %v\n%s", err, text)
	}
	if err := first.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // by the signal
	if _, err := os.Lstat(at.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	for _, wrong := range [][]string{{"127.0.0.1:0"}, {"--http=127.0.0.1:0", "127.0.0.1:0"}} {
		if text, err := serve(wrong...).CombinedOutput(); err == nil || !strings.Contains(string(text), "takes no arguments") {
			t.Errorf("%v: %v\n%s", wrong, err, text)
		}
	}
}

// bearer sends a token with each request, or nothing for "".
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}
