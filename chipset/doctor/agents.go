package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// unfinished reports what a process left half done and no running process finishes.
func (c *relations) unfinished(context.Context) error {
	for i := range c.Dispatch {
		d := &c.Dispatch[i]
		if d.Stage == dispatch.Confirmed {
			continue
		}
		id := d.BeadID
		if c.BeadByID[id] == nil && c.absent(c.r.Beads.Path(string(id))) {
			f := c.add("dispatch-bead", c.r.Dispatch.Path(string(id)), Warning, "", "its bead does not exist")
			f.repair = healDispatch(c.r, id)
			continue
		}
		f := c.add("dispatch-unfinished", c.r.Dispatch.Path(string(id)), Warning, "the mayor finishes or undoes it when it starts; so does chipset doctor --fix",
			"the dispatch to %s stopped at stage %s", d.AgentID, d.Stage)
		f.repair = healDispatch(c.r, id)
	}
	for _, a := range slices.Sorted(maps.Keys(c.Retire)) {
		end := c.Retire[a]
		p := c.r.Retire.Path(string(a))
		if _, alive := c.Alive[end.AgentID]; !alive && !end.Stage.Final() {
			f := c.add("retire-unfinished", p, Warning, "its polecat finishes it when it starts: chipset up; so does chipset doctor --fix",
				"the end of this attempt stopped at stage %s, and %s is not running", end.Stage, end.AgentID)
			c.heals(f, end.AgentID, agent.Polecat)
			f.repair = thenFinal(c.r, a, f.repair)
		}
		if c.BeadByID[end.BeadID] == nil {
			c.add("retire-bead", p, Warning, "", "its bead %s does not exist", end.BeadID)
		}
	}
	for i := range c.Queue {
		q := &c.Queue[i]
		if _, alive := c.Alive[c.r.Refinery()]; !alive && q.Status == mergequeue.Merging {
			f := c.add("merge-unfinished", c.r.Queue.Path(string(q.ID)), Warning, "the refinery starts it again or finishes it: chipset up; so does chipset doctor --fix",
				"it stopped at stage %s, and the refinery is not running", q.Stage)
			c.heals(f, c.r.Refinery(), agent.Refinery)
		}
	}
	return nil
}

// agents checks identities, hooks and incidents against each other.
func (c *relations) agents(context.Context) error {
	known := map[state.AgentID]bool{}
	for _, a := range c.Agents {
		known[a.ID] = true
		if err := c.agent(&a); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Hooks)) {
		if !known[id] {
			c.orphan(id)
		}
	}
	c.openIncidents()
	return nil
}

// orphan reports a hook whose agent is not registered. An empty one is moved away, unless
// the next start registers its agent.
func (c *relations) orphan(id state.AgentID) {
	sev := Warning // an empty one is left by a crash of init, and the next start registers its agent
	if c.Hooks[id].Status != hook.Empty {
		sev = Error
	}
	p := c.r.Hooks.Path(string(id))
	f := c.add("hook-without-agent", p, sev, "name the agent in chipset.yaml and start the rig", "%s is not registered", id)
	switch {
	case id == state.Human: // the rule for missing records makes it again
		f.Hint = "chipset up registers the person again; so does chipset doctor --fix"
	case c.r.Def == nil || sev == Error || registered(c.r, string(id)):
	case !slices.ContainsFunc(c.r.Def.Agents(), func(a definition.Agent) bool { return a.ID == string(id) }):
		f.Hint = hintQuarantine + ", or name the agent in chipset.yaml and start the rig"
		f.repair = func(ctx context.Context) error { return quarantineOrphan(ctx, c.r, id) }
	}
}

// quarantineOrphan moves an empty hook away, unless its agent has been registered meanwhile.
func quarantineOrphan(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	l, err := r.Tree.Lock(ctx, state.LockHook, string(id), hook.Dir)
	if err != nil {
		return err
	}
	defer l.Unlock()
	h, err := r.Hooks.Get(string(id))
	switch {
	case errors.Is(err, state.ErrNotFound):
		return nil
	case err != nil:
		return err
	case h.Status != hook.Empty || registered(r, string(id)):
		return state.Conflictf("hook "+string(id), "it is in use now")
	}
	_, err = r.Tree.Quarantine(r.Hooks.Path(string(id)), "its agent is not registered", r.Clock.Now())
	return err
}

func (c *relations) agent(a *agent.Agent) error {
	h := c.Hooks[a.ID]
	if h == nil {
		if there, err := c.r.Tree.Exists(c.r.Hooks.Path(string(a.ID))); err != nil || there {
			return err // it can't be read, which is another finding
		}
		id := a.ID
		f := c.add("hook-missing", c.r.Hooks.Path(string(id)), Error, "chipset doctor --fix rebuilds it from the beads",
			"%s is registered, but has no hook", id)
		f.repair = func(ctx context.Context) error { return rebuildHook(ctx, c.r, id) }
		return nil
	}
	if h.Status != hook.Empty && a.Role != agent.Polecat && !a.IsSession() {
		c.add("hook-role", c.r.Hooks.Path(string(a.ID)), Warning, "", "it is %s, but %s is a %s, which does not execute beads", h.Status, a.ID, a.Role)
	}
	if a.Status != agent.Retired {
		return nil
	}
	if h.Status != hook.Empty {
		c.add("retired-agent", c.r.Hooks.Path(string(a.ID)), Warning, "the mayor reassigns its work", "%s is retired, but its hook is %s", a.ID, h.Status)
	}
	unread, _, err := c.r.Mailbox(a.ID).Unread()
	if len(unread) > 0 {
		c.add("retired-agent", c.r.Mailbox(a.ID).Dir(), Warning, "chipset mail inbox "+string(a.ID), "%s is retired and has %s", a.ID, wording.Count(len(unread), "unread message"))
	}
	return err
}

func (c *relations) openIncidents() {
	first := map[incident.Key]state.IncidentID{}
	for i := range c.Incidents {
		in := &c.Incidents[i]
		if !in.Open() {
			continue
		}
		p := c.r.Incidents.Path(string(in.ID))
		if other, twice := first[in.Key()]; twice {
			f := c.add("incident-twice", p, Error, "", "%s is already open for the same agent, assignment and kind", other)
			f.repair = resolveTwin(c.r, in.ID, other)
		}
		first[in.Key()] = in.ID
		if c.Agent(in.AgentID) == nil {
			c.add("incident-agent", p, Warning, "", "it names %q, which is not registered", in.AgentID)
		}
		if h := c.Hooks[in.AgentID]; in.AssignmentID != "" && h != nil && h.Assignment() != in.AssignmentID {
			c.add("incident-stale", p, Info, "the witness resolves it on its next patrol", "the assignment %s is no longer on the hook of %s", in.AssignmentID, in.AgentID)
		}
	}
}
