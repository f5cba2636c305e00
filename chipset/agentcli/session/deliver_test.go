package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
)

// model is what a client's model was shown: of an answer that is too long, the beginning.
type model struct {
	y    *yard
	h    Hooks
	seen []string
}

const clientLimit, clientPreview = 10_000, 2_000

// newModel is the session of a client that shows answers up to a limit.
func newModel(y *yard, h Hooks) *model {
	h.Client, h.Limit = "client", func(agentcli.Event) int { return clientLimit - 100 }
	return &model{y: y, h: h}
}

// step is one event, and returns what the model is shown.
func (m *model) step(e agentcli.Event, in agentcli.Input) string {
	m.y.t.Helper()
	a := m.y.answer(m.h, e, in)
	text := string(a.Context + a.GoOn)
	if len(text) > clientLimit {
		text = text[:clientPreview]
	}
	m.seen = append(m.seen, text)
	return text
}

// told are the subjects of events of a type, in their order.
func (y *yard) told(kind string) []string {
	y.t.Helper()
	events, _, _, err := y.Events.Read(event.Position{}, y.Clock().AddDate(-1, 0, 0))
	rigtest.Must(y.t, err)
	var subjects []string
	for _, e := range events {
		if e.Type == kind {
			subjects = append(subjects, e.Subject)
		}
	}
	return subjects
}

// TestWhatIsRecordedWasShown: whatever mail comes in whatever sizes, the messages that are recorded as
// injected are those whose whole text the model was shown, each once, the urgent ones first, and in the end
// nothing but what is too long for any answer is missing.
func TestWhatIsRecordedWasShown(t *testing.T) {
	y := newYard(t, "")
	_, h := y.hang("polecat-alpha", "Work")
	m := newModel(y, h)
	m.step(agentcli.SessionStart, agentcli.Input{Source: "startup"})
	bodies := map[mail.Name]string{}
	var urgent, long mail.Name
	for i, size := range []int{3000, 3000, 3000, 3000, 8600, 8200, 9500, 20_000, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100} {
		body := fmt.Sprintf("begin-%d %s end-%d", i, strings.Repeat("words ", size/6), i)
		priority := mail.Normal
		if i == 10 {
			priority = mail.Urgent
		}
		n, err := y.Rig.Sender.Send(t.Context(), mail.Message{From: "mayor", To: h.Agent, Type: mail.Coordination, Subject: fmt.Sprint("subject ", i), Body: body, Priority: priority})
		rigtest.Must(t, err)
		bodies[n] = body
		switch i {
		case 10:
			urgent = n
		case 7:
			long = n
		}
	}
	first := m.step(agentcli.PostToolUse, agentcli.Input{})
	wants(t, first, bodies[urgent], "shown at your next steps", "chipset mail read")
	if strings.Index(first, "end-10") > strings.Index(first, "end-0") {
		t.Error("the urgent one is not the first")
	}
	for range 20 {
		m.step(agentcli.PostToolUse, agentcli.Input{})
	}
	if a := m.step(agentcli.PostToolUse, agentcli.Input{}); a != "" {
		t.Errorf("told again: %s", a)
	}
	all := strings.Join(m.seen, "\n")
	injected := y.told("mail.injected")
	for n, body := range bodies {
		whole := strings.Count(all, body)
		recorded := len(slices.DeleteFunc(slices.Clone(injected), func(s string) bool { return s != event.MailSubject(h.Agent, string(n)) }))
		if whole != recorded || whole > 1 || whole == 0 && n != long && len(body) < 8500 {
			t.Errorf("%.20q…, %d bytes: shown whole %d times, recorded %d times", body, len(body), whole, recorded)
		}
		if whole == 0 && !strings.Contains(all, body[:500]) {
			t.Errorf("%.20q…: not even its beginning was shown", body)
		}
	}
	if got := y.told("mail.seen"); len(got) > 0 {
		t.Errorf("seen beside the output of a tool: %v", got)
	}
	m.step(agentcli.Stop, agentcli.Input{})
	if seen := y.told("mail.seen"); len(seen) != len(injected) {
		t.Errorf("%d injected, %d seen", len(injected), len(seen))
	}
}

// TestMailBeforeATurnIsSeenWithItsFirstCall: a prompt is answered before a tool is called.
func TestMailBeforeATurnIsSeenWithItsFirstCall(t *testing.T) {
	y := newYard(t, "")
	_, h := y.hang("polecat-alpha", "Work")
	n := y.send("mayor", h.Agent, "hello", "")
	m := newModel(y, h)
	m.step(agentcli.UserPromptSubmit, agentcli.Input{})
	if seen := y.told("mail.seen"); len(seen) > 0 {
		t.Errorf("seen already: %v", seen)
	}
	for range 2 {
		m.step(agentcli.PreToolUse, agentcli.Input{})
	}
	if seen := y.told("mail.seen"); !slices.Equal(seen, []string{event.MailSubject(h.Agent, string(n))}) {
		t.Errorf("seen %v", seen)
	}
}

// TestALargeBeadLeavesRoomForMail: what is too much at the start is left out whole, and named.
func TestALargeBeadLeavesRoomForMail(t *testing.T) {
	y := newYard(t, "")
	id, h := y.hang("polecat-alpha", "Work")
	_, err := y.Beads.Update(t.Context(), string(id), func(b *bead.Bead) error { b.Description = strings.Repeat("much ", 6000); return nil })
	rigtest.Must(t, err)
	y.send("mayor", h.Agent, "hello", "the text")
	wants(t, newModel(y, h).step(agentcli.SessionStart, agentcli.Input{Source: "startup"}), "You are polecat-alpha", string(id), "chipset prime", "chipset done", "the text")
}

// TestALostAnswerIsGivenAgain: what could not be printed was not shown, and is not recorded.
func TestALostAnswerIsGivenAgain(t *testing.T) {
	y := newYard(t, "")
	_, h := y.hang("polecat-alpha", "Work")
	y.send("mayor", h.Agent, "hello", "the text")
	y.nudge("witness", h.Agent, "quick")
	h.Print = func(agentcli.Answer) error { return errors.New("the client is gone") }
	if _, err := h.Answer(t.Context(), agentcli.PostToolUse, agentcli.Input{Session: "0a1b"}); err == nil {
		t.Error("no error")
	}
	if got := append(y.told("mail.injected"), y.told("nudge.injected")...); len(got) > 0 {
		t.Errorf("recorded %v", got)
	}
	h.Print = nil
	wants(t, y.answer(h, agentcli.PostToolUse, agentcli.Input{}).Context, "the text", "quick")
	if got := append(y.told("mail.injected"), y.told("nudge.injected")...); len(got) != 2 {
		t.Errorf("recorded %v", got)
	}
}

func (y *yard) nudge(from, to state.AgentID, text string) nudge.Nudge {
	y.t.Helper()
	n, err := y.Slot(to).Send(y.t.Context(), nudge.Nudge{From: from, Type: nudge.HealthCheck, Message: text}, y.Clock.Now())
	rigtest.Must(y.t, err)
	return n
}

// TestANudgeReachesTheWorkerItsPolecatAnsweredFor: the polecat processes it at once, and the model is shown
// it all the same; one of before the assignment it is not.
func TestANudgeReachesTheWorkerItsPolecatAnsweredFor(t *testing.T) {
	y := newYard(t, "")
	y.nudge("mayor", "polecat-alpha", "of before")
	_, h := y.hang("polecat-alpha", "Work")
	n := y.nudge("witness", h.Agent, "are you there?")
	rigtest.Must(t, y.Slot(h.Agent).MarkSeen(t.Context(), n))
	a := y.answer(h, agentcli.PostToolUse, agentcli.Input{})
	wants(t, a.Context, "are you there?")
	if strings.Contains(string(a.Context), "of before") {
		t.Errorf("a stale one is shown: %s", a.Context)
	}
	if a := y.answer(h, agentcli.PostToolUse, agentcli.Input{}); a != (agentcli.Answer{}) {
		t.Errorf("again: %s", a.Context)
	}
}

// TestANudgeToCrewIsProcessedOnceAnswered: nobody else marks it.
func TestANudgeToCrewIsProcessedOnceAnswered(t *testing.T) {
	y := newYard(t, "")
	_, h := y.hang("polecat-alpha", "Work")
	y.spawned(h, "0a1b", "scout", "one")
	y.nudge("mayor", "polecat-alpha.scout", "hello")
	wants(t, y.answer(h, agentcli.PostToolUse, agentcli.Input{AgentID: "one"}).Context, "hello")
	unseen := func() int {
		t.Helper()
		fresh, _, err := y.Slot("polecat-alpha.scout").Unseen()
		rigtest.Must(t, err)
		return len(fresh)
	}
	if unseen() != 1 {
		t.Error("processed before it was answered")
	}
	y.answer(h, agentcli.SubagentStop, agentcli.Input{AgentID: "one"})
	if unseen() != 0 {
		t.Error("not processed")
	}
}

// TestMailAfterTheReportWaits: a worker that has reported its end is ended while it reads the answer. What comes then is not
// recorded as injected, and the agent's next session is shown it.
func TestMailAfterTheReportWaits(t *testing.T) {
	y := newYard(t, "")
	id, h := y.hang("polecat-alpha", "Work")
	y.answer(h, agentcli.SessionStart, agentcli.Input{Source: "startup"})
	y.send("mayor", "polecat-alpha", "late", "LATE")
	rigtest.Must(t, y.Retire.Create(string(h.Assignment), retire.Record{AssignmentID: h.Assignment, AgentID: h.Agent, BeadID: id,
		Outcome: retire.Done, Stage: retire.Published}))
	for _, e := range []agentcli.Event{agentcli.PostToolUse, agentcli.UserPromptSubmit, agentcli.Stop} {
		if a := y.answer(h, e, agentcli.Input{}); a != (agentcli.Answer{}) {
			t.Errorf("%s: %+v", e, a)
		}
	}
	if told := y.told("mail.injected"); len(told) > 0 {
		t.Errorf("injected: %q", told)
	}
	next := h
	next.Assignment = "as-next"
	wants(t, y.answer(next, agentcli.SessionStart, agentcli.Input{Session: "next", Source: "startup"}).Context, "LATE")
}
