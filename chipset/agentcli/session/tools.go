package session

import (
	"context"
	"errors"
	"regexp"
	"sync"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/prompt"
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

// beforeTool guides an agent into and out of its plan mode, and keeps the name
// of a subagent it spawns.
func (h *Hooks) beforeTool(ctx context.Context, who state.AgentID) (Answer, error) {
	if s, is := h.in.spawn(); is {
		return Answer{}, h.spawning(s)
	}
	text := ""
	switch h.in.ToolName {
	case "EnterPlanMode":
		text = planning
	case "ExitPlanMode":
		text = planned
	default:
		return h.beforeChange()
	}
	// Not every version of a client listens here: it is said again at the next step.
	err := h.change(ctx, who, func(m *memory) bool { m.Notices = append(m.Notices, text); return true })
	return Answer{Context: text}, err
}

// idle counts a teammate's turn as life, and keeps it going while work is on
// its hook.
func (h *Hooks) idle(ctx context.Context) (Answer, error) {
	if h.in.TeammateName == "" {
		return Answer{}, nil
	}
	id := h.identity(h.in.TeammateName)
	if _, err := h.Rig.Agents.Get(string(id)); err != nil {
		if errors.Is(err, state.ErrNotFound) {
			return Answer{}, nil // one that the rig was never told of
		}
		return Answer{}, err
	}
	err := h.touch(ctx, id)
	a, stopErr := h.stop(ctx, id)
	return a, errors.Join(err, stopErr)
}

// beadTag ties a task of a client to a bead.
var beadTag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bchipset:bead:([a-z0-9][a-z0-9._-]{0,63})`)
})

// taskCompleted ends the assignment of the bead that a completed task is tagged
// with, if it is that of the teammate, of the subagent, or of the session.
func (h *Hooks) taskCompleted(ctx context.Context) (Answer, error) {
	tag := beadTag().FindStringSubmatch(h.in.TaskSubject + "\n" + h.in.TaskDescription)
	if tag == nil {
		return Answer{}, nil
	}
	b, err := h.Rig.Beads.Get(tag[1])
	if errors.Is(err, state.ErrNotFound) {
		return Answer{}, nil // a tag of somebody else's rig
	}
	if err != nil || b.Status.Finished() {
		return Answer{}, err
	}
	candidates := []state.AgentID{h.who(), h.Agent}
	if h.in.TeammateName != "" {
		candidates = append([]state.AgentID{h.identity(h.in.TeammateName)}, candidates...)
	}
	for _, id := range candidates {
		item, active := h.work(id)
		if item.BeadID != b.ID {
			continue
		}
		if !active {
			return Answer{}, nil // ended already
		}
		_, _, err := carry.Publish(ctx, h.Rig, retire.Record{AssignmentID: item.AssignmentID, AgentID: id, Session: item.Session,
			Outcome: retire.Done, Summary: prompt.Cut(h.in.TaskSubject, maxLast)})
		return Answer{}, err
	}
	notice := "The task was completed, but bead " + string(b.ID) + " is on no hook of yours, so nothing lands by it: `chipset why " + string(b.ID) + "`."
	return Answer{}, h.change(ctx, h.who(), func(m *memory) bool { m.Notices = append(m.Notices, notice); return true })
}
