package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestStand: a client sees all of its folder and makes files in it. What it is configured by stays as it is, what its
// conversations and its login are does not.
func TestStand(t *testing.T) {
	if kind, missing := sandbox.Kind(); missing != "" {
		t.Skipf("this machine has only %q: %s", kind, missing)
	}
	tests := []struct{ client, folder, config, conversation, login string }{
		{"claude", `"$CLAUDE_CONFIG_DIR"`, ".claude/settings.json", ".claude/projects/one", ".claude/.credentials.json"},
		{"codex", `"$CODEX_HOME"`, ".codex/config.toml", ".codex/sessions/one", ".codex/auth.json"},
		{"gemini", `"$GEMINI_CLI_HOME/.gemini"`, ".gemini/settings.json", ".gemini/tmp/one", ".gemini/oauth_creds.json"},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			for _, name := range []string{tt.config, tt.conversation, tt.login, ".claude.json", ".profile"} {
				gittest.Write(t, home, name, "old\n")
			}
			k := newKennel(t, "sandbox: require\n")
			k.rig.Def.Worker.Presets = definition.WorkerPresets{{Name: "actor", Command: definition.Command{Argv: []string{"sh", "-e"}}, Prompt: "script", Client: tt.client}}
			k.rig.Def.Worker.Default, k.rig.Def.Allow.Write = "actor", nil
			base := func(name string) string { return strings.SplitN(name, "/", 2)[1] }
			rec := k.sling(`echo work > work.txt; cd ` + tt.folder + `; cat ` + base(tt.config) + ` ` + base(tt.conversation) + `
echo new > new.tmp; mv new.tmp made
echo new > ` + base(tt.conversation) + `; echo new > ` + base(tt.login) + `
if echo new > ` + base(tt.config) + `; then exit 3; fi
if echo new >> "$HOME/.profile"; then exit 4; fi
ln -s "$HOME" trap`)
			k.until("it is through", k.retired(rec.AssignmentID))
			if got := k.record(rec.AssignmentID); got.Outcome != retire.Done {
				t.Fatalf("%s: %s", got.Outcome, got.Reason)
			}
			for name, want := range map[string]string{tt.config: "old\n", tt.conversation: "new\n", tt.login: "new\n", ".claude.json": "old\n"} {
				if got, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(k.rig.Tree.Abs(standDir), "*")); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestStandFollowsNoLink: when a session goes on, what its worker has made of the folder leads nowhere else.
func TestStandFollowsNoLink(t *testing.T) {
	home, outside := t.TempDir(), t.TempDir()
	gittest.Write(t, home, ".claude/settings.json", "{}")
	client := clients.Named("claude")
	c := confined{home: home, lookup: func(string) string { return "" }, client: &client, stand: filepath.Join(t.TempDir(), "ses-1")}
	if _, err := c.makeStand(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.makeStand(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	made := filepath.Join(c.stand, ".claude")
	if err := os.RemoveAll(made); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, made); err != nil {
		t.Fatal(err)
	}
	if _, err := c.makeStand(); err == nil {
		t.Error("a link in the place of the folder is followed")
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("made outside: %v, %v", entries, err)
	}
}
