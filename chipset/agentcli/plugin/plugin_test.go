package plugin

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/session"
)

// binary is a path that a careless template would break.
const binary = `/opt/the tools/it's "chipset"`

func write(t *testing.T, kind session.Kind) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plugin")
	names, err := Write(kind, dir, binary, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(data) {
			t.Errorf("%s is no JSON:\n%s", name, data)
		}
		if strings.Contains(string(data), "{{.") {
			t.Errorf("%s was not filled in:\n%s", name, data)
		}
	}
	return dir
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

type hooksFile struct {
	Hooks map[string][]struct {
		Matcher string
		Hooks   []struct{ Type, Command string }
	}
}

// Every hook that is configured is one that is answered, and its command line
// survives a shell.
func TestHooksCallThisBinary(t *testing.T) {
	for kind, file := range map[session.Kind]string{session.Claude: "chipset/hooks/hooks.json", session.Codex: "hooks.json", session.Gemini: "hooks/hooks.json"} {
		var h hooksFile
		read(t, filepath.Join(write(t, kind), file), &h)
		if len(h.Hooks) < 5 {
			t.Errorf("%s: %d events", kind, len(h.Hooks))
		}
		for name, entries := range h.Hooks {
			if _, known := session.Canonical(kind, name); !known {
				t.Errorf("%s: nobody answers %s", kind, name)
			}
			out, err := exec.Command("sh", "-c", `for word in `+entries[0].Hooks[0].Command+`; do printf '%s\n' "$word"; done`).Output()
			if want := binary + "\nclient-hook\n" + string(kind) + "\n" + name + "\n"; err != nil || string(out) != want {
				t.Errorf("%s %s: the shell sees %q, %v", kind, name, out, err)
			}
		}
	}
}

func TestClaudeHasEverything(t *testing.T) {
	dir := write(t, session.Claude)
	var market struct {
		Name    string
		Plugins []struct{ Name, Source string }
	}
	read(t, filepath.Join(dir, ".claude-plugin/marketplace.json"), &market)
	if len(market.Plugins) != 1 || market.Plugins[0].Name != "chipset" {
		t.Fatalf("%+v", market)
	}
	root := filepath.Join(dir, market.Plugins[0].Source)
	for _, name := range []string{".claude-plugin/plugin.json", ".mcp.json", "README.md", "LICENSE", "hooks/hooks.json",
		"commands/status.md", "commands/mail.md", "commands/sling.md", "commands/why.md", "agents/bead-worker.md", "skills/chipset/SKILL.md"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	var h hooksFile
	read(t, filepath.Join(root, "hooks/hooks.json"), &h)
	for _, e := range session.Events() {
		if len(h.Hooks[string(e)]) == 0 {
			t.Errorf("no hook for %s", e)
		}
	}
	skill, err := os.ReadFile(filepath.Join(root, "skills/chipset/SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir(filepath.Join(root, "skills/chipset/references"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !strings.Contains(string(skill), "references/"+page.Name()) {
			t.Errorf("the skill does not lead to %s", page.Name())
		}
	}
}

func TestWriteReplacesItsOwnAlone(t *testing.T) {
	dir := write(t, session.Claude)
	if _, err := Write(session.Claude, dir, "/usr/bin/chipset", "2"); err != nil {
		t.Errorf("again: %v", err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "precious"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(session.Claude, foreign, binary, "1"); !errors.Is(err, ErrForeign) {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if entries, _ := os.ReadDir(foreign); len(entries) != 1 {
		t.Errorf("it holds %v now", entries)
	}
}
