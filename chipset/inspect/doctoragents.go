package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/pipeline"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/runtime"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// checkRecords tells of what a process left half done and nobody is finishing.
func checkRecords(ctx context.Context, r *rig.Rig) ([]finding, error) {
	snap, err := look(ctx, r)
	if err != nil {
		return nil, err
	}
	c := &relations{snapshot: snap, r: r}
	for i := range c.dispatch {
		d := &c.dispatch[i]
		if d.Stage == dispatch.Confirmed {
			continue
		}
		id := d.BeadID
		f := c.add("dispatch-unfinished", r.Dispatch.Path(string(id)), Warning, "the mayor finishes or undoes it when it starts; so does chipset doctor --fix",
			"the dispatch to %s stopped at the stage %s", d.AgentID, d.Stage)
		f.repair = func(ctx context.Context) error {
			_, err := pipeline.HealDispatch(ctx, r, id)
			return err
		}
	}
	for _, a := range slices.Sorted(maps.Keys(c.retire)) {
		end := c.retire[a]
		p := r.Retire.Path(string(a))
		if _, alive := c.alive[end.AgentID]; !alive && !end.Stage.Final() {
			c.add("retire-unfinished", p, Warning, "its polecat finishes it when it starts: chipset up",
				"the end of this attempt stopped at the stage %s, and %s does not run", end.Stage, end.AgentID)
		}
		if c.byID[end.BeadID] == nil {
			c.add("retire-bead", p, Warning, "", "its bead %s does not exist", end.BeadID)
		}
	}
	for i := range c.queue {
		q := &c.queue[i]
		if _, alive := c.alive[r.Refinery()]; !alive && q.Status == mergequeue.Merging {
			c.add("merge-unfinished", r.Queue.Path(string(q.ID)), Warning, "the refinery starts it again or finishes it: chipset up",
				"it stopped at the stage %s, and the refinery does not run", q.Stage)
		}
	}
	return c.found, nil
}

// checkAgents checks identities, hooks and incidents against each other.
func checkAgents(ctx context.Context, r *rig.Rig) ([]finding, error) {
	snap, err := look(ctx, r)
	if err != nil {
		return nil, err
	}
	c := &relations{snapshot: snap, r: r}
	known := map[state.AgentID]bool{}
	for _, a := range c.agents {
		known[a.ID] = true
		if err := c.agent(&a); err != nil {
			return c.found, err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.hooks)) {
		if !known[id] {
			c.orphan(id)
		}
	}
	if err := c.human(known); err != nil {
		return c.found, err
	}
	if r.Def != nil {
		for _, a := range r.Def.Agents() {
			if !known[state.AgentID(a.ID)] {
				c.add("agent-missing", agent.Dir.Join(a.ID+".json"), Warning, "chipset up registers it", "%s is in chipset.yaml, but not registered", a.ID)
			}
		}
	}
	c.openIncidents()
	return c.found, nil
}

// orphan reports a hook whose agent is not registered. One that nothing hangs on
// and nobody will register is moved away.
func (c *relations) orphan(id state.AgentID) {
	sev := Warning // an empty one is left by a crash of init, and the next start registers its agent
	if c.hooks[id].Status != hook.Empty {
		sev = Error
	}
	p := c.r.Hooks.Path(string(id))
	f := c.add("hook-without-agent", p, sev, "name the agent in chipset.yaml and start the rig", "%s is not registered", id)
	switch {
	case id == state.Human:
		f.Hint = hintHuman
	case c.r.Def == nil || sev == Error || registered(c.r, string(id)):
	case !slices.ContainsFunc(c.r.Def.Agents(), func(a definition.Agent) bool { return a.ID == string(id) }):
		f.Hint = hintQuarantine + ", or name the agent in chipset.yaml and start the rig"
		f.repair = func(ctx context.Context) error { return quarantineOrphan(ctx, c.r, id) }
	}
}

// quarantineOrphan moves an empty hook away whose agent is still not registered.
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
		return state.Conflictf("hook "+string(id), "it is in use by now")
	}
	_, err = r.Tree.Quarantine(r.Hooks.Path(string(id)), "its agent is not registered", r.Clock.Now())
	return err
}

const hintHuman = "chipset up makes it again"

// human reports that the person's own record or hook is missing, which no
// definition names.
func (c *relations) human(known map[state.AgentID]bool) error {
	p := c.r.Agents.Path(string(state.Human))
	there, err := c.r.Tree.Exists(p)
	if err != nil || there || known[state.Human] {
		return err // a hook that is missing is another finding, and so is a record that can't be read
	}
	c.add("agent-missing", p, Warning, hintHuman, "the person has no record")
	h := c.r.Hooks.Path(string(state.Human))
	if there, err = c.r.Tree.Exists(h); err == nil && !there {
		c.add("hook-missing", h, Warning, hintHuman, "the person has no hook")
	}
	return err
}

func (c *relations) agent(a *agent.Agent) error {
	h := c.hooks[a.ID]
	if h == nil {
		if there, err := c.r.Tree.Exists(c.r.Hooks.Path(string(a.ID))); err != nil || there {
			return err // it can't be read, which is another finding
		}
		id := a.ID
		f := c.add("hook-missing", c.r.Hooks.Path(string(id)), Error, "chipset doctor --fix makes it anew from what the beads say",
			"%s is registered, but has no hook", id)
		f.repair = func(ctx context.Context) error { return rebuildHook(ctx, c.r, id) }
		return nil
	}
	if a.Status != agent.Retired {
		return nil
	}
	if h.Status != hook.Empty {
		c.add("retired-agent", c.r.Hooks.Path(string(a.ID)), Warning, "the mayor gives its work to another", "%s is retired, but its hook is %s", a.ID, h.Status)
	}
	unread, _, err := c.r.Mailbox(a.ID).Unread()
	if len(unread) > 0 {
		c.add("retired-agent", c.r.Mailbox(a.ID).Dir(), Warning, "chipset mail inbox "+string(a.ID), "%s is retired and has %s", a.ID, count(len(unread), "unread message"))
	}
	return err
}

func (c *relations) openIncidents() {
	first := map[incident.Key]state.IncidentID{}
	for i := range c.incidents {
		in := &c.incidents[i]
		if !in.Open() {
			continue
		}
		p := c.r.Incidents.Path(string(in.ID))
		if other, twice := first[in.Key()]; twice {
			c.add("incident-twice", p, Error, "", "%s is open for the same agent, assignment and kind", other)
		}
		first[in.Key()] = in.ID
		if h := c.hooks[in.AgentID]; in.AssignmentID != "" && h != nil && h.Assignment() != in.AssignmentID {
			c.add("incident-stale", p, Info, "the witness resolves it on its next patrol", "the assignment %s is no longer on the hook of %s", in.AssignmentID, in.AgentID)
		}
	}
}

// workerDir is where the supervisors of workers keep their exit records.
const workerDir = state.RunDir + "/workers"

// checkProcesses looks for workers whose polecat is gone. Their supervisor ends
// them within seconds; one that is still there outlived it.
func checkProcesses(_ context.Context, r *rig.Rig) ([]finding, error) {
	entries, err := r.Tree.List(workerDir)
	if err != nil {
		return nil, err
	}
	hooks, _, err := r.Hooks.All()
	if err != nil {
		return nil, err
	}
	owner := map[string]state.AgentID{}
	for i := range hooks {
		if w := hooks[i].WorkItem; w != nil && w.Session != "" {
			owner[string(w.Session)] = hooks[i].AgentID
		}
	}
	var found []finding
	for _, e := range entries {
		p := workerDir.Join(e.Name())
		exit, there, err := runtime.ReadExit(r.Tree.Abs(p))
		if errors.Is(err, runtime.ErrBadRecord) {
			found = append(found, finding{Finding: Finding{Rule: "worker-record", Path: string(p), Severity: Warning, Detail: err.Error()}})
			continue
		}
		if err != nil || !there || !exit.Alive() {
			continue
		}
		if _, alive := r.Alive(owner[exit.ID]); alive && owner[exit.ID] != "" {
			continue
		}
		found = append(found, finding{Finding: Finding{Rule: "orphaned-worker", Path: string(p), Severity: Error,
			Detail: "the worker of the session " + exit.ID + " still runs, but no polecat follows it",
			Hint:   "chipset up ends it and saves its work"}})
	}
	return found, nil
}
