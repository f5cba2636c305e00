package session

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
)

// Hooks answers the events of one session.
type Hooks struct {
	Rig *rig.Rig
	// Agent is who the client speaks as; human only where the person said so.
	Agent state.AgentID
	// Beside is true in a person's own session, beside the rig: the agent is crew
	// then, and is shown the person's mail as well.
	Beside bool
	// Assignment and Session are what a worker was started for, or "".
	Assignment state.AssignmentID
	Session    state.SessionID

	in agentcli.Input
}

// maxShown bounds how many messages are shown at one step.
const maxShown = 10

// Answer says what the agent gets at an event. An error means that something
// could not be found out; the answer is silence then.
func (h Hooks) Answer(ctx context.Context, e agentcli.Event, in agentcli.Input) (agentcli.Answer, error) {
	h.in = in
	who := h.who()
	switch e {
	case agentcli.SessionStart:
		return h.start(ctx)
	case agentcli.UserPromptSubmit:
		return h.tellAll(ctx, who)
	case agentcli.PreToolUse:
		return h.beforeTool(ctx, who)
	case agentcli.PermissionRequest:
		return h.permission(ctx)
	case agentcli.PostToolUse:
		return h.afterTool(ctx, who)
	case agentcli.Stop:
		return h.stop(ctx, h.Agent)
	case agentcli.SubagentStart:
		return h.subagentStart(ctx)
	case agentcli.SubagentStop:
		return h.subagentStop(ctx)
	case agentcli.TeammateIdle:
		return h.idle(ctx)
	case agentcli.TaskCompleted:
		return h.taskCompleted(ctx)
	case agentcli.SessionEnd:
		return agentcli.Answer{}, h.end(ctx)
	}
	return agentcli.Answer{}, nil
}

// who is the agent whose step it is: a subagent that has an identity, or the
// session's own.
func (h *Hooks) who() state.AgentID {
	if h.in.AgentID == "" {
		return h.Agent
	}
	if s, err := h.readSubagent(h.claimedPath(h.in.AgentID)); err == nil {
		return s.Identity
	}
	return h.Agent
}

// start tells an agent everything it needs to begin, or to go on after its
// client forgot what it was told.
func (h *Hooks) start(ctx context.Context) (agentcli.Answer, error) {
	tidied := h.tidy(ctx)
	n, err := h.unread(h.Agent)
	if err != nil {
		return agentcli.Answer{}, err
	}
	var text quote.Text
	if h.Agent == state.Human || h.Beside {
		if text, err = h.welcome(ctx, &n); err != nil {
			return agentcli.Answer{}, err
		}
	} else {
		b, err := prompt.Prime(ctx, h.Rig, h.Agent)
		if err != nil {
			return agentcli.Answer{}, err
		}
		text = b.Text() + h.reporting()
	}
	if len(n.nudges) > 0 {
		text += "\n" + frameNudges(n)
	}
	err = h.change(ctx, h.Agent, func(m *memory) bool {
		m.note(n)
		m.KeptGoing = 0
		return true
	})
	h.injected(h.Agent, n)
	return agentcli.Answer{Context: text}, errors.Join(err, tidied)
}

// welcome is for the agent of a person's own session, which works beside the rig.
func (h *Hooks) welcome(ctx context.Context, n *news) (quote.Text, error) {
	var p quote.Builder
	p.Addf("This repository has a chipset rig (%s). ", h.Rig.Dir)
	if h.Beside {
		p.Addf("In it you are %s, one of the crew, and work with the person who runs it: others write to you as %s, and what you send is yours.\n", h.Agent, h.Agent)
		p.Add("You never speak as the person or the mayor. Only the person may sling, cancel, reopen, approve and deny, in a terminal: " +
			"say which line to type.\n")
	} else {
		p.Add("You speak for the person who runs it.\n")
	}
	p.Add("`chipset status` shows the rig, `chipset work add TITLE -d TEXT` gives it work, `chipset why BEAD` shows the history of a bead.\n")
	p.Add("Never edit files below .chipset/ by hand.\n")
	if !h.Beside {
		writeUnread(&p, n, "the person (`chipset mail inbox`)")
		return p.Text(), nil
	}
	writeUnread(&p, n, "you (`chipset mail inbox`)")
	persons, err := h.unread(state.Human)
	if err != nil {
		return "", err
	}
	writeUnread(&p, &persons, "the person (`chipset mail inbox human`)")
	h.injected(state.Human, persons)
	return p.Text(), h.change(ctx, state.Human, func(m *memory) bool { m.note(persons); return true })
}

func writeUnread(p *quote.Builder, n *news, whose quote.Text) {
	if len(n.letters) > 0 {
		p.Addf("\n%d unread for %s:\n\n%s", len(n.letters), whose, prompt.Frames(n.letters, maxShown))
	}
}

func (h *Hooks) reporting() quote.Text {
	if h.Assignment == "" {
		return ""
	}
	return "\nYou are told of new mail and nudges while you work. End with `chipset done --summary TEXT`, " +
		"`chipset fail --reason TEXT` or `chipset block --reason TEXT`.\n"
}

// tell shows an agent what it was not shown yet, once.
func (h *Hooks) tell(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	before := h.recall(who)
	all, err := h.unreadSince(who, before.Looked)
	if err != nil {
		return agentcli.Answer{}, err
	}
	if fresh := before.unshown(all); fresh.empty() && len(before.Notices) == 0 && (all.same || all.looked == (state.Stamp{})) {
		return agentcli.Answer{}, nil // most of the time; nothing is locked or written
	}
	var text quote.Text
	var fresh news
	err = h.change(ctx, who, func(m *memory) bool {
		fresh = m.unshown(all)
		text = h.frameNews(fresh, m.Notices)
		m.Notices = nil
		m.note(all)
		return true
	})
	if err != nil {
		return agentcli.Answer{}, err
	}
	h.injected(who, fresh)
	return agentcli.Answer{Context: text}, nil
}

func (h *Hooks) frameNews(n news, notices []quote.Text) quote.Text {
	var p quote.Builder
	for _, notice := range notices {
		p.Add(notice + "\n")
	}
	if len(n.letters) > 0 {
		p.Add(prompt.Decisions(h.Rig, n.letters))
		p.Add("New mail. " + prompt.Frames(n.letters, maxShown))
		p.Add("`chipset mail read NAME` marks one as read, `chipset mail reply NAME --body TEXT` answers it.\n")
	}
	p.Add(frameNudges(n))
	return p.Text()
}

func frameNudges(n news) quote.Text {
	var p quote.Builder
	for i := range n.nudges {
		p.Add("A nudge, as data like mail:\n" + prompt.FrameNudge(&n.nudges[i]) + "\n")
	}
	return p.Text()
}

// injected logs the messages that an agent was shown.
func (h *Hooks) injected(who state.AgentID, n news) {
	for i := range n.letters {
		(&actor.Actor{Rig: h.Rig, ID: who, Session: h.Session}).Injected(n.letters[i].Name)
	}
}

// afterTool counts as progress of the work.
func (h *Hooks) afterTool(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	err := h.touch(ctx, who)
	if m := h.recall(who); m.KeptGoing > 0 {
		err = errors.Join(err, h.change(ctx, who, func(m *memory) bool { m.KeptGoing = 0; return true }))
	}
	a, tellErr := h.tellAll(ctx, who)
	return a, errors.Join(err, tellErr)
}

// tellAll is tell, and in a person's own session of the person's mail as well.
func (h *Hooks) tellAll(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	a, err := h.tell(ctx, who)
	if !h.Beside || who != h.Agent || err != nil {
		return a, err
	}
	persons, err := h.tell(ctx, state.Human)
	if persons.Context != "" {
		a.Context += "For the person:\n" + persons.Context
	}
	return a, err
}

// touch writes at most once in hook.TouchInterval.
func (h *Hooks) touch(ctx context.Context, who state.AgentID) error {
	item, active := h.work(who)
	if !active {
		return nil
	}
	return (&actor.Actor{Rig: h.Rig, ID: who}).Progress(ctx, &item)
}

// work is the assignment that an agent is at: the one that this session was
// started for, active, and not ended yet.
func (h *Hooks) work(who state.AgentID) (hook.WorkItem, bool) {
	current, err := h.Rig.Hooks.Get(string(who))
	if err != nil || current.Status != hook.Active || current.WorkItem == nil {
		return hook.WorkItem{}, false
	}
	item := *current.WorkItem
	if who == h.Agent && h.Assignment != "" && item.AssignmentID != h.Assignment {
		return item, false
	}
	if _, err := h.Rig.Retire.Get(string(item.AssignmentID)); err == nil {
		return item, false // done, fail or block was said
	}
	return item, true
}
