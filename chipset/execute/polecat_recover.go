package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Recover heals what an earlier process of this polecat left: its workers are
// ended first, because nothing else is safe while one of them writes; a worker
// that had finished by itself is retired for what it said; pipelines that were
// begun are finished. An attempt that was cut off is begun anew by the first
// decisions, which save its work.
func (p *Polecat) Recover(ctx context.Context) error {
	// Looked at before anything is ended: a worker that is told to end may
	// well say that it has finished.
	item, exit := p.finishedAlone(ctx)
	if err := p.endOrphans(ctx); err != nil {
		return err
	}
	if exit != nil {
		if err := p.publishExit(ctx, item, *exit); err != nil {
			return err
		}
	}
	if err := p.finishPipelines(ctx); err != nil {
		return err
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
	if err != nil || h.Assignment() == use.AssignmentID {
		return nil //nolint:nilerr // a hook that can't be read is the first decision's
	}
	if err := p.save(ctx, use.AssignmentID, use.BeadID, use.Session, "the assignment was taken away"); err != nil {
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

// finishedAlone returns how the hook's worker ended, if it ended by itself
// while nobody watched, and nil if it did not or nothing says so.
func (p *Polecat) finishedAlone(ctx context.Context) (*hook.WorkItem, *polecat.Exit) {
	h, err := p.Rig.Hooks.Get(string(p.ID))
	if err != nil || h.Status != hook.Active || h.WorkItem.Session == "" {
		return nil, nil // a hook that can't be read is the first decision's
	}
	s := h.WorkItem.Session
	x, found, err := p.Rig.WorkerExit(s)
	// What an exit that is not settled left may be torn: the assignment begins anew, its work is saved.
	if err != nil || !found || !x.Done || !x.Settled || x.ID != string(s) {
		return nil, nil
	}
	exit := exitOf(x, p.Rig.Tree.Abs(workerLog(s)))
	p.reread(ctx, &exit, s, x.EndedAt.Local())
	b, err := p.Rig.Beads.Get(string(h.WorkItem.BeadID))
	if err != nil {
		return nil, nil // the first decision's too
	}
	// A session that should go on begins anew: its work is saved for the next. One
	// that waits for an answer does so once that has come.
	asked, err := actor.Questions(p.Rig, p.ID, h.WorkItem)
	if err != nil || slices.ContainsFunc(asked, func(q actor.Question) bool {
		return (exit.CanWait() || q.Awaited && exit.Failed()) && (!q.Answered() || q.Reply.Timestamp.After(x.EndedAt.Time))
	}) {
		return nil, nil
	}
	if exit.Lost || exit.GoOn(agentcli.DefaultResumes, &b) != "" {
		return nil, nil
	}
	return h.WorkItem, &exit
}

// publishExit fixes the end of an attempt as its worker's exit tells it.
func (p *Polecat) publishExit(ctx context.Context, item *hook.WorkItem, exit polecat.Exit) error {
	_, _, err := carry.Publish(ctx, p.Rig, exit.Record(item, p.ID))
	if errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return nil // taken away meanwhile
	}
	return err
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
