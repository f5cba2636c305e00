package session

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
)

// TestIdleIsWokenOnce: for mail of its own that it does not know of. What had no room was listed, and does not wake it.
func TestIdleIsWokenOnce(t *testing.T) {
	y := newYard(t, "")
	rigtest.Must(t, y.Rig.Agents.Adopt(t.Context(), "opencode", "opencode", y.Name(), y.Clock.Now()))
	h := Hooks{Rig: y.Rig, Agent: "opencode", Beside: true, HoldsInput: true, Limit: func(agentcli.Event) int { return 3_000 }}
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
	if woken() {
		t.Error("what the woken turn was not shown wakes it again")
	}
	y.answer(h, agentcli.UserPromptSubmit, agentcli.Input{})
	if len(h.recallOf("0a1b").Listed) == 0 {
		t.Error("all of it had room")
	}
	if woken() {
		t.Error("what it was told of wakes it again")
	}
	y.send("mayor", "opencode", "in a turn", strings.Repeat("words ", 300))
	for len(h.recallOf("0a1b").Listed) > 0 {
		y.answer(h, agentcli.UserPromptSubmit, agentcli.Input{})
	}
	for range 4 {
		y.send("mayor", "opencode", "in a turn", strings.Repeat("words ", 300))
	}
	y.answer(h, agentcli.PostToolUse, agentcli.Input{})
	if len(h.recallOf("0a1b").Listed) == 0 {
		t.Error("all of it had room")
	}
	if woken() {
		t.Error("what its turn was told of wakes it")
	}
}

// waiting starts the hook of an idle session; the channel has its answer.
func (y *yard) waiting(h Hooks, in agentcli.Input) <-chan agentcli.Answer {
	y.t.Helper()
	before := h.recallOf(in.Session).Waits
	answers := make(chan agentcli.Answer, 1)
	go func() {
		a, err := h.Answer(y.t.Context(), agentcli.Idle, in)
		if err != nil {
			y.t.Error(err)
		}
		answers <- a
	}()
	for h.recallOf(in.Session).Waits.Equal(before.Time) {
		runtime.Gosched()
	}
	return answers
}

func (y *yard) session() Hooks {
	y.t.Helper()
	rigtest.Must(y.t, y.Rig.Agents.Adopt(y.t.Context(), "claude", "claude", y.Name(), y.Clock.Now()))
	return Hooks{Rig: y.Rig, Agent: "claude", Beside: true, HoldsInput: true}
}

// TestIdleUntilPrompt: a prompt of the person ends the wait, and so does a later hook.
func TestIdleUntilPrompt(t *testing.T) {
	y := newYard(t, "")
	h := y.session()
	in := agentcli.Input{Session: "0a1b"}
	y.answer(h, agentcli.SessionStart, agentcli.Input{})
	first := y.waiting(h, in)
	second := y.waiting(h, in)
	if a := <-first; a.GoOn != "" {
		t.Error("it is woken twice")
	}
	y.answer(h, agentcli.UserPromptSubmit, in)
	if a := <-second; a.GoOn != "" {
		t.Error("a turn is woken")
	}
	third := y.waiting(h, in)
	y.send("mayor", "claude", "news", "")
	if a := <-third; a.GoOn == "" {
		t.Error("mail does not wake it after that")
	}
}

// TestIdleFromTheStart: what is unread when a session begins is shown with its first prompt. What comes after that wakes it.
func TestIdleFromTheStart(t *testing.T) {
	y := newYard(t, "")
	h := y.session()
	rigtest.Must(t, h.changeOf("0a1b"))
	y.send("mayor", "claude", "old", "")
	answers := y.waiting(h, agentcli.Input{Session: "0a1b", Source: "startup"})
	select {
	case a := <-answers:
		t.Errorf("it begins with %+v", a)
	default:
	}
	y.answer(h, agentcli.SessionStart, agentcli.Input{Source: "startup"})
	y.send("mayor", "claude", "new", "")
	if a := <-answers; a.GoOn == "" {
		t.Error("mail does not wake it")
	}
	if shown := y.answer(h, agentcli.UserPromptSubmit, agentcli.Input{}).Context; !strings.Contains(string(shown), "new") {
		t.Errorf("it is shown %s", shown)
	}
}

// TestIdleUnwatched: nothing waits for a session of which nobody could tell that it is over, or that is.
func TestIdleUnwatched(t *testing.T) {
	y := newYard(t, "")
	h := y.session()
	h.HoldsInput = false
	y.answer(h, agentcli.SessionStart, agentcli.Input{})
	y.send("mayor", "claude", "news", "")
	if a := y.answer(h, agentcli.Idle, agentcli.Input{}); a.GoOn != "" {
		t.Error("a session of an unknown program is woken")
	}
	program := process.Program{PID: os.Getpid(), Start: 1}
	h.in.Session = "0a1b"
	rigtest.Must(t, h.change(t.Context(), "claude", func(m *memory) bool { m.Program = program; return true }))
	if a := y.answer(h, agentcli.Idle, agentcli.Input{}); a.GoOn != "" {
		t.Error("a session whose program has ended is woken")
	}
}

// changeOf makes the memory of a session that is about to begin.
func (h *Hooks) changeOf(session string) error {
	of := *h
	of.in.Session = session
	return of.change(context.Background(), h.Agent, func(*memory) bool { return true })
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
