package session

import (
	"context"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
)

// TestIdleIsWokenOnce: for mail of its own that it does not know of. What had no room was listed, and does not wake it.
func TestIdleIsWokenOnce(t *testing.T) {
	y := newYard(t, "")
	rigtest.Must(t, y.Rig.Agents.Adopt(t.Context(), "opencode", "opencode", y.Name(), y.Clock.Now()))
	h := Hooks{Rig: y.Rig, Agent: "opencode", Beside: true, Limit: func(agentcli.Event) int { return 3_000 }}
	woken := func() bool {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		a, err := h.Answer(ended, agentcli.Idle, agentcli.Input{Session: "0a1b"})
		rigtest.Must(t, err)
		return a.GoOn != ""
	}
	if woken() {
		t.Error("a session that has not begun is woken")
	}
	y.answer(h, agentcli.SessionStart, agentcli.Input{})
	y.send("mayor", state.Human, "for the person", "")
	if woken() {
		t.Error("the person's mail wakes it")
	}
	for range 4 {
		y.send("mayor", "opencode", "long", strings.Repeat("words ", 300))
	}
	if !woken() {
		t.Error("mail does not wake it")
	}
	y.answer(h, agentcli.UserPromptSubmit, agentcli.Input{})
	if len(h.recallOf("0a1b").Listed) == 0 {
		t.Error("all of it had room")
	}
	if woken() {
		t.Error("what it was told of wakes it again")
	}
}

// recallOf is what the agent of a session knows.
func (h *Hooks) recallOf(session string) memory {
	of := *h
	of.in.Session = session
	return of.recall(h.Agent)
}

// TestResumedTurnEnds: a client whose turns can't be kept from ending is not told to go on in a worker.
func TestResumedTurnEnds(t *testing.T) {
	y := newYard(t, "")
	_, h := y.hang("polecat-alpha", "Work")
	h.Resumed = true
	if a := y.answer(h, agentcli.Stop, agentcli.Input{}); a != (agentcli.Answer{}) {
		t.Errorf("%+v", a)
	}
	if n := h.recallOf("0a1b").KeptGoing; n != 0 {
		t.Errorf("kept going %d times", n)
	}
}
