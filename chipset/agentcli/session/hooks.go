package session

import (
	"context"
	"errors"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
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
	// Client is the client's name. Limit is how much of an answer it puts before the model; nil is no limit.
	Client string
	Limit  func(e agentcli.Event) int
	// Print hands an answer to the client. What the answer gives the agent is logged once Print has returned
	// nil, and given again when it fails. nil prints nothing.
	Print func(a agentcli.Answer) error
	// Prepend and SpawnedBy are those of agentcli.Hooks.
	Prepend   func(in agentcli.Input, text string) string
	SpawnedBy func(in agentcli.Input) string
	// Resumed and HoldsInput are those of agentcli.Hooks.
	Resumed, HoldsInput bool

	in    agentcli.Input
	event agentcli.Event
	// used is how many bytes the answer has by now, given what the agents get with it.
	used  int
	given []given
}

// Answer says what the agent gets at an event. An error means that something
// could not be found out; the answer is silence then.
func (h Hooks) Answer(ctx context.Context, e agentcli.Event, in agentcli.Input) (agentcli.Answer, error) {
	h.in, h.event = in, e
	who, err := h.Agent, error(nil)
	if in.AgentID != "" {
		who, err = h.settled(ctx)
	}
	if who != "" {
		err = errors.Join(err, h.answered(ctx, who))
	}
	a, failed := h.decide(ctx, who)
	err = errors.Join(err, failed)
	if h.Print != nil {
		if lost := h.Print(a); lost != nil {
			return a, errors.Join(err, lost, h.takeBack(ctx))
		}
	}
	h.injected()
	return a, err
}

// decide finds the answer for the agent whose step it is. who is "" for a subagent while it is not
// certain which one that is: it gets no mail then.
func (h *Hooks) decide(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	switch h.event {
	case agentcli.SessionStart:
		return h.start(ctx)
	case agentcli.UserPromptSubmit:
		held := h.held()
		h.used = len(held)
		err := h.prompted(ctx)
		a, failed := h.tellAll(ctx, who)
		a.Context = held + a.Context
		return a, errors.Join(err, failed)
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
		return h.taskCompleted(ctx, who)
	case agentcli.SessionEnd:
		return agentcli.Answer{}, h.end(ctx)
	case agentcli.Idle:
		return h.wait(ctx)
	}
	return agentcli.Answer{}, nil
}

// start tells an agent everything it needs to begin, or to go on after its
// client forgot what it was told.
func (h *Hooks) start(ctx context.Context) (agentcli.Answer, error) {
	tidied := h.tidy(ctx)
	var text quote.Text
	if h.Agent == state.Human || h.Beside {
		text = h.welcome() + h.held()
	} else {
		b, err := prompt.Prime(ctx, h.Rig, h.Agent)
		if err != nil {
			return agentcli.Answer{}, err
		}
		reporting := h.reporting()
		text = b.Within(h.limit(h.event)*2/3-len(reporting)) + reporting
	}
	h.used = len(text)
	fresh, err := h.give(ctx, h.Agent, true)
	text += fresh
	if h.Beside && err == nil {
		h.used += len(forPerson)
		if fresh, err = h.give(ctx, state.Human, true); fresh != "" {
			text += forPerson + fresh
		}
	}
	err = errors.Join(err, h.change(ctx, h.Agent, func(m *memory) bool { m.KeptGoing = 0; return true }))
	return agentcli.Answer{Context: text}, errors.Join(err, tidied)
}

// welcome is for the agent of a person's own session, which works beside the rig.
func (h *Hooks) welcome() quote.Text {
	var p quote.Builder
	p.Addf("This repository has a chipset rig (%s). ", h.Rig.Dir)
	if h.Beside {
		p.Addf("In it you are %s, one of the crew, and work with the person who runs it: others write to you as %s, and what you send is yours.\n", h.Agent, h.Agent)
		p.Add("You never speak as the person or the mayor. Only the person may sling, cancel, reopen, approve and deny, in a terminal: " +
			"say which line to type. `chipset work claim BEAD` makes a bead yours, where the person wants you to do it: you get a worktree for it.\n")
	} else {
		p.Add("You speak for the person who runs it.\n")
	}
	p.Add("`chipset status` shows the rig, `chipset work add TITLE -d TEXT` gives it work, `chipset why BEAD` shows the history of a bead.\n")
	p.Add("Never edit files below .chipset/ by hand, but for those in a worktree of yours.\n")
	return p.Text()
}

// held reminds the agent of a person's own session of the bead that it holds, on one line.
func (h *Hooks) held() quote.Text {
	current, err := h.Rig.Hooks.Get(string(h.Agent))
	if !h.Beside || err != nil || current.WorkItem == nil || current.Status == hook.Completed {
		return ""
	}
	item := current.WorkItem
	if _, err := h.Rig.Retire.Get(string(item.AssignmentID)); err == nil {
		return "" // done, fail or block was said
	}
	what, where := quote.Sprintf("You hold bead %s (%s)", item.BeadID, quote.Line(item.Title, bead.MaxTitle)), quote.Line(h.Rig.Worktree(h.Agent), maxPath)
	if !carry.IsGiven(h.Rig, &current) {
		return what + quote.Sprintf(", and its worktree %s is not ready yet: `chipset up` makes it, and you get mail then.\n", where)
	}
	return what + quote.Sprintf(": work on it in %s, commit there, and end it with `chipset done --summary TEXT`, `chipset fail --reason TEXT` or "+
		"`chipset block --reason TEXT`.\n", where)
}

// maxPath bounds a path in an answer, in bytes.
const maxPath = 4 << 10

const forPerson quote.Text = "For the person:\n"

func (h *Hooks) reporting() quote.Text {
	if h.Assignment == "" {
		return ""
	}
	return "\nYou are shown new mail and nudges while you work. End with `chipset done --summary TEXT`, " +
		"`chipset fail --reason TEXT` or `chipset block --reason TEXT`.\n"
}

// afterTool counts as progress of the work.
func (h *Hooks) afterTool(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	if who == "" {
		return agentcli.Answer{}, h.touch(ctx, h.Agent)
	}
	err := h.touch(ctx, who)
	if t := &h.in.Tool; t.Does == agentcli.Spawns && t.SpawnedID != "" {
		_, claimErr := h.claim(ctx, t.ID, t.SpawnedID)
		err = errors.Join(err, claimErr)
	}
	if m := h.recall(who); m.KeptGoing > 0 {
		err = errors.Join(err, h.change(ctx, who, func(m *memory) bool { m.KeptGoing = 0; return true }))
	}
	a, tellErr := h.tellAll(ctx, who)
	return a, errors.Join(err, tellErr)
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
