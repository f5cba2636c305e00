package session

import (
	"fmt"
	"os"
	"sync"
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

// TestMemberAfterKill: a session that goes on after its client was killed is that of the client which runs it now. It has its
// name again, unless another has taken it.
func TestMemberAfterKill(t *testing.T) {
	y := newYard(t, "")
	running := process.Ancestors()
	if len(running) == 0 {
		t.Skip("what a process descends from is not known on this system")
	}
	gone := []process.Program{{PID: os.Getpid(), Start: 1}}
	for _, step := range []struct {
		session  string
		programs []process.Program
		want     state.AgentID
	}{{"a", gone, "claude"}, {"a", running, "claude"}, {"b", gone, "claude-2"}, {"c", running, "claude-2"}, {"b", running, "claude-3"}} {
		if id, err := Member(t.Context(), y.Rig, "claude", step.session, step.programs); id != step.want || err != nil {
			t.Errorf("session %s is %s, %v, want %s", step.session, id, err, step.want)
		}
	}
}

// TestMemberOfHooksSideBySide: a session is one member, however many of its hooks run at once.
func TestMemberOfHooksSideBySide(t *testing.T) {
	y := newYard(t, "")
	if len(process.Ancestors()) == 0 {
		t.Skip("what a process descends from is not known on this system")
	}
	for n := range 20 {
		var done sync.WaitGroup
		begin, ids := make(chan struct{}), make(chan state.AgentID, 8)
		for range cap(ids) {
			done.Go(func() {
				<-begin
				id, err := Member(t.Context(), y.Rig, "claude", fmt.Sprintf("s%d", n), process.Ancestors())
				if err != nil {
					t.Error(err)
				}
				ids <- id
			})
		}
		close(begin)
		done.Wait()
		for first := <-ids; len(ids) > 0; {
			if id := <-ids; id != first {
				t.Fatalf("session %d is %s and %s", n, first, id)
			}
		}
	}
}
