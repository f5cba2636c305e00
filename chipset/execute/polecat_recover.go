package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Recover heals what an earlier process of this polecat left: its workers are
// ended first, because nothing else is safe while one of them writes; pipelines that
// were begun are finished; the session on the hook is taken over as one that has ended,
// for the first decisions. One of which nobody can tell what it left is begun again. All that waits while somebody has
// the session in hand.
func (p *Polecat) Recover(ctx context.Context) error {
	lease, err := p.takeLease(ctx)
	if errors.Is(err, state.ErrLockTimeout) {
		p.state.Phase = polecat.Lent
		return nil
	}
	if err != nil {
		return err
	}
	defer lease.Unlock()
	return p.recover(ctx)
}

func (p *Polecat) recover(ctx context.Context) error {
	if err := knowFirstTip(ctx, p.Rig, p.Now()); err != nil {
		return err
	}
	// Looked at before anything is ended: a worker that is told to end may
	// well say that it has finished.
	item, before := p.leftSession()
	if err := p.endOrphans(ctx); err != nil {
		return err
	}
	if err := p.finishPipelines(ctx); err != nil {
		return err
	}
	if item != nil {
		if err := p.takeOver(ctx, *item, before); err != nil {
			return err
		}
	}
	return p.freeLeftover(ctx)
}

// freeLeftover saves and frees the worktree of an assignment that was taken
// off the hook while no process of this polecat could see it.
func (p *Polecat) freeLeftover(ctx context.Context) error {
	use, known := carry.ReadWorktree(p.Rig, p.ID)
	if !known {
		return nil
	}
	h, err := p.Rig.Hooks.Get(string(p.ID))
	if errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrNotFound) {
		return nil // the first decision's
	}
	if err != nil || h.Assignment() == use.AssignmentID {
		return err
	}
	if err := p.save(ctx, use.AssignmentID, use.BeadID, use.Session, "the assignment was taken away"); err != nil {
		return err
	}
	if err := p.tellTaken(ctx, hook.WorkItem{AssignmentID: use.AssignmentID, BeadID: use.BeadID, Session: use.Session}); err != nil {
		return err
	}
	if err := carry.FreeWorktree(ctx, p.Rig, p.ID); err != nil {
		p.tell(event.WorktreeNotReleased(p.ID, event.Work{Bead: use.BeadID, Assignment: use.AssignmentID, Session: use.Session}, err.Error()))
	}
	return nil
}

func (p *Polecat) endOrphans(ctx context.Context) error {
	mine := func(env map[string]string) bool {
		return env[process.EnvSession] != "" && env["CHIPSET_AGENT"] == string(p.ID) && sameFolder(env["CHIPSET_DIR"], p.Rig.Dir)
	}
	n, err := process.KillOrphans(ctx, mine, p.Rig.Def.Worker.Grace, p.leftRunning()...)
	if n > 0 {
		p.tell(event.WorkerStopped(p.ID, event.Work{}, fmt.Sprintf("%d processes of an earlier session", n)))
		p.Say("%s: ended %d processes of an earlier session", p.ID, n)
	}
	return err
}

// sameFolder reports whether two paths are one folder, whatever links lead there.
func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return errOne == nil && errOther == nil && os.SameFile(one, other)
}

// leftRunning are the unfinished records of sessions that were this polecat's.
func (p *Polecat) leftRunning() []process.Exit {
	var sessions []state.SessionID
	if h, err := p.Rig.Hooks.Get(string(p.ID)); err == nil && h.WorkItem != nil {
		sessions = append(sessions, h.WorkItem.Session)
	}
	if use, known := carry.ReadWorktree(p.Rig, p.ID); known {
		sessions = append(sessions, use.Session)
	}
	var left []process.Exit
	for _, s := range slices.Compact(sessions) {
		if s == "" {
			continue
		}
		// A record that can't be read names nobody; the environment still does.
		if x, found, err := p.Rig.WorkerExit(s); err == nil && found && !x.Done {
			left = append(left, x)
		}
	}
	return left
}

// leftSession returns the active hook's item with the exit record of its session, and nil where
// there is none.
func (p *Polecat) leftSession() (*hook.WorkItem, process.Exit) {
	h, err := p.Rig.Hooks.Get(string(p.ID))
	if err != nil || h.Status != hook.Active || h.WorkItem.Session == "" {
		return nil, process.Exit{} // a hook that can't be read is the first decision's
	}
	x, found, err := p.Rig.WorkerExit(h.WorkItem.Session)
	if err != nil || !found || x.ID != string(h.WorkItem.Session) {
		return nil, process.Exit{}
	}
	return h.WorkItem, x
}

// takeOver makes the session that an earlier process left this one's, as a worker that has ended.
// before is its exit record as it was before anything was ended. A session whose attempt is over, or
// that may have left something torn, stays as it is.
func (p *Polecat) takeOver(ctx context.Context, item hook.WorkItem, before process.Exit) error {
	_, err := p.Rig.Retire.Get(string(item.AssignmentID))
	if !errors.Is(err, state.ErrNotFound) {
		return err
	}
	b, err := p.Rig.Beads.Get(string(item.BeadID))
	if err != nil {
		return nil //nolint:nilerr // the first decision's
	}
	preset, err := p.preset(&b)
	if err != nil {
		return nil //nolint:nilerr // a new session tells
	}
	x, found, err := p.Rig.WorkerExit(item.Session)
	if err != nil || !found {
		return err
	}
	if !x.Settled {
		// Unless its supervisor was killed on a machine that ran on, it may be torn.
		if x.Done && x.Code >= 0 || !x.Unbroken(p.Rig.Worktree(p.ID)) {
			return nil
		}
		if err := process.SyncTree(p.Rig.Worktree(p.ID)); err != nil {
			return err
		}
	}
	x.Orphaned = x.Orphaned || !before.Done
	w := p.left(item, preset)
	w.convoy, w.startedAt = b.ConvoyID, x.StartedAt
	p.describeExit(ctx, w, x)
	if w.exit.Resumable {
		if w.exit.Resumable, err = p.resumable(ctx, w); err != nil {
			return err
		}
	}
	p.worker = w
	return nil
}

// left is the worker of a session of an earlier process, as its transcript tells.
func (p *Polecat) left(item hook.WorkItem, preset agentcli.Preset) *worker {
	c := clients.Of(preset)
	rec := agentcli.ReadProgress(p.Rig.Tree, item.Session)
	if rec != nil {
		c = clients.Named(rec.Client)
	}
	w := &worker{assignment: item.AssignmentID, bead: item.BeadID, session: item.Session, preset: preset, talk: newTalk(c),
		log: p.Rig.Tree.Abs(workerLog(item.Session))}
	if rec != nil {
		w.talk.takeOver(rec, w.log)
	}
	return w
}

// resumable reports whether a session that an earlier process left can go on: its client is still
// that of the bead, and its worktree is as it left it. The locks of a git that was killed are removed.
func (p *Polecat) resumable(ctx context.Context, w *worker) (bool, error) {
	if w.talk.name != clients.Of(w.preset).Preset.Name {
		return false, nil
	}
	whole, err := carry.WorktreeWhole(ctx, p.Rig, p.ID, w.session)
	if err != nil || !whole {
		return false, err
	}
	return true, p.Rig.Git.In(p.Rig.Worktree(p.ID)).ClearLocks(ctx)
}

// finishPipelines finishes what was past its point of no return, oldest first.
// One that can't be finished now does not keep the polecat from its other work.
func (p *Polecat) finishPipelines(ctx context.Context) error {
	all, _, err := p.Rig.Retire.All()
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b retire.Record) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	for _, rec := range all {
		if rec.AgentID != p.ID || rec.Stage.Final() {
			continue
		}
		if _, err := p.finish(ctx, rec); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p.tell(event.RetireUnfinished(p.ID, rec.Work(), err.Error()))
			p.Say("%s: %v", p.ID, err)
			continue
		}
		p.forgetSession(rec.Session)
	}
	return nil
}
