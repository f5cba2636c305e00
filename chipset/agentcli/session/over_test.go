package session

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// spawned begins a subagent with a name, and returns what it is told.
func (y *yard) spawned(h Hooks, session, name, clientID string) string {
	y.t.Helper()
	in := spawnInput(name, "code")
	in.Session = session
	told := y.answer(h, agentcli.PreToolUse, in).Input
	told += string(y.answer(h, agentcli.SubagentStart, agentcli.Input{Session: session, AgentID: clientID, AgentType: "code"}).Context)
	in.Tool.SpawnedID = clientID
	y.answer(h, agentcli.PostToolUse, in)
	return told
}

// TestSpokenToAgain: a subagent that has ended and is sent a message starts once
// more, under the client's same id and without being announced.
func TestSpokenToAgain(t *testing.T) {
	y := newYard(t, "")
	_, h := y.hang("polecat-alpha", "Work")
	again := func(clientID string) string {
		return string(y.answer(h, agentcli.SubagentStart, agentcli.Input{AgentID: clientID, AgentType: "code"}).Context)
	}
	y.spawned(h, "0a1b", "scout", "one")
	y.answer(h, agentcli.SubagentStop, agentcli.Input{AgentID: "one"})
	wants(t, again("one"), "You are polecat-alpha.scout ", "You were here before")
	y.answer(h, agentcli.SubagentStop, agentcli.Input{AgentID: "one"})
	wants(t, y.spawned(h, "0a1b", "scout", "two"), "You are polecat-alpha.scout ")
	wants(t, again("one"), "You are polecat-alpha.scout-2 ") // its name has gone to another
}

// TestKilledClient: one that could not say that it ends leaves no names behind
// that its subagents would have to avoid.
func TestKilledClient(t *testing.T) {
	y := newYard(t, "")
	_, h := y.hang("polecat-alpha", "Work")
	y.answer(h, agentcli.SessionStart, agentcli.Input{Session: "first", Source: "startup"})
	y.spawned(h, "first", "scout", "one")
	y.answer(h, agentcli.SessionStart, agentcli.Input{Session: "first", Source: "compact"})
	wants(t, y.spawned(h, "first", "scout", "two"), "You are polecat-alpha.scout-2 ") // the first goes on
	y.answer(h, agentcli.SessionStart, agentcli.Input{Session: "first", Source: "resume"})
	wants(t, y.spawned(h, "first", "scout", "three"), "You are polecat-alpha.scout ", "You were here before")
	y.answer(h, agentcli.SessionStart, agentcli.Input{Session: "second", Source: "startup"})
	wants(t, y.spawned(h, "second", "scout", "four"), "You are polecat-alpha.scout ", "You were here before")
	y.answer(h, agentcli.SessionEnd, agentcli.Input{Session: "second"})
	if left, err := y.Tree.List(clientsDir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestPersonsSessions: each may run beside the others, and the last one to end
// takes the identity with it, whatever sessions other agents have.
func TestPersonsSessions(t *testing.T) {
	y := newYard(t, "")
	crew := func(name string) Hooks {
		id, err := actor.Crew(t.Context(), y.Rig, "claude", name)
		rigtest.Must(t, err)
		return Hooks{Rig: y.Rig, Agent: id, Beside: true, Prepend: prepend}
	}
	status := func(id state.AgentID) agent.Status {
		a, err := y.Agents.Get(string(id))
		rigtest.Must(t, err)
		return a.Status
	}
	codex, claude := crew("codex"), crew("claude")
	y.answer(codex, agentcli.SessionStart, agentcli.Input{Session: "endless", Source: "startup"}) // its client has no event for the end
	for _, session := range []string{"a", "b"} {
		y.answer(claude, agentcli.SessionStart, agentcli.Input{Session: session, Source: "startup"})
	}
	wants(t, y.spawned(claude, "a", "scout", "one"), "You are claude.scout ")
	wants(t, y.spawned(claude, "b", "scout", "two"), "You are claude.scout-2 ")
	y.answer(claude, agentcli.SessionEnd, agentcli.Input{Session: "a"})
	if got := status("claude"); got != agent.Active {
		t.Errorf("with a session left it is %s", got)
	}
	y.answer(claude, agentcli.SessionEnd, agentcli.Input{Session: "b"})
	if got := status("claude"); got != agent.Terminated {
		t.Errorf("without one it is %s", got)
	}
	y.mu.Lock()
	y.now = y.now.Add(sessionOver + time.Hour)
	y.mu.Unlock()
	y.answer(codex, agentcli.SessionStart, agentcli.Input{Session: "next", Source: "startup"})
	if left, err := y.Tree.List(clientsDir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
