package session

import (
	"context"
	"errors"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
)

const (
	planning = "This repository has a rig that dispatches work. A plan that is more than one step becomes beads: " +
		"`chipset work add TITLE -d TEXT --accept TEXT`, with `--blocked-by ID` for what must land first. " +
		"Each is done in a worktree of its own and lands after its tests pass."
	planned = "Before you carry the plan out yourself: are its parts beads yet (`chipset work list`)? " +
		"What others can do side by side belongs to the rig; what is on your own hook is yours to do."
)

// asItself returns the input of a subagent's call that runs a command of the rig, with its identity set for that command:
// the environment of the session is its parent's. "" does not change the call.
func (h *Hooks) asItself(who state.AgentID) string {
	t := &h.in.Tool
	if h.in.AgentID == "" || who == "" || h.Prepend == nil || t.Does != agentcli.Runs || !strings.Contains(t.Given, "chipset") {
		return ""
	}
	return h.Prepend(h.in, "export CHIPSET_AGENT="+string(who)+"; ")
}

// beforeTool guides an agent into and out of its plan mode, and chooses the identity of a
// subagent that it spawns.
func (h *Hooks) beforeTool(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	var text quote.Text
	switch h.in.Tool.Does {
	case agentcli.Spawns:
		return h.spawning(ctx)
	case agentcli.EntersPlanning:
		text = planning
	case agentcli.LeavesPlanning:
		text = planned
	case agentcli.Looks, agentcli.Edits, agentcli.Runs:
		a, err := h.beforeChange()
		if a == (agentcli.Answer{}) && err == nil {
			a.Input = h.asItself(who)
		}
		return a, err
	}
	if who == "" {
		return agentcli.Answer{Context: text}, nil
	}
	// Some versions of a client ignore this answer, so the next step repeats it.
	err := h.change(ctx, who, func(m *memory) bool { m.Notices = append(m.Notices, text); return true })
	return agentcli.Answer{Context: text}, err
}

// idle counts a teammate's turn as progress, and keeps it going while work is on
// its hook.
func (h *Hooks) idle(ctx context.Context) (agentcli.Answer, error) {
	if h.in.Teammate == "" {
		return agentcli.Answer{}, nil
	}
	id := h.identity(h.in.Teammate)
	if _, err := h.Rig.Agents.Get(string(id)); err != nil {
		if errors.Is(err, state.ErrNotFound) {
			return agentcli.Answer{}, nil // one that the rig does not know
		}
		return agentcli.Answer{}, err
	}
	err := h.touch(ctx, id)
	a, stopErr := h.stop(ctx, id)
	return a, errors.Join(err, stopErr)
}

// taskCompleted ends the assignment of the bead that a completed task is tagged
// with, if it is that of the teammate, of the subagent, or of the session.
func (h *Hooks) taskCompleted(ctx context.Context, who state.AgentID) (agentcli.Answer, error) {
	tagged, is := agentcli.TaggedBead(h.in.TaskSubject + "\n" + h.in.TaskDescription)
	if !is {
		return agentcli.Answer{}, nil
	}
	b, err := h.Rig.Beads.Get(tagged)
	if errors.Is(err, state.ErrNotFound) {
		return agentcli.Answer{}, nil // a tag of another rig
	}
	if err != nil || b.Status.Finished() {
		return agentcli.Answer{}, err
	}
	candidates := []state.AgentID{who, h.Agent}
	if h.in.Teammate != "" {
		candidates = append([]state.AgentID{h.identity(h.in.Teammate)}, candidates...)
	}
	for _, id := range candidates {
		item, active := h.work(id)
		if item.BeadID != b.ID {
			continue
		}
		if !active {
			return agentcli.Answer{}, nil // ended already
		}
		_, _, err := carry.Publish(ctx, h.Rig, retire.Record{AssignmentID: item.AssignmentID, AgentID: id, Session: item.Session,
			Outcome: retire.Done, Summary: quote.Cut(h.in.TaskSubject, maxLast)})
		return agentcli.Answer{}, err
	}
	notice := quote.Sprintf("The task is completed, but bead %s is not on your hook, so this does not end it: `chipset why %s`.", b.ID, b.ID)
	return agentcli.Answer{}, h.change(ctx, h.Agent, func(m *memory) bool { m.Notices = append(m.Notices, notice); return true })
}
