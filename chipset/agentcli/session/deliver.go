package session

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
)

// A message on its way to a model:
//
//	fresh      unread, and not in the memory of the session
//	listed     its subject was shown, because there was no room; it stays fresh
//	shown      in the memory, before the answer is printed, so that of many hooks one shows it
//	injected   an event, after the answer was printed; its whole text was in it
//	seen       an event, at a later step which the model can't have come to without reading it

// fitted is what of the news has room in an answer.
type fitted struct {
	text    quote.Text
	mail    prompt.Fitted
	nudges  []nudge.Nudge
	notices int
}

// given is what one answer gives an agent.
type given struct {
	who state.AgentID
	how string
	fitted
}

// unanswered is what the model was given and has not answered yet.
type unanswered struct {
	Mail   []mail.Name   `json:"mail,omitempty"`
	Nudges []nudge.Nudge `json:"nudges,omitempty"`
	How    string        `json:"how"`
	// Beside is true for what was given beside the output of a tool: other calls of the same turn may end after it.
	Beside bool `json:"beside,omitempty"`
}

// headings is room for the few words that stand above news, in bytes.
const headings = 64

// limit is how many bytes an answer at a step may have.
func (h *Hooks) limit(e agentcli.Event) int {
	if h.Limit == nil {
		return math.MaxInt32
	}
	return h.Limit(e)
}

// room is how much mail the answer may hold, and how much one at an ordinary step could.
func (h *Hooks) room(listed []mail.Name) prompt.Room {
	full := min(h.limit(agentcli.UserPromptSubmit), h.limit(agentcli.PostToolUse))
	return prompt.Room{Left: h.limit(h.event) - h.used - len(newMail), Full: full - headings, Listed: listed}
}

// fit chooses what of the news is shown at this step: notices and nudges first, then the mail in its order.
func (h *Hooks) fit(n news, m *memory) fitted {
	var f fitted
	room := h.room(m.Listed)
	add := func(text quote.Text) bool {
		if len(text) > room.Left {
			return false
		}
		f.text += text
		room.Left -= len(text)
		return true
	}
	for f.notices < len(m.Notices) && add(m.Notices[f.notices]+"\n") {
		f.notices++
	}
	for i := range n.nudges {
		if !add("A nudge, as data like mail:\n" + prompt.FrameNudge(&n.nudges[i]) + "\n") {
			break
		}
		f.nudges = append(f.nudges, n.nudges[i])
	}
	f.mail = prompt.Fit(h.Rig, n.letters, room)
	if f.mail.Text != "" {
		f.text += newMail + f.mail.Text
	}
	return f
}

const newMail quote.Text = "New mail. "

// give adds what is new for an agent to the answer, as far as there is room, and notes that it did.
// With again everything unread is new.
func (h *Hooks) give(ctx context.Context, who state.AgentID, again bool) (quote.Text, error) {
	var f fitted
	var failed error
	err := h.change(ctx, who, func(m *memory) bool {
		if again {
			m.Shown, m.Listed, m.Nudges, m.Looked = nil, nil, nil, state.Stamp{}
		}
		all, err := h.unreadSince(who, m.Looked)
		if failed = err; err != nil {
			return false
		}
		f = h.fit(m.unshown(all), m)
		m.note(all, &f)
		if len(f.mail.Whole)+len(f.nudges) > 0 {
			m.Unanswered = append(m.Unanswered, unanswered{Mail: f.mail.Whole, Nudges: f.nudges, How: h.how(), Beside: h.event == agentcli.PostToolUse})
		}
		return true
	})
	if err = errors.Join(failed, err); err != nil {
		return "", err
	}
	h.used += len(f.text)
	h.given = append(h.given, given{who: who, how: h.how(), fitted: f})
	return f.text, nil
}

// maxName bounds a name that a client gives, in bytes.
const maxName = 64

// how names the step and the client's session, for events.
func (h *Hooks) how() string {
	return "at " + string(h.event) + " of " + h.Client + " session " + quote.Line(h.in.Session, maxName)
}

// isOver reports whether the worker has reported its end. Its model may never read what it is given now: mail stays for
// the agent's next session.
func (h *Hooks) isOver() bool {
	if h.Assignment == "" {
		return false
	}
	_, err := h.Rig.Retire.Get(string(h.Assignment))
	return err == nil
}

// tell shows an agent what it was not shown yet, once.
func (h *Hooks) tell(ctx context.Context, who state.AgentID) (quote.Text, error) {
	if h.isOver() {
		return "", nil
	}
	before := h.recall(who)
	all, err := h.unreadSince(who, before.Looked)
	if err != nil {
		return "", err
	}
	if fresh := before.unshown(all); fresh.empty() && len(before.Notices) == 0 && (all.same || all.looked == (state.Stamp{})) {
		return "", nil // most of the time; nothing is locked or written
	}
	return h.give(ctx, who, false)
}

// tellAll is tell, and in a person's own session of the person's mail as well.
func (h *Hooks) tellAll(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	text, err := h.tell(ctx, who)
	if !h.Beside || who != h.Agent || err != nil {
		return agentcli.Answer{Context: text}, err
	}
	h.used += len(forPerson)
	persons, err := h.tell(ctx, state.Human)
	if persons != "" {
		text += forPerson + persons
	}
	return agentcli.Answer{Context: text}, err
}

// injected logs what the answer that was printed has put before the model.
func (h *Hooks) injected() {
	for _, g := range h.given {
		for _, n := range g.mail.Whole {
			h.Rig.Events.Tell(event.MailInjected(h.reading(g.who, n, g.how)))
		}
		for i := range g.nudges {
			h.Rig.Slot(g.who).Injected(&g.nudges[i])
		}
	}
}

func (h *Hooks) reading(owner state.AgentID, n mail.Name, how string) event.Reading {
	reader := owner
	if owner == state.Human && h.Beside {
		reader = h.Agent
	}
	return event.Reading{Reader: reader, Owner: owner, Name: string(n), How: how, Work: event.Work{Session: h.Session}}
}

// takeBack forgets what an answer gave that could not be printed: the next step shows it.
func (h *Hooks) takeBack(ctx context.Context) error {
	var failed []error
	for _, g := range h.given {
		failed = append(failed, h.change(ctx, g.who, func(m *memory) bool {
			m.Looked = state.Stamp{}
			m.Unanswered = m.Unanswered[:max(0, len(m.Unanswered)-1)]
			m.Shown = slices.DeleteFunc(m.Shown, func(n mail.Name) bool { return slices.Contains(g.mail.Whole, n) || slices.Contains(g.mail.Cut, n) })
			for i := range g.nudges {
				delete(m.Nudges, g.nudges[i].From)
			}
			return true
		}))
	}
	return errors.Join(failed...)
}

// answered logs what the model must have read to come to this step.
func (h *Hooks) answered(ctx context.Context, who state.AgentID) error {
	before := h.recall(who)
	if !slices.ContainsFunc(before.Unanswered, h.isAnswered) {
		return nil // most of the time
	}
	var seen []unanswered
	err := h.change(ctx, who, func(m *memory) bool {
		seen = nil
		m.Unanswered = slices.DeleteFunc(m.Unanswered, func(u unanswered) bool {
			if h.isAnswered(u) {
				seen = append(seen, u)
				return true
			}
			return false
		})
		return true
	})
	if err != nil {
		return err
	}
	var failed []error
	for _, u := range seen {
		for _, n := range u.Mail {
			h.Rig.Events.Tell(event.MailSeen(h.reading(who, n, u.How)))
		}
		for _, n := range u.Nudges {
			failed = append(failed, h.nudgeSeen(ctx, who, n))
		}
	}
	return errors.Join(failed...)
}

// isAnswered reports whether the model can't have come to this step without what it was given.
func (h *Hooks) isAnswered(u unanswered) bool {
	switch h.event {
	case agentcli.Stop, agentcli.SubagentStop:
		return true
	case agentcli.PreToolUse, agentcli.PostToolUse, agentcli.PermissionRequest:
		return !u.Beside
	case agentcli.SessionStart, agentcli.UserPromptSubmit, agentcli.SubagentStart, agentcli.TeammateIdle, agentcli.TaskCompleted, agentcli.SessionEnd, agentcli.Idle:
	}
	return false
}

// nudgeSeen marks a nudge of an agent that has no role process to do that.
func (h *Hooks) nudgeSeen(ctx context.Context, who state.AgentID, n nudge.Nudge) error {
	if a, err := h.Rig.Agents.Get(string(who)); err != nil || a.Role != agent.Crew {
		return err
	}
	return (&actor.Actor{Rig: h.Rig, ID: who, Session: h.Session}).Seen(ctx, &n)
}
