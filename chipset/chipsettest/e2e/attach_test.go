package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

// TestAttach: a person takes a worker's session over in the client's own interface, says something to the model, and
// leaves. The rig goes on with that very session, and charges nobody.
func TestAttach(t *testing.T) {
	tests := []struct {
		client string
		// ready is on the screen once the client reads what is typed.
		ready string
	}{
		{"claude", "bypass permissions"},
		{"codex", "? for shortcuts"},
		{"gemini", "Type your message"},
		{"opencode", "Build"},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			asked, ended := make(chan struct{}), make(chan struct{})
			s := set(t, tt.client, "full", "",
				shell("I begin.", "echo BEGUN"),
				agentclitest.Turn{Has: []string{"BEGUN"}, Lacks: []string{"SAID-BY-HAND"}, Say: "NEVER-SEEN", Seen: asked, Hold: ended},
				agentclitest.Turn{Has: []string{"BEGUN", "SAID-BY-HAND"}, Lacks: []string{"taken over by a person"}, Say: "I heard you."},
				agentclitest.Turn{Has: []string{"taken over by a person", "I heard you."}, Say: "I write it.", Calls: []agentclitest.Call{agentclitest.Shell(writes)}},
				after("COMMITTED", shell("I report.", reports)),
				after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true}))
			defer close(ended)
			s.onboarded()
			id := s.add()
			up := s.Start("up", "--until-idle", "--timeout", upTime)
			select {
			case <-asked:
			case <-up.Done():
				t.Fatalf("it ended\n%s", up.Output)
			}
			screen := s.attach(id)
			screen.until(tt.ready)
			screen.keys("-l", "SAID-BY-HAND")
			screen.until("SAID-BY-HAND")
			screen.enter("I heard you.")
			screen.leave(up.Done())
			<-up.Done()
			s.lands(id)
			if b := s.bead(id); b.Attempts != 0 || b.Assignments != 1 {
				t.Errorf("%d attempts charged, %d assignments", b.Attempts, b.Assignments)
			}
			if strays := s.Strays(); len(strays) > 0 {
				t.Errorf("left running: %v", strays)
			}
		})
	}
}

// onboarded answers what a client asks a person who starts it for the first time, in this repository.
func (s *stage) onboarded() {
	s.t.Helper()
	settings, err := json.Marshal(map[string]any{"hasCompletedOnboarding": true, "theme": "dark", "bypassPermissionsModeAccepted": true,
		"customApiKeyResponses": map[string]any{"approved": []string{"none"}}, "projects": map[string]any{s.Dir: map[string]any{"hasTrustDialogAccepted": true}}})
	if err != nil {
		s.t.Fatal(err)
	}
	codex := filepath.Join(s.home, ".codex/config.toml")
	config, err := os.ReadFile(codex)
	if err != nil {
		s.t.Fatal(err)
	}
	for file, text := range map[string]string{codex: fmt.Sprintf("%s\n[projects.%q]\ntrust_level = \"trusted\"\n", config, s.Dir), filepath.Join(s.home, ".claude.json"): string(settings)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// screen is a terminal in which a command runs.
type screen struct {
	*stage
	socket string
}

// attach tries again while the client has not said yet which session it began.
func (s *stage) attach(id string) *screen {
	return s.screen("sh", "-c", `until "$0" attach "$1"; do sleep 0.2; done`, s.Bin, id)
}

func (s *stage) screen(argv ...string) *screen {
	s.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		s.t.Skip("tmux is not installed")
	}
	term := &screen{s, filepath.Join(s.t.TempDir(), "tmux")}
	term.tmux(append([]string{"-f", "/dev/null", "start-server", ";", "set", "-g", "remain-on-exit", "on", ";", "new-session", "-d", "-s", "x", "-x", "120", "-y", "40"}, argv...)...)
	s.t.Cleanup(func() { _ = s.Command("tmux", "-S", term.socket, "kill-server").Run() })
	return term
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := s.Command("tmux", append([]string{"-u", "-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *screen) keys(keys ...string) {
	s.t.Helper()
	s.tmux(append([]string{"send-keys", "-t", "x"}, keys...)...)
}

// until waits until the screen shows a text.
func (s *screen) until(text string) { s.t.Helper(); s.await(text, nil) }

// enter presses Enter until the screen shows a text: soon after others Codex takes it for a part of what is pasted.
func (s *screen) enter(text string) {
	s.t.Helper()
	next := time.Now()
	s.await(text, func() {
		if time.Now().After(next) {
			s.keys("Enter")
			next = time.Now().Add(2 * time.Second)
		}
	})
}

// leave presses Ctrl-C until the client has ended, or the rig: what the first of them ends depends on what it is at.
func (s *screen) leave(rig <-chan struct{}) {
	s.t.Helper()
	for strings.TrimSpace(s.tmux("display-message", "-p", "-t", "x", "#{pane_dead}")) != "1" {
		s.keys("C-c")
		select {
		case <-rig:
			return
		case <-time.After(time.Second / 2):
		}
	}
}

// await waits until the screen shows a text, and does something before each look.
func (s *screen) await(text string, before func()) {
	s.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		if before != nil {
			before()
		}
		shown := s.tmux("capture-pane", "-p", "-t", "x")
		if strings.Contains(shown, text) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no %q on the screen:\n%s", text, shown)
		}
	}
}
