package execute

import (
	"context"
	"errors"
	"os/exec"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// note stores what the end of an attempt means for the pauses, and tells whoever
// watches of one that begins.
func (b *base) note(ctx context.Context, e pause.Ended) error {
	began, err := b.Rig.Pauses.Note(ctx, e, policy.Pauses(b.Rig.Def))
	if began != nil {
		b.Say("%s", began)
	}
	return err
}

// ---- polecat ----------------------------------------------------------------

// finish carries a retirement out. The pauses come first: a bead that is open again
// must not be slung into the same fault.
func (p *Polecat) finish(ctx context.Context, rec retire.Record) (retire.Record, error) {
	if !rec.Stage.Final() {
		p.restoreObjects(ctx, rec.Work())
		b, err := p.Rig.Beads.Get(string(rec.BeadID))
		if err == nil {
			err = p.note(ctx, pause.Ended{Try: pause.Try{At: rec.CreatedAt, BeadID: b.ID, Assignment: rec.AssignmentID},
				Fault: rec.Fault, Client: policy.Client(p.Rig.Def, b.Worker)})
		}
		if err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrCorrupt) {
			return rec, err
		}
	}
	rec, err := carry.Finish(ctx, p.retireDeps(), rec)
	if err != nil {
		if ctx.Err() == nil && environment.TargetLost(ctx, p.Rig) != nil {
			lost := environment.Target(ctx, p.Rig)
			err = errors.Join(err, lost.Pause(ctx, p.Rig))
		}
	}
	return rec, err
}

// hold takes note of a bead that waits, and of the fault that it waits for.
func (p *Polecat) hold(ctx context.Context, a polecat.Hold) error {
	b, err := p.Rig.Beads.Get(string(a.Item.BeadID))
	if err != nil {
		return err
	}
	client := policy.Client(p.Rig.Def, b.Worker)
	if !a.Fault.IsZero() {
		err := p.note(ctx, pause.Ended{Try: pause.Try{At: p.Now(), BeadID: b.ID, Assignment: a.Item.AssignmentID}, Fault: a.Fault, Client: client})
		if err != nil {
			return err
		}
	}
	for _, scope := range pause.Needs(client, &b) {
		if err := p.Rig.Pauses.Change(ctx, scope, func(w *pause.Pause) error { return w.Wait(b.ID, p.Now()) }); err != nil {
			return err
		}
	}
	p.Say("%s: %s is waiting", p.ID, b.ID)
	return nil
}

// fetchPauses looks at the pauses of what the bead needs.
func (p *Polecat) fetchPauses(f *polecat.Facts) error {
	all, _, err := p.Rig.Pauses.All()
	if f.Bead == nil || err != nil || len(all) == 0 {
		return err
	}
	client := policy.Client(p.Rig.Def, f.Bead.Worker)
	needs := pause.Needs(client, f.Bead)
	f.Held = pause.Holding(all, client, f.Bead) != nil
	budgets := slices.DeleteFunc(all, func(p pause.Pause) bool { return p.Kind != fault.Budget || !slices.Contains(needs, p.Scope) })
	f.OutOfBudget = pause.Holding(budgets, client, f.Bead) != nil
	for i := range budgets {
		b, w := &budgets[i], p.worker
		if w != nil && w.exit != nil && b.EndedAt != nil && b.Since.Before(w.endedAt.Time) && b.EndedAt.After(w.endedAt.Time) {
			f.Granted = b.Reason
		}
	}
	return nil
}

// ---- mayor ------------------------------------------------------------------

// pauses reads those in force, and looks at what can be seen of their causes.
func (m *Mayor) pauses(ctx context.Context, f *mayor.Facts) (err error) {
	if err := m.keepBudgets(ctx); err != nil {
		return err
	}
	f.Pauses, err = m.Rig.Pauses.InForce()
	f.Mended = map[pause.Scope]bool{}
	for i := range f.Pauses {
		p := &f.Pauses[i]
		if p.Class == fault.Capacity || !p.Waits(f.Now) {
			continue
		}
		there, known := m.cause(ctx, p)
		switch {
		case known && there:
			m.causes[p.Scope] = p.Tries
		case known && m.causes[p.Scope] == p.Tries, p.UpdatedAt.Before(m.started.Time): // whoever starts the rig has mended it, maybe
			f.Mended[p.Scope] = true
		}
	}
	return err
}

// roomAgain is how many bytes must be free on a disk that was full.
const roomAgain = 64 << 20

// cause reports whether the cause of a pause is still there. known is false where only
// a probe can tell.
func (m *Mayor) cause(ctx context.Context, p *pause.Pause) (there, known bool) {
	switch p.Kind {
	case fault.TargetGone:
		_, _, err := carry.TargetTip(ctx, m.Rig)
		return err != nil, true
	case fault.DiskFull:
		disk := environment.DiskOf(m.Rig.Tree.Root())
		return disk.Free < roomAgain, disk.Total > 0
	case fault.NoPermission, fault.WorktreeFailed:
		for _, dir := range []string{m.Rig.Tree.Root(), m.Rig.Git.CommonDir()} {
			if unix.Access(dir, unix.W_OK) != nil {
				return true, true
			}
		}
		return false, true
	case fault.ClientMissing, fault.ClientRefused:
		preset, err := agentcli.ResolveWorker(m.workerOf(p), clients.PresetsOf(m.Rig.Def))
		if err == nil {
			_, err = exec.LookPath(preset.Command[0])
		}
		return err != nil, true
	default: // a service, a key, a limit
		return false, false
	}
}

// workerOf is the worker of the bead that was tried last.
func (m *Mayor) workerOf(p *pause.Pause) string {
	if n := len(p.Tried); n > 0 {
		if b := m.backlog.Get(p.Tried[n-1].BeadID); b != nil && b.Worker != "" {
			return b.Worker
		}
	}
	return m.Rig.Def.Worker.Default
}

func (m *Mayor) admit(ctx context.Context, a mayor.Admit) error {
	return m.Rig.Pauses.Change(ctx, a.Scope, func(p *pause.Pause) error { return p.Admit(a.Beads, m.Now()) })
}

func (m *Mayor) lift(ctx context.Context, scope pause.Scope) error {
	return m.Rig.Pauses.Change(ctx, scope, func(p *pause.Pause) error { return p.Lift(m.Now()) })
}
