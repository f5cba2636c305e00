package carry

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Publish records the end of an attempt: the first record wins. The hook must be
// active under the record's assignment and, if the record names a session,
// under that session; else it is an ErrConflict. BeadID, Branch and times are
// filled in. If there was a record already, won is false and that record
// is returned. It is durable when Publish returns nil.
func Publish(ctx context.Context, r *rig.Rig, rec retire.Record) (_ retire.Record, won bool, _ error) {
	if err := ctx.Err(); err != nil {
		return rec, false, err
	}
	h, err := r.Hooks.Get(string(rec.AgentID))
	if err != nil {
		return rec, false, err
	}
	if err := flow.CheckAttempt(&rec, &h); err != nil {
		return rec, false, err
	}
	if earlier, err := r.Retire.Get(string(rec.AssignmentID)); !errors.Is(err, state.ErrNotFound) {
		return earlier, false, err
	}
	b, err := r.Beads.Get(string(h.WorkItem.BeadID))
	if err != nil {
		return rec, false, err
	}
	if rec, err = flow.NewRetire(rec, &h, &b, r.Clock.Now()); err != nil {
		return rec, false, err
	}
	if rec.Outcome == retire.Done {
		if rec.Settled, err = settle(r, &rec); err != nil {
			return rec, false, err
		}
	}
	err = r.Retire.Publish(rec)
	if errors.Is(err, state.ErrExists) {
		earlier, err := r.Retire.Get(string(rec.AssignmentID))
		return earlier, false, err
	}
	if err != nil {
		return rec, false, err
	}
	return rec, true, nil
}

// settle makes the content of the worktree durable before the end of an attempt is
// recorded, and reports whether it is. A worker with a supervisor may still write: the
// supervisor syncs after the worker's last process, and says so in its
// exit record. Without a supervisor, settle syncs what was written up to now.
func settle(r *rig.Rig, rec *retire.Record) (bool, error) {
	if settled, supervised := supervisorSettled(r, rec.Session); supervised {
		return settled, nil
	}
	if gone, err := worktreeGone(r, rec.AgentID); gone || err != nil {
		return err == nil, err
	}
	if err := process.SyncTree(r.Worktree(rec.AgentID)); err != nil {
		return false, fmt.Errorf("sync the worktree of %s: %w", rec.AgentID, err)
	}
	return true, nil
}

// supervisorSettled reports whether the supervisor of a session's worker has made
// the worker's files durable, and whether there was a supervisor at all. An exit record
// that can't be read counts as not settled.
func supervisorSettled(r *rig.Rig, s state.SessionID) (settled, supervised bool) {
	if s == "" {
		return false, false
	}
	exit, found, err := r.WorkerExit(s)
	if err != nil {
		return false, true
	}
	return found && exit.Done && exit.Settled && exit.ID == string(s), found
}

func orNothing(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// RetireDeps are the dependencies of Finish.
type RetireDeps struct {
	Rig *rig.Rig
	// Say prints a line for the person, or is nil.
	Say func(format string, args ...any)
	// TellSession carries out flow.TellSession, or is nil if no session of the person's holds beads. It may be called
	// again after a crash.
	TellSession func(context.Context, flow.TellSession) error
	// Step is called after each durable effect; an error ends
	// Finish there, as a crash would. nil outside tests.
	Step func(effect string) error
}

// finish is one run of a retirement.
type finish struct {
	carrier
	flow.Retirement
	tellSession func(context.Context, flow.TellSession) error
	// rec is a copy of the record into which git's answers are written.
	rec retire.Record
}

// Finish carries out the remaining steps of the end of an attempt, from its published
// record, and returns the updated record. No process of the worker may run
// any more. Each step is idempotent and the stage advances durably after it, so
// Finish may be repeated after a crash at any point, with the same result. See
// flow.Retirement.
func Finish(ctx context.Context, deps RetireDeps, rec retire.Record) (retire.Record, error) {
	f := &finish{carrier: carrier{Rig: deps.Rig, step: deps.Step, tell: deps.Say}}
	f.more, f.tellSession, f.Session = f.ask, deps.TellSession, deps.TellSession != nil
	f.Mayor, f.Witness = f.Rig.Mayor(), f.Rig.Witness()
	// What a process that died has published or changed may not be durable yet.
	dirs := []state.Path{retire.Dir}
	if rec.Stage != retire.Published {
		dirs = append(dirs, bead.Dir, mergequeue.Dir, hook.Dir)
	}
	if err := f.settle(dirs...); err != nil {
		return rec, err
	}
	err := f.run(ctx, &f.Retirement, func() error { return f.read(ctx, rec.AssignmentID) })
	if f.Record.AssignmentID == "" {
		f.Record = rec
	}
	if err != nil {
		err = fmt.Errorf("retire %s (%s): %w", rec.AssignmentID, f.Record.Stage, err)
	}
	return f.Record, err
}

// read reads what the next effect depends on.
func (f *finish) read(ctx context.Context, a state.AssignmentID) (err error) {
	if f.Record, err = f.Retire.Get(string(a)); err != nil {
		return err
	}
	if f.Bead, err = f.Beads.Get(string(f.Record.BeadID)); err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if f.Record.Stage == retire.Recorded && f.Target == "" && flow.Lands(&f.Record) {
		target, err := f.Rig.Target(ctx)
		if err != nil {
			return err
		}
		f.Target = string(target)
	}
	f.Now = f.Clock.Now()
	h, err := f.Hooks.Get(string(f.Record.AgentID))
	if errors.Is(err, state.ErrNotFound) {
		err = nil
	}
	f.Active = err == nil && h.Status == hook.Active && h.Assignment() == a
	return err
}

// ask carries out the effects that need git or the merge queue.
func (f *finish) ask(ctx context.Context, e flow.Effect) error {
	f.rec = f.Record
	switch e := e.(type) {
	case flow.SecureWork:
		if err := f.secureWork(ctx); err != nil {
			return err
		}
		work := f.rec
		f.Work = &work
		return nil
	case flow.SaveWork:
		if err := f.saveUnfinished(ctx); err != nil {
			return err
		}
		work := f.rec
		f.Work = &work
		f.say("%s: %s was taken away%s", f.rec.AgentID, f.rec.BeadID, orNothing("; the work is saved on ", f.rec.Salvage))
		return nil
	case flow.Submit:
		return f.submit(ctx, e)
	case flow.PushBranch:
		f.pushBranch(ctx)
		return nil
	case flow.TellSession:
		return f.tellSession(ctx, e)
	case flow.FreeWorktree:
		f.freeWorktree(ctx)
		return nil
	}
	return fmt.Errorf("no way to carry out %T", e)
}

func (f *finish) submit(ctx context.Context, e flow.Submit) error {
	mr, err := f.Queue.Submit(ctx, e.Request, f.Clock.Now())
	if err == nil {
		f.Request = mr.ID
	}
	return err
}

func (f *finish) freeWorktree(ctx context.Context) {
	use, known := ReadWorktree(f.Rig, f.rec.AgentID)
	if known && use.AssignmentID != f.rec.AssignmentID {
		return // it is used for other work already
	}
	if !known { // it may hold anything, including unsaved work
		ref, err := SaveWork(ctx, f.Rig, f.rec.AgentID, "Work found in the worktree of "+string(f.rec.AgentID)+" after "+string(f.rec.BeadID))
		if err != nil {
			f.warn(err, event.WorktreeNotReleased)
			return
		}
		if ref != "" {
			f.Rig.Events.Tell(event.WorkerSalvaged(f.rec.AgentID, f.rec.Work(), ref, "what was in the worktree is on "+ref))
		}
	}
	var err error
	if known && f.rec.Head != "" && f.Rig.Git.LeaveWorktree(ctx, f.Rig.Worktree(f.rec.AgentID)) {
		err = ForgetWorktree(f.Rig, f.rec.AgentID) // everything is in that commit
	} else {
		err = FreeWorktree(ctx, f.Rig, f.rec.AgentID)
	}
	if err != nil {
		f.warn(err, event.WorktreeNotReleased)
	}
}

// FreeWorktree cleans an agent's worktree and detaches it from its branch, for
// the next bead. The caller has saved its content. A missing worktree
// is not an error.
func FreeWorktree(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	if gone, err := worktreeGone(r, id); gone || err != nil {
		return errors.Join(err, ForgetWorktree(r, id))
	}
	// The next bead begins at the target's tip. Without the tip the worktree is freed all the same.
	_, tip, _ := TargetTip(ctx, r)
	err := r.Git.ReleaseWorktree(ctx, r.Worktree(id), tip)
	if err != nil && !errors.Is(err, git.ErrNotWorktree) {
		return err
	}
	return ForgetWorktree(r, id)
}

// warn logs an error that does not stop the retirement.
func (f *finish) warn(err error, told func(state.AgentID, event.Work, string) event.Event) {
	e := told(f.rec.AgentID, f.rec.Work(), err.Error())
	f.Events.Tell(e)
	f.say("%s: %s: %v", f.rec.AgentID, e.Type, err)
}
