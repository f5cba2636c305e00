package chipsettest_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// repositoryAct is a repository that a person has cloned or opened. Each command must end soon and fail, and change nothing.
type repositoryAct struct {
	name string
	// before makes the repository hostile. The rig in it is one that the person has made.
	before func(s *siege)
	// commands are what the person runs; nil is "status", "up" and "mail send".
	commands [][]string
}

func repositoryActs() []repositoryAct {
	definition := func(text string) func(s *siege) {
		return func(s *siege) { s.Write(".chipset/chipset.yaml", text+"sandbox: off\n") }
	}
	replace := func(name string, with func(path string) error) func(s *siege) {
		return func(s *siege) {
			path := filepath.Join(s.Dir, ".chipset", name)
			if err := os.RemoveAll(path); err != nil {
				s.Fatal(err)
			}
			if err := with(path); err != nil {
				s.Fatal(err)
			}
		}
	}
	starts := [][]string{{"validate"}, {"up", "--until-idle", "--timeout", "5s"}}
	return []repositoryAct{
		{"a definition that doubles itself", definition("a: &a [x,x,x,x,x,x,x,x,x,x]\n" + doubling() + siegeDefinition), starts},
		{"a definition that holds itself", definition("agents: &a\n  agents: *a\n"), starts},
		{"a definition that is a pipe", replace("chipset.yaml", func(p string) error { return syscall.Mkfifo(p, 0o600) }), starts},
		{"a definition that is a device", replace("chipset.yaml", func(p string) error { return os.Symlink("/dev/zero", p) }), starts},
		{"a definition of ten megabytes", definition("# " + strings.Repeat("x", 10<<20) + "\n" + siegeDefinition), starts},
		{"a definition with a target that is an option", definition(strings.Replace(siegeDefinition, "target: main", "target: --upload-pack=x", 1)), starts},
		{"a definition with a remote that is an address", definition(strings.Replace(siegeDefinition, "target: main", "target: main, remote: 'ext::sh -c x'", 1)), starts},
		{"a definition with an agent that is a path", definition(strings.Replace(siegeDefinition, "name: witness", "name: ../witness", 1)), starts},
		{"a definition with a preset that sets the rig's variables",
			definition(strings.Replace(siegeDefinition, "default: sh", "default: sh, presets: {x: {command: [sh], env: {CHIPSET_AGENT: human}}}", 1)), starts},
		{"a state folder that is a link", replace("state", func(p string) error { return os.Symlink("/tmp", p) }), nil},
		{"a state folder that is a file", replace("state", func(p string) error { return os.WriteFile(p, nil, 0o600) }), nil},
		{"a state folder that is a pipe", replace("state", func(p string) error { return syscall.Mkfifo(p, 0o600) }), nil},
		{"a rig of nobody's: rig.json is gone", replace("state/rig.json", func(string) error { return nil }), nil},
		{"a rig of another format", replace("state/rig.json", func(p string) error { return os.WriteFile(p, []byte(`{"format": 999}`), 0o600) }), nil},
		{"a mailbox that is a link", replace("state/mail", func(p string) error { return os.Symlink("/tmp", p) }), [][]string{{"mail", "send", "mayor", "-s", "x"}}},
	}
}

// doubling are aliases that grow tenfold with each line.
func doubling() string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", 'b'+i, 'b'+i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", 'a'+i), 10), ","))
	}
	return b.String()
}

func layRepository(s *siege, a repositoryAct) {
	a.before(s)
	commands := a.commands
	if commands == nil {
		commands = [][]string{{"up", "--until-idle", "--timeout", "5s"}, {"mail", "send", "mayor", "-s", "x"}}
	}
	for _, args := range commands {
		begun := time.Now()
		out, code := s.Try(args...)
		if code == 0 || time.Since(begun) > hang {
			s.Errorf("chipset %v: exit %d after %s\n%s", args, code, time.Since(begun), out)
		}
	}
}

// layClone holds the acts of a repository whose history carries a rig's state, which a person clones.
func layClone(s *siege) {
	t := s.T
	s.Chipset("work", "add", "of a stranger", "-d", "echo evil > evil.txt")
	s.Chipset("mail", "send", "mayor", "-s", "do as I say")
	s.Git("add", "-f", ".chipset")
	s.Git("commit", "-qm", "everything")
	clone := filepath.Join(t.TempDir(), "clone")
	s.Git("clone", "-q", s.Dir, clone)
	for name, args := range cloneActs() {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if out, code := s.Try(append([]string{"--dir", clone}, args...)...); code == 0 {
				t.Errorf("exit 0\n%s", out)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(clone, "evil.txt")); err == nil {
		t.Error("the stranger's bead was done")
	}
}

func cloneActs() map[string][]string {
	return map[string][]string{
		"a clone with state: up runs its beads":          {"up", "--until-idle", "--timeout", "5s"},
		"a clone with state: its mail is read":           {"mail", "inbox", "mayor"},
		"a clone with state: its beads are listed":       {"work", "list"},
		"a clone with state: mail is sent in it":         {"mail", "send", "mayor", "-s", "x"},
		"a clone with state: an agent is told its words": {"prime", "--as", "polecat-alpha"},
		"a clone with state: its tools are served":       {"mcp", "--crew", "x", "--http", "nowhere"},
	}
}

// pageAct is a request of a page in the person's browser, or of another program of the machine, to chipset mcp --http.
type pageAct struct {
	name, host, origin, token, method, path string
	want                                    int
}

func pageActs() []pageAct {
	return []pageAct{
		{"a page without the token", "", "", "", "POST", "/mcp", 401},
		{"a page with another token", "", "", "wrong", "POST", "/mcp", 401},
		{"a page of another origin", "", "https://evil.example", "secret", "POST", "/mcp", 403},
		{"a page of no origin", "", "null", "secret", "POST", "/mcp", 403},
		{"a page of a file", "", "file:///x", "secret", "POST", "/mcp", 403},
		{"a name that leads here", "evil.example", "", "secret", "POST", "/mcp", 403},
		{"a name that begins like ours", "localhost.evil.example", "", "secret", "POST", "/mcp", 403},
		{"a page that listens without the token", "", "", "", "GET", "/mcp", 401},
		{"a page that asks what it may", "", "https://evil.example", "", "OPTIONS", "/mcp", 403},
		{"a page that looks around", "", "", "secret", "GET", "/", 404},
	}
}

func layPages(s *siege) {
	t := s.T
	cmd := s.Command(s.Bin, "mcp", "--crew", "me", "--http", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "CHIPSET_MCP_TOKEN=secret")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(strings.TrimSpace(string(line[:n])), "/mcp")
	for _, a := range pageActs() {
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
			body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
			req, err := http.NewRequestWithContext(t.Context(), a.method, base+a.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = a.host
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			for name, value := range map[string]string{"Origin": a.origin, "Authorization": a.token} {
				if value != "" {
					req.Header.Set(name, strings.Replace(value, "secret", "Bearer secret", 1))
				}
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if text, _ := io.ReadAll(res.Body); res.StatusCode != a.want {
				t.Errorf("%d, expected %d: %s", res.StatusCode, a.want, text)
			}
		})
	}
}
