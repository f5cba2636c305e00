package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Crew returns the agent that a client speaks as in a person's own session, and
// registers it if it is new: name itself, or name-crew if another agent of this rig
// has that name. Its role is crew, so that what a model says is never taken for the
// person's word. Durable when it returns nil.
func Crew(ctx context.Context, r *rig.Rig, client, name string) (state.AgentID, error) {
	for _, candidate := range []string{name, name + "-crew"} {
		id, err := state.ParseAgentID(candidate)
		if err != nil {
			return "", Invalidf("crew: %v", err)
		}
		if a, err := r.Agents.Get(string(id)); err == nil && a.Parent == id && a.Status == agent.Active && a.IsSession() {
			return id, nil // the usual case needs no lock
		}
		// Its parent is itself, so that a start of the rig does not retire it as unnamed.
		err = Adopt(ctx, r, id, id)
		if errors.Is(err, state.ErrConflict) {
			continue // a role of this rig has the name
		}
		if err == nil {
			err = r.Agents.SetClient(ctx, id, client, r.Clock.Now())
		}
		return id, err
	}
	return "", state.Conflictf("crew "+name, "the rig has other agents of that name")
}

// WhereToWork tells a person's own session that has claimed a bead where to work on it. It waits for the worktree, at most
// patience, unless no process runs that could make it. For other agents it returns "".
func (a *Actor) WhereToWork(ctx context.Context, patience time.Duration) (string, error) {
	me, err := a.Agents.Get(string(a.ID))
	if err != nil || !me.IsSession() {
		return "", err
	}
	ready := func() (bool, error) {
		h, err := a.Hooks.Get(string(a.ID))
		return err == nil && carry.IsGiven(a.Rig, &h), err
	}
	if !a.Runs(a.ID) {
		return fmt.Sprintf("No process runs the rig: its worktree %s is made once chipset up does.", a.Worktree(a.ID)), nil
	}
	err = Wait(ctx, a.Rig, "work claim", patience, ready, carry.WorktreeRecords)
	if errors.Is(err, ErrTimeout) {
		return fmt.Sprintf("Its worktree %s is being made, and you get mail when it is ready.", a.Worktree(a.ID)), nil
	}
	return fmt.Sprintf("Its worktree is %s. Work there, and end it with chipset done, fail or block.", a.Worktree(a.ID)), err
}

// Runs reports whether a process runs the agent, or the rig as a whole.
func (a *Actor) Runs(id state.AgentID) bool {
	_, own := a.Alive(id)
	_, whole := a.Alive(a.Mayor())
	return own || whole
}

// Adopt registers the helper of an agent, or revives it. The hook is made first,
// because a registered agent without one counts as corrupt. Errors:
// state.ErrConflict for a name of another agent. Durable when it returns nil.
func Adopt(ctx context.Context, r *rig.Rig, id, parent state.AgentID) error {
	a, err := r.Agents.Get(string(id))
	if err == nil && a.Parent != parent {
		return state.Conflictf("agent "+string(id), "is not a helper of %s", parent)
	}
	now := r.Clock.Now()
	if err := r.Hooks.Ensure(ctx, id, now); err != nil {
		return err
	}
	return r.Agents.Adopt(ctx, id, parent, r.Name(), now)
}

// Rest records that a helper's session is over. Adopt revives it.
func Rest(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	return r.Agents.SetStatus(ctx, id, agent.Terminated, r.Clock.Now())
}

// Remove removes an agent that is not in the definition from the rig: that of a session,
// a subagent, or one that stands for an agent of another system. Its records and mail
// stay, and nothing is added to them until a session of its name begins again. Durable
// when it returns nil. Errors: state.ErrConflict for an agent that the definition names,
// that runs, or that holds something; the error names everything that it holds.
func (a *Actor) Remove(ctx context.Context, id state.AgentID) error {
	if err := a.Authority("removing " + string(id)); err != nil {
		return err
	}
	gone, err := a.Agents.Get(string(id))
	switch {
	case err != nil:
		return err
	case gone.Status == agent.Retired:
		return state.Conflictf("agent "+string(id), "is already removed")
	case gone.Role != agent.Crew || gone.Parent == "":
		return WithHint(state.Conflictf("agent "+string(id), "is named by the definition"), "remove it from chipset.yaml; the next start retires it")
	}
	holds, err := a.holdings(id)
	if err != nil {
		return err
	}
	if len(holds) > 0 {
		return WithHint(state.Conflictf("agent "+string(id), "can't be removed: it has %s", strings.Join(holds, ", ")),
			"chipset mail inbox "+string(id)+" --unread, chipset hook show "+string(id))
	}
	return a.Agents.Retire(ctx, id, "removed by "+string(a.ID), a.Clock.Now())
}

// holdings describes what would have no owner if the agent were removed.
func (a *Actor) holdings(id state.AgentID) ([]string, error) {
	var holds []string
	if stamp, alive := a.Alive(id); alive {
		holds = append(holds, fmt.Sprintf("a process (%d)", stamp.PID))
	}
	h, err := HookOf(a.Rig, id)
	if err != nil {
		return nil, err
	}
	if h.WorkItem != nil {
		holds = append(holds, string(h.WorkItem.BeadID)+" on its hook")
	}
	unread, bad, err := a.Mailbox(id).Unread()
	if err != nil {
		return nil, err
	}
	if n := len(unread) + len(bad); n > 0 {
		holds = append(holds, wording.Count(n, "unread message"))
	}
	tasks, err := mail.TasksFor(a.Mailbox(id), a.Mailbox)
	if err != nil {
		return nil, err
	}
	tasks = slices.DeleteFunc(tasks, func(t mail.TaskStatus) bool { return t.State.Final() })
	if len(tasks) > 0 {
		holds = append(holds, wording.Count(len(tasks), "unfinished task"))
	}
	return holds, nil
}

// Card holds the changes to an agent's card; a nil field stays as it is.
type Card struct {
	Description             *string
	Capabilities, AllowFrom *[]string
	MaxTasks                *int
}

// SetCard changes an agent's card. The mayor and the person may change any, others
// only their own. Errors: ErrInvalid, state.ErrConflict.
func (a *Actor) SetCard(ctx context.Context, id state.AgentID, c Card) (agent.Agent, error) {
	if id != a.ID {
		if err := a.Authority("changing the card of " + string(id)); err != nil {
			return agent.Agent{}, err
		}
	}
	if c.Description != nil && *c.Description != "" {
		if err := OneLine("the description", *c.Description, agent.MaxDescription); err != nil {
			return agent.Agent{}, err
		}
	}
	return a.Agents.ChangeCard(ctx, a.ID, id, func(card *agent.Agent) error {
		if c.Description != nil {
			card.Description = *c.Description
		}
		if c.Capabilities != nil {
			card.Capabilities = Words(*c.Capabilities)
		}
		if c.AllowFrom != nil {
			card.AllowFrom = Words(*c.AllowFrom)
		}
		if c.MaxTasks != nil {
			card.MaxTasks = *c.MaxTasks
		}
		if err := card.CheckCard(); err != nil {
			return Invalidf("%v", err)
		}
		card.UpdatedAt = a.Clock.Now()
		return nil
	})
}
