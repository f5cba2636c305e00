package chipsettest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

// toolError is the inspector's exit code for a tool that answers with an error.
const toolError = 5

// TestInspector drives the real binary with the off-the-shelf inspector, over
// standard input and output and over HTTP; `make e2e` installs it.
func TestInspector(t *testing.T) {
	bin := os.Getenv("MCP_CHECKERS") // not CHIPSET_…, which tests are kept apart from
	program := filepath.Join(bin, "mcp-inspector")
	if _, err := os.Stat(program); bin == "" || err != nil {
		t.Skip("MCP_CHECKERS names no folder with the inspector: make e2e installs it")
	}
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 1, Test: "true",
		Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}})
	for name, target := range map[string][]string{
		"stdio": {w.Bin, "mcp", "--as", "polecat-alpha"},
		"http":  {serveHTTP(t, w), "--header", "Authorization: Bearer " + inspectorToken},
	} {
		t.Run(name, func(t *testing.T) {
			in := inspector{t: t, World: w, program: program, target: target}
			in.shows(0, []string{"mail_send", "hook_show", "done"}, "tools/list", "--strict")
			in.shows(0, []string{"sent to human"}, "tools/call", "--tool-name", "mail_send", "--tool-arg", "to=human", "subject="+name, "body=hello")
			in.shows(toolError, []string{"isError", "nobody-here", "Next:"},
				"tools/call", "--tool-name", "mail_send", "--tool-arg", "to=nobody-here", "subject=x", "body=y")
			in.shows(0, []string{"chipset://inbox", "chipset://hook", "chipset://assignment"}, "resources/list")
			in.shows(0, []string{"polecat-alpha"}, "resources/read", "--uri", "chipset://hook")
			in.shows(1, []string{"not found"}, "resources/read", "--uri", "chipset://nothing")
			in.shows(0, []string{`"prime"`}, "prompts/list")
			in.shows(0, []string{"You are polecat-alpha"}, "prompts/get", "--prompt-name", "prime")
			if got := w.Chipset("mail", "inbox"); !strings.Contains(got, name) {
				t.Errorf("the mail did not arrive:\n%s", got)
			}
		})
	}
}

// inspector runs `mcp-inspector --cli` against one server.
type inspector struct {
	*chipsettest.World
	t       *testing.T
	program string
	target  []string
}

// shows asks by one method, and wants an exit code and texts: of a result that is
// JSON, or of a failure.
func (in *inspector) shows(code int, want []string, method string, args ...string) {
	in.t.Helper()
	var out, errs bytes.Buffer
	cmd := in.Command(in.program, append(append([]string{"--cli"}, in.target...), append([]string{"--method", method}, args...)...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		in.t.Fatal(err)
	}
	got := cmd.ProcessState.ExitCode()
	if got != code || got == 0 && !json.Valid(out.Bytes()) {
		in.t.Errorf("%s %v: exit %d, expected %d\n%s%s", method, args, got, code, out.String(), errs.String())
	}
	for _, text := range want {
		if all := out.String() + errs.String(); !strings.Contains(all, text) {
			in.t.Errorf("%s %v does not say %q:\n%s", method, args, text, all)
		}
	}
}

// inspectorToken is what the inspector bears.
const inspectorToken = "inspector"

// serveHTTP starts the binary's HTTP endpoint, and returns its address.
func serveHTTP(t *testing.T, w *chipsettest.World) string {
	t.Helper()
	cmd := w.Command(w.Bin, "mcp", "--as", "polecat-alpha", "--http", "127.0.0.1:0")
	cmd.Env = append(cmd.Environ(), "CHIPSET_MCP_TOKEN="+inspectorToken)
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
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}
