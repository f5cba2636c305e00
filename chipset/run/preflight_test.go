package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

// TestLoggedOut: when a session ends because nobody is logged in any more, the client says so, and nothing is tried
// before it says something else. A key that the service refuses the client knows nothing of: that is left to a probe.
func TestLoggedOut(t *testing.T) {
	for kind, checked := range map[fault.Kind]bool{fault.NotLoggedIn: true, fault.WrongKey: false} {
		t.Run(string(kind), func(t *testing.T) {
			r := rigtest.New(t, "worker: {default: claude, permissions: edit}\n")
			dir := t.TempDir()
			loggedIn := func(yes bool) {
				rigtest.Must(t, os.WriteFile(filepath.Join(dir, "claude"), fmt.Appendf(nil, "#!/bin/sh\necho '\"loggedIn\": %t'\n", yes), 0o755))
			}
			loggedIn(!checked)
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			t.Setenv("HOME", dir)
			for _, key := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"} {
				t.Setenv(key, "")
			}
			scope := pause.Client("claude")
			now := r.Clock.Now()
			rules := pause.Rules{Wait: func(fault.Kind, int) time.Duration { return time.Hour }, Most: 4}
			_, err := r.Pauses.Note(t.Context(), pause.Ended{Try: pause.Try{At: now, BeadID: "gt-1", Reason: "r"}, Fault: fault.New(kind, "r"), Client: scope}, rules)
			rigtest.Must(t, err)
			checks := rechecks{p: &Process{Rig: r, Say: t.Logf}, next: map[string]time.Time{}, explained: map[pause.Scope]state.Time{}}
			look := func() pause.Pause {
				p, err := r.Pauses.Get(scope.File())
				rigtest.Must(t, err)
				rigtest.Must(t, checks.look(t.Context(), &p))
				p, err = r.Pauses.Get(scope.File())
				rigtest.Must(t, err)
				return p
			}
			if p := look(); (p.Check == environment.CheckClient) != checked || (p.Mend != "") != checked || p.Status != pause.Paused {
				t.Errorf("after a look: %+v", p)
			}
			loggedIn(true)
			if p := look(); p.InForce() == checked {
				t.Errorf("after the login: %+v", p)
			}
		})
	}
}
