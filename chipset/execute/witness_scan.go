package execute

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/pause"
)

// openIncidents lists what stands open, oldest first. What can't be read is
// doctor's business.
func openIncidents(r *rig.Rig) ([]incident.Incident, error) {
	all, _, err := r.Incidents.All()
	open := slices.DeleteFunc(all, func(i incident.Incident) bool { return !i.Open() })
	slices.SortStableFunc(open, func(a, b incident.Incident) int { return a.OpenedAt.Compare(b.OpenedAt.Time) })
	return open, err
}

// scan looks at the whole rig. Files that can't be read are left out, but for
// hooks: a corrupt one is a finding.
func (w *witnessRunner) scan() (*witness.Scan, error) {
	r := w.Rig
	s := &witness.Scan{Disk: environment.DiskOf(r.Tree.Root()), Backlog: w.backlog}
	beads, err := r.Beads.Since(w.seen)
	if err != nil {
		return nil, err
	}
	w.backlog.Follow(beads)
	w.seen = beads.Next
	queue, _, err := r.Queue.Unfinished()
	if err != nil {
		return nil, err
	}
	s.Queue = witness.QueueOf(queue, w.backlog)
	if s.Dispatches, _, err = r.Dispatch.Select(func(d *dispatch.Record) bool { return d.Stage != dispatch.Confirmed }); err != nil {
		return nil, err
	}
	if s.MayorMail, _, err = r.Mailbox(r.Mayor()).Unread(); err != nil {
		return nil, err
	}
	if w.pauses, err = r.Pauses.InForce(); err != nil {
		return nil, err
	}
	if s.Agents, err = w.agents(); err != nil {
		return nil, err
	}
	s.Overdue, err = w.overdue(s.Agents)
	maps.DeleteFunc(w.reminded, func(request mail.Name, _ bool) bool {
		return !slices.ContainsFunc(s.Overdue, func(t mail.TaskStatus) bool { return t.Request == request })
	})
	s.Reminded = w.reminded
	client := policy.Clients(r.Def)
	s.Held = func(b *bead.Bead) bool {
		return len(w.pauses) > 0 && pause.Holding(w.pauses, client(b.Worker), b) != nil
	}
	return s, err
}

func (w *witnessRunner) agents() ([]witness.Agent, error) {
	r := w.Rig
	known, _, err := r.Agents.All()
	if err != nil {
		return nil, err
	}
	all, _, err := r.Hooks.All()
	if err != nil {
		return nil, err
	}
	hooks := make(map[state.AgentID]hook.Hook, len(all))
	for _, h := range all {
		hooks[h.AgentID] = h
	}
	found := make([]witness.Agent, 0, len(known))
	for _, a := range known {
		_, alive := r.Alive(a.ID)
		seen := witness.Agent{ID: a.ID, Role: a.Role, Status: a.Status, Alive: alive || a.ID == w.ID, Session: a.IsSession()}
		h, ok := hooks[a.ID]
		switch {
		case ok:
			seen.Hook = h
			seen.Stall = w.stallOf(&h)
			if seen.Asks, err = w.asks(&h); err != nil {
				return nil, err
			}
		case a.Role != agent.Human:
			if seen.Hook, err = r.Hooks.Get(string(a.ID)); err != nil {
				seen.Corrupt = corruption(err)
			}
		}
		found = append(found, seen)
	}
	return found, nil
}

// asks reports whether silent work stands still for an answer: its worker waits for
// it, or has ended its turn, or waits for a pause, or a person has its session. Nobody need look while it gets on.
func (w *witnessRunner) asks(h *hook.Hook) (bool, error) {
	if h.Status != hook.Active || w.Now().Sub(h.LastActivity.Time) < w.Rig.Def.GUPP.Thresholds.StallDetection/2 {
		return false, nil
	}
	if slices.ContainsFunc(w.pauses, func(p pause.Pause) bool { return slices.Contains(p.Waiting, h.WorkItem.BeadID) }) {
		return true, nil
	}
	if w.Rig.IsLent(h.AgentID) {
		return true, nil
	}
	open, err := actor.OpenQuestions(w.Rig, h.AgentID, h.WorkItem)
	if errors.Is(err, state.ErrRefused) {
		return false, nil // one message that can't be read must not blind it to all agents
	}
	return len(open) > 0, err
}

func corruption(err error) string {
	if errors.Is(err, state.ErrNotFound) {
		return "the agent is registered, but has no hook"
	}
	return err.Error()
}

// stallOf is the threshold of the worker that does the hook's bead, 0 for the
// rig's own.
func (w *witnessRunner) stallOf(h *hook.Hook) time.Duration {
	if h.WorkItem == nil {
		return 0
	}
	worker := w.Rig.Def.Worker.Default
	if b := w.backlog.Get(h.WorkItem.BeadID); b != nil && b.Worker != "" {
		worker = b.Worker
	}
	preset, _ := w.Rig.Def.Worker.Preset(worker)
	return preset.StallDetection
}
