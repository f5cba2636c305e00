package main

import (
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
	outside := connect(chipset("mcp"))
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
	if text, failed := call(worker, "mail_inbox", nil); !failed || !strings.Contains(text, "can't speak as another agent") {
		t.Errorf("a worker posed as the person: %q", text)
	}
}
