package agentcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state/fault"
)

// TestReady: a client that can't start is told apart by its program, its help and its account, and what can't be found
// out is no fault.
func TestReady(t *testing.T) {
	const good = `case "$1" in --version) echo 1.2.3;; --help) echo "--help --json --edit";; status) echo "logged in: $WHO";; esac`
	for _, tt := range []struct {
		name, script string
		change       func(c *Client, p *Preset)
		environ      string
		want         fault.Kind
		reason       string
	}{
		{name: "ready", script: good},
		{name: "not installed", want: fault.ClientMissing, reason: "agent"},
		{name: "option unknown", script: strings.Replace(good, " --json ", " --json-schema ", 1), want: fault.FlagsRefused, reason: "has no option --json"},
		{name: "permission unknown", script: strings.Replace(good, " --edit", "", 1), want: fault.FlagsRefused, reason: "has no option --edit"},
		{name: "no help", script: strings.Replace(good, "--help --json --edit", "what?", 1)},
		{name: "help fails", script: "exit 3"},
		{name: "a wrapper", script: good, change: func(c *Client, p *Preset) { c.Preset.Command = []string{"other"} }},
		{name: "logged out", script: good + "; echo nobody", want: fault.NotLoggedIn, reason: "agent login, or a key in $AGENT_KEY"},
		{name: "a key", script: good + "; echo nobody", environ: "AGENT_KEY=x"},
		{name: "a key of the preset", script: good + "; echo nobody", change: func(_ *Client, p *Preset) { p.Env = map[string]string{"AGENT_KEY": "x"} }},
		{name: "other means", script: good + "; echo nobody", change: func(c *Client, _ *Preset) {
			c.Account.Other = func(settings string) bool { return settings == "/home/me/.agent" }
		}},
		{name: "hangs", script: "sleep 60"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.script != "" {
				if err := os.WriteFile(filepath.Join(dir, "agent"), []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			p := Preset{Name: "agent", Command: []string{"agent", "--json"}, Prompt: PromptStdin, Permissions: map[string][]string{PermissionEdit: {"--edit", "x"}}}
			c := Client{Preset: p, Help: []string{"--help"}, Home: Home{Own: []string{".agent"}},
				Account: &Account{Keys: []string{"AGENT_KEY"}, Status: []string{"status"}, LoggedOut: "nobody", Login: "agent login"}}
			if tt.change != nil {
				tt.change(&c, &p)
			}
			deadline := 30 * time.Second
			if tt.name == "hangs" {
				deadline = 100 * time.Millisecond
			}
			got := Ready(t.Context(), &c, p, Surroundings{Home: "/home/me", Environ: append(os.Environ(), tt.environ), Permission: PermissionEdit}, deadline)
			if got.Fault.Kind != tt.want || !strings.Contains(got.Fault.Reason, tt.reason) || (got.Mend == "") != got.Fault.IsZero() {
				t.Errorf("%+v", got)
			}
			if tt.name == "ready" && got.Version != "1.2.3" {
				t.Errorf("version %q", got.Version)
			}
		})
	}
}
