package agentcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDetect: what is installed is found, what hangs is given up, what fails says so.
func TestDetect(t *testing.T) {
	dir := t.TempDir()
	alive := filepath.Join(dir, "pid")
	for name, script := range map[string]string{
		"claude": "echo '2.1.329 (Claude Code)'",
		"codex":  "echo 'WARNING: something at /a/1.2' >&2; echo codex-cli v0.169.0",
		"gemini": "echo $$ > " + alive + "; sleep 1000 & sleep 1000",
		"aider":  "echo broken installation; exit 3",
		"goose":  "head -c 1000000 /dev/zero | tr '\\0' x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	named := func(names ...string) (list []Client) {
		for _, name := range names {
			list = append(list, Client{Preset: Preset{Name: name, Command: []string{name, "-x"}}})
		}
		return list
	}
	shell := Client{Preset: Preset{Name: "sh", Command: []string{"sh"}, Prompt: PromptScript}}
	found := map[string]Found{}
	for _, f := range append(Detect(t.Context(), append(named("claude", "codex", "aider", "goose", "amp"), shell), time.Minute), Detect(t.Context(), named("gemini"), 100*time.Millisecond)...) {
		found[f.Name] = f
	}
	for name, want := range map[string]Found{
		"claude": {Version: "2.1.329"},
		"codex":  {Version: "0.169.0"},
		"gemini": {Problem: "no answer within 100ms"},
		"aider":  {Problem: "--version: exit status 3"},
	} {
		got := found[name]
		if got.Path != filepath.Join(dir, name) || got.Version != want.Version || got.Problem != want.Problem {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := found["goose"]; len(got.Version) > 2*maxSaid || got.Version == "" {
		t.Errorf("goose: a version of %d bytes", len(got.Version))
	}
	if got := found["sh"]; got.Path == "" || got.Problem != "" {
		t.Errorf("sh: %+v", got)
	}
	if got := found["amp"]; got.Path != "" {
		t.Skipf("amp is installed here: %+v", got)
	}
	if pid, err := os.ReadFile(alive); err == nil {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
			t.Error("the program that hung runs on")
		}
	}
}
