package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/execute"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Repairs that are the roles' own recovery: the doctor takes the place of an agent that
// is not running, and holds its liveness lock meanwhile.

// substitute returns the agent in whose name the doctor acts.
func substitute(r *rig.Rig, id state.AgentID) execute.Agent {
	return execute.Agent{Rig: r, ID: id, Session: state.NewSessionID(), Say: func(string, ...any) {}}
}

// healable reports whether the roles' recovery can run at all.
func healable(r *rig.Rig) bool { return r.Def != nil && r.Git != nil }

// heals makes an agent's recovery the repair of a finding, if the agent has that role.
func (c *relations) heals(f *finding, id state.AgentID, role agent.Role) {
	if c.roleOf(id) != role || !healable(c.r) {
		return
	}
	heal := execute.HealPolecat
	if role == agent.Refinery {
		heal = execute.HealMerges
	}
	f.repair = func(ctx context.Context) error { return heal(ctx, substitute(c.r, id)) }
}

// thenFinal makes a repair fail if the attempt is not finished after it: a polecat that
// can't finish one attempt goes on with its other work.
func thenFinal(r *rig.Rig, a state.AssignmentID, heal func(context.Context) error) func(context.Context) error {
	if heal == nil {
		return nil
	}
	return func(ctx context.Context) error {
		if err := heal(ctx); err != nil {
			return err
		}
		end, err := r.Retire.Get(string(a))
		if err == nil && !end.Stage.Final() {
			err = state.Conflictf("attempt "+string(a), "is still at stage %s; chipset log says why", end.Stage)
		}
		return err
	}
}

func healDispatch(r *rig.Rig, id state.BeadID) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := carry.HealDispatch(ctx, r, id)
		return err
	}
}

// rescue repairs a worktree and saves its content. Without a definition, or for an
// unknown agent, it only repairs.
func rescue(r *rig.Rig, id state.AgentID, role agent.Role) func(context.Context) error {
	return func(ctx context.Context) error {
		if role == agent.Polecat && healable(r) {
			return execute.RescueWorktree(ctx, substitute(r, id))
		}
		return r.Substitute(ctx, id, state.NewSessionID(), func() error { return carry.MendCandidates(ctx, r, id) })
	}
}

// resolveTwin closes an incident that is open a second time.
func resolveTwin(r *rig.Rig, id, other state.IncidentID) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := r.Incidents.Update(ctx, string(id), func(in *incident.Incident) error {
			return in.Resolve("the same as "+string(other), r.Clock.Now())
		})
		return err
	}
}

// dropTwinRequest drops a pending request if another one of the same assignment is live or merged.
func dropTwinRequest(r *rig.Rig, id, other state.MergeID) func(context.Context) error {
	return func(ctx context.Context) error {
		kept, err := r.Queue.Get(string(other))
		if err != nil || !kept.Status.Live() && kept.Status != mergequeue.Merged {
			return errors.Join(err, state.Conflictf("merge request "+string(other), "is not live"))
		}
		_, err = r.Queue.Update(ctx, string(id), func(q *mergequeue.Request) error {
			if q.Status != mergequeue.Pending {
				return state.Conflictf("merge request "+string(id), "is %s", q.Status)
			}
			q.Reason = fmt.Sprintf("%s is for the same assignment", other)
			return q.Become(mergequeue.Dropped, r.Clock.Now())
		})
		return err
	}
}

// nameConvoy writes the convoy that lists a bead into the bead, unless it already names one.
func nameConvoy(ctx context.Context, r *rig.Rig, id state.BeadID, cv state.ConvoyID) error {
	_, err := r.Beads.Update(ctx, string(id), func(b *bead.Bead) error {
		if b.ConvoyID != "" {
			return state.ErrUnchanged
		}
		b.ConvoyID = cv
		b.Touch(r.Clock.Now())
		return nil
	})
	return err
}
