package mcpserver

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
)

// applying are the scenarios of the conformance suite for what this server
// declares. The last four want something of a certain name, which the test adds by
// the very functions that add the server's own.
func applying() []string {
	return []string{"server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "resources-subscribe", "resources-unsubscribe",
		"prompts-list", "dns-rebinding-protection", "server-sse-multiple-streams",
		"tools-call-simple-text", "tools-call-error", "resources-read-text", "prompts-get-simple"}
}

// notApplying are the others, with what this server does not have.
func notApplying() map[string]string {
	const parts, asks = "results are text alone", "the server asks its client for nothing"
	return map[string]string{
		"tools-call-image": parts, "tools-call-audio": parts, "tools-call-embedded-resource": parts, "tools-call-mixed-content": parts,
		"resources-read-binary": parts, "prompts-get-embedded-resource": parts, "prompts-get-with-image": parts,
		"tools-call-sampling": asks, "tools-call-elicitation": asks, "elicitation-sep1034-defaults": asks, "elicitation-sep1330-enums": asks,
		"tools-call-with-logging": "no tool sends log messages", "tools-call-with-progress": "no tool tells of progress",
		"completion-complete": "completions are not declared", "resources-templates-read": "there are no templates",
		"prompts-get-with-args": "the prompt takes no arguments", "json-schema-2020-12": "schemas are flat",
		"server-sse-polling": "streams are not resumed, which the suite counts as a warning",
	}
}

// TestConformance plays the suite against the HTTP endpoint; `make e2e` installs it.
func TestConformance(t *testing.T) {
	bin := os.Getenv("MCP_CHECKERS") // not CHIPSET_…, which tests are kept apart from
	suite := filepath.Join(bin, "conformance")
	if _, err := os.Stat(suite); bin == "" || err != nil {
		t.Skip("MCP_CHECKERS names no folder with the conformance suite: make e2e installs it")
	}
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), suite, args...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	list, err := run("list", "--server")
	rigtest.Must(t, err)
	for _, found := range regexp.MustCompile(`(?m)^\s+- (\S+)`).FindAllStringSubmatch(list, -1) {
		if name := found[1]; !slices.Contains(applying(), name) && notApplying()[name] == "" {
			t.Errorf("%s is a scenario that nobody has looked at", name)
		}
	}
	url := serveFixtures(t)
	for _, scenario := range applying() {
		t.Run(scenario, func(t *testing.T) {
			if out, err := run("server", "--url", url, "--scenario", scenario); err != nil || !strings.Contains(out, "0 failed, 0 warnings") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// serveFixtures serves a rig with what the suite wants to find, and returns where.
func serveFixtures(t *testing.T) string {
	t.Helper()
	r := rigtest.New(t, "")
	s := New(t.Context(), Options{Version: "test", Open: func(context.Context) (*actor.Actor, error) {
		return &actor.Actor{Rig: r, ID: "polecat-alpha"}, nil
	}})
	text := func(context.Context, *actor.Actor) (quote.Text, error) { return "text for the suite", nil }
	add(s, tool{name: "test_simple_text", description: "text", effect: reads}, func(ctx context.Context, me *actor.Actor, _ none) (quote.Text, error) { return text(ctx, me) })
	add(s, tool{name: "test_error_handling", description: "an error", effect: reads}, func(context.Context, *actor.Actor, none) (quote.Text, error) {
		return "", errors.New("it always fails")
	})
	s.resource(&mcp.Resource{URI: "test://static-text", Name: "text", MIMEType: "text/plain"}, text)
	s.prompt(&mcp.Prompt{Name: "test_simple_prompt", Description: "text"}, "text", text)
	l, err := Listen(t.Context(), "127.0.0.1:0")
	rigtest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, "") }()
	t.Cleanup(func() {
		cancel()
		rigtest.Must(t, <-served)
	})
	return "http://" + l.Addr().String() + Path
}
