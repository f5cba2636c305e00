package session

import (
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
)

// TestEverySessionHasAName: of its own while it runs, and the same at each step; that of one that has ended or
// whose client is gone is given again.
func TestEverySessionHasAName(t *testing.T) {
	y := newYard(t, "")
	running := process.Ancestors()
	if len(running) == 0 {
		t.Skip("what a process descends from is not known on this system")
	}
	gone := process.Program{PID: os.Getpid(), Start: 1}
	member := func(client, session string, p process.Program, want state.AgentID) {
		t.Helper()
		id, err := Member(t.Context(), y.Rig, client, session, []process.Program{p})
		rigtest.Must(t, err)
		if id != want {
			t.Errorf("session %s of %s is %s, want %s", session, client, id, want)
		}
	}
	member("claude", "a", running[0], "claude")
	member("claude", "b", running[0], "claude-2")
	member("claude", "a", running[0], "claude")
	member("codex", "c", gone, "codex")
	member("codex", "d", running[0], "codex")
	y.answer(Hooks{Rig: y.Rig, Agent: "claude", Beside: true}, agentcli.SessionEnd, agentcli.Input{Session: "a"})
	member("claude", "e", running[0], "claude")
	member("mayor", "f", running[0], "mayor-crew")

	for client, want := range map[string]state.AgentID{"claude": "claude", "codex": "codex", "gemini": ""} {
		if id, err := Around(y.Rig, client, running); id != want || err != nil {
			t.Errorf("around this process: %s is %q, %v", client, id, err)
		}
	}
	if id, err := Around(y.Rig, "codex", []process.Program{gone}); id != "" || err != nil {
		t.Errorf("in a client that is gone: %q, %v", id, err)
	}
}
