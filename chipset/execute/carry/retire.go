package carry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/progress"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// maxReason bounds what an attempt's end may say, in bytes.
const maxReason = 16 << 10

// Publish fixes the end of an attempt: the first record wins. The hook must be
// active under the record's assignment and, when the record names a session,
// under that session; else it is an ErrConflict. BeadID, Branch and times are
// filled in. When somebody was faster, won is false and the record that
// counts comes back. Durable when it returns nil.
func Publish(ctx context.Context, r *rig.Rig, rec retire.Record) (_ retire.Record, won bool, _ error) {
	if err := ctx.Err(); err != nil {
		return rec, false, err
	}
	h, err := r.Hooks.Get(string(rec.AgentID))
	if err != nil {
		return rec, false, err
	}
	name := "assignment " + string(rec.AssignmentID)
	switch {
	case rec.AssignmentID == "" || h.Assignment() != rec.AssignmentID:
		return rec, false, state.Conflictf(name, "is over: the hook of %s names %q", rec.AgentID, h.Assignment())
	case rec.Session != "" && h.WorkItem.Session != "" && h.WorkItem.Session != rec.Session:
		return rec, false, state.Conflictf(name, "belongs to session %q now, not %q", h.WorkItem.Session, rec.Session)
	}
	if earlier, err := r.Retire.Get(string(rec.AssignmentID)); !errors.Is(err, state.ErrNotFound) {
		return earlier, false, err
	}
	if h.Status != hook.Active {
		return rec, false, state.Conflictf(name, "is %s, not active", h.Status)
	}
	b, err := r.Beads.Get(string(h.WorkItem.BeadID))
	if err != nil {
		return rec, false, err
	}
	if err := b.CheckAssignment(rec.AssignmentID, bead.Hooked, bead.InProgress); err != nil {
		return rec, false, err
	}
	now := r.Clock.Now()
	rec.BeadID, rec.Branch, rec.Stage = b.ID, b.Branch, retire.Published
	rec.CreatedAt, rec.UpdatedAt = now, now
	rec.Reason, rec.Summary = clip(rec.Reason, maxReason), clip(rec.Summary, maxReason)
	if rec.Session == "" {
		rec.Session = h.WorkItem.Session
	}
	if rec.Outcome == retire.Done {
		if rec.Settled, err = settle(r, &rec); err != nil {
			return rec, false, err
		}
	}
	err = r.Retire.Create(string(rec.AssignmentID), rec)
	if errors.Is(err, state.ErrExists) {
		earlier, err := r.Retire.Get(string(rec.AssignmentID))
		return earlier, false, err
	}
	if err != nil {
		return rec, false, err
	}
	r.Emit(retireEvent("retire.published", &rec, string(rec.Outcome)+orNothing(": ", rec.Reason)))
	return rec, true, nil
}

// settle makes sure, before the end of an attempt is fixed, that what its worktree
// holds is durable. A worker with a supervisor may still write: there it is the
// supervisor that makes it durable, after the last process of the worker, and its
// exit record tells. Without one, what was written up to now is what counts.
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
// what the worker left durable, and whether there was a supervisor at all. A record
// that can't be read vouches for nothing.
func supervisorSettled(r *rig.Rig, s state.SessionID) (settled, supervised bool) {
	if s == "" {
		return false, false
	}
	exit, found, err := process.ReadExit(r.Tree.Abs(progress.ExitRecord(s)))
	if err != nil {
		return false, true
	}
	return found && exit.Done && exit.Settled && exit.ID == string(s), found
}

func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func orNothing(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func retireEvent(kind string, rec *retire.Record, text string) event.Event {
	return event.Event{Type: kind, Agent: rec.AgentID, Bead: rec.BeadID, Assignment: rec.AssignmentID, Session: rec.Session,
		Subject: string(rec.AgentID), Text: text}
}

// RetireDeps is what Finish works with.
type RetireDeps struct {
	Rig *rig.Rig
	// Say tells whoever watches, or is nil.
	Say func(format string, args ...any)
	// Step is called after each effect that is durable on its own; an error ends
	// Finish there, as a crash would. nil outside of tests.
	Step func(effect string) error
}

// finish is one run of the done pipeline.
type finish struct {
	RetireDeps
	rec retire.Record
}

// Finish runs what is left of the done pipeline for a published record, and
// returns the record as it then stands. Nothing of the worker may run any
// more. Each step is idempotent and the stage advances durably after it, so
// Finish may be repeated after a crash at any point, with the same result:
//
//	published → committed   validate; commit, branch := head, or save the work
//	          → recorded    bead done, closed or failed: the compare-and-swap that arbitrates
//	          → submitted   merge request
//	          → reported    mails to mayor and witness
//	          → completed   hook
//	          → released    worktree clean and detached
//	published → stale       the bead was taken away: work saved, nothing lands
func Finish(ctx context.Context, deps RetireDeps, rec retire.Record) (retire.Record, error) {
	f := &finish{RetireDeps: deps, rec: rec}
	if f.Say == nil {
		f.Say = func(string, ...any) {}
	}
	// What another process published may not be durable yet.
	if err := f.Rig.Tree.SyncDir(retire.Dir); err != nil {
		return rec, err
	}
	for !f.rec.Stage.Final() {
		if err := ctx.Err(); err != nil {
			return f.rec, err
		}
		if err := f.advance(ctx); err != nil {
			return f.rec, fmt.Errorf("retire %s (%s): %w", f.rec.AssignmentID, f.rec.Stage, err)
		}
	}
	return f.rec, nil
}

func (f *finish) advance(ctx context.Context) error {
	switch f.rec.Stage {
	case retire.Published:
		return f.commit(ctx)
	case retire.Committed:
		return f.record(ctx)
	case retire.Recorded:
		return f.submit(ctx)
	case retire.Submitted:
		return f.report(ctx)
	case retire.Reported:
		return f.complete(ctx)
	case retire.Completed:
		return f.release(ctx)
	case retire.Released, retire.Stale:
	}
	return nil
}

// reach makes a stage durable.
func (f *finish) reach(stage retire.Stage) error {
	f.rec.Stage = stage
	if err := f.save(); err != nil {
		return err
	}
	f.Rig.Emit(retireEvent("retire."+string(stage), &f.rec, ""))
	return f.step(string(stage))
}

func (f *finish) save() error {
	f.rec.UpdatedAt = f.Rig.Clock.Now()
	return f.Rig.Retire.Put(string(f.rec.AssignmentID), f.rec)
}

func (f *finish) step(effect string) error {
	if f.Step == nil {
		return nil
	}
	return f.Step(effect)
}

// record moves the bead. Who has lost that compare-and-swap lands nothing.
func (f *finish) record(ctx context.Context) error {
	to, reason := f.verdict()
	moved := false
	_, err := f.Rig.Beads.Update(ctx, string(f.rec.BeadID), func(b *bead.Bead) error {
		if b.Status == to && b.AssignmentID == f.rec.AssignmentID {
			return state.ErrUnchanged // done before a crash
		}
		if err := b.CheckAssignment(f.rec.AssignmentID, bead.InProgress, bead.Hooked); err != nil {
			return err
		}
		now := f.Rig.Clock.Now()
		if b.Status == bead.Hooked { // retired before its worker was started
			if err := b.Become(bead.InProgress, "", now); err != nil {
				return err
			}
		}
		moved = true
		return b.Become(to, reason, now)
	})
	if errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound) {
		return f.stale(ctx)
	}
	if err != nil {
		return err
	}
	if moved {
		f.Rig.Emit(event.Event{Type: "bead." + string(to), Agent: f.rec.AgentID, Bead: f.rec.BeadID, Assignment: f.rec.AssignmentID,
			Session: f.rec.Session, From: string(bead.InProgress), To: string(to), Text: reason})
		f.Say("%s: %s is %s%s", f.rec.AgentID, f.rec.BeadID, to, orNothing(": ", clip(head(reason), 160)))
	}
	if err := f.step("bead"); err != nil {
		return err
	}
	return f.reach(retire.Recorded)
}

func head(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// verdict is the bead's next status, and the reason that it shall carry.
func (f *finish) verdict() (bead.Status, string) {
	switch {
	case f.rec.Outcome == retire.Block:
		return bead.Failed, "blocked: " + f.rec.Reason
	case f.rec.Outcome == retire.Fail:
		return bead.Failed, f.rec.Reason
	case f.rec.Empty:
		return bead.Closed, orElse(f.rec.Summary, "nothing to land")
	}
	return bead.Done, ""
}

func orElse(s, other string) string {
	if strings.TrimSpace(s) == "" {
		return other
	}
	return s
}

// lands tells whether there is something for the merge queue.
func (f *finish) lands() bool { return f.rec.Outcome == retire.Done && !f.rec.Empty }

func (f *finish) submit(ctx context.Context) error {
	if f.lands() {
		target, err := f.Rig.Target(ctx)
		if err != nil {
			return err
		}
		now := f.Rig.Clock.Now()
		mr, err := f.Rig.Queue.Submit(ctx, mergequeue.Request{BeadID: f.rec.BeadID, AssignmentID: f.rec.AssignmentID, AgentID: f.rec.AgentID,
			SourceBranch: f.rec.Branch, TargetBranch: string(target), Head: f.rec.Head, Base: f.rec.Base}, now)
		if err != nil {
			return err
		}
		f.rec.MR = mr.ID
		if mr.SubmittedAt == now {
			e := retireEvent("mr.submitted", &f.rec, fmt.Sprintf("%s at %s for %s", f.rec.Branch, git.Hash(f.rec.Head).Short(), target))
			e.Subject = string(mr.ID)
			f.Rig.Emit(e)
		}
		if err := f.step("request"); err != nil {
			return err
		}
		f.pushBranch(ctx)
	}
	// The names are fixed with the stage before it, so a retry sends the same mail.
	f.nameMails()
	return f.reach(retire.Submitted)
}

func (f *finish) nameMails() {
	name := string(mail.NameAt(f.Rig.Clock.Now(), f.rec.AgentID))
	f.rec.ReportName, f.rec.NoteName = name, name
}

// complete ends the attempt on the hook. A hook that was cleared or names
// another assignment by now is the mayor's word, and no error.
func (f *finish) complete(ctx context.Context) error {
	if err := f.completeHook(ctx); err != nil {
		return err
	}
	return f.reach(retire.Completed)
}

func (f *finish) completeHook(ctx context.Context) error {
	_, err := f.Rig.Hooks.Complete(ctx, f.rec.AgentID, f.rec.AssignmentID, "", f.Rig.Clock.Now())
	switch {
	case err == nil:
		e := retireEvent("hook.completed", &f.rec, "")
		e.From, e.To = string(hook.Active), string(hook.Completed)
		f.Rig.Emit(e)
	case !errors.Is(err, state.ErrConflict) && !errors.Is(err, state.ErrNotFound):
		return err
	}
	return f.step("hook")
}

// release frees the worktree. All of it is on a branch or a salvage ref by
// now; one that can't be cleaned is the next preparation's to heal.
func (f *finish) release(ctx context.Context) error {
	f.freeWorktree(ctx)
	return f.reach(retire.Released)
}

func (f *finish) freeWorktree(ctx context.Context) {
	use, known := ReadWorktree(f.Rig, f.rec.AgentID)
	if known && use.AssignmentID != f.rec.AssignmentID {
		return // it holds other work already
	}
	if !known { // it may hold anything, also what was saved for nobody yet
		ref, err := SaveWork(ctx, f.Rig, f.rec.AgentID, "Work found in the worktree of "+string(f.rec.AgentID)+" after "+string(f.rec.BeadID))
		if err != nil {
			f.warn("worktree.not_released", err)
			return
		}
		if ref != "" {
			f.Rig.Emit(retireEvent("worker.salvaged", &f.rec, "what was in the worktree is on "+ref))
		}
	}
	var err error
	if known && f.rec.Head != "" && f.Rig.Git.LeaveWorktree(ctx, f.Rig.Worktree(f.rec.AgentID)) {
		err = ForgetWorktree(f.Rig, f.rec.AgentID) // all of it is in that head
	} else {
		err = FreeWorktree(ctx, f.Rig, f.rec.AgentID)
	}
	if err != nil {
		f.warn("worktree.not_released", err)
	}
}

// FreeWorktree cleans an agent's worktree and takes it off its branch, to be
// kept for the next bead. The caller has saved what is in it. One that does
// not exist is no error.
func FreeWorktree(ctx context.Context, r *rig.Rig, id state.AgentID) error {
	if gone, err := worktreeGone(r, id); gone || err != nil {
		return errors.Join(err, ForgetWorktree(r, id))
	}
	// The next bead begins at the target's tip. That it can't be had is no reason to free nothing.
	_, tip, _ := TargetTip(ctx, r)
	err := r.Git.ReleaseWorktree(ctx, r.Worktree(id), tip)
	if err != nil && !errors.Is(err, git.ErrNotWorktree) {
		return err
	}
	return ForgetWorktree(r, id)
}

func (f *finish) warn(kind string, err error) {
	f.Rig.Emit(retireEvent(kind, &f.rec, err.Error()))
	f.Say("%s: %s: %v", f.rec.AgentID, kind, err)
}

// stale ends an attempt whose bead was taken away: the work is saved, the hook
// freed if it still names the attempt, nothing lands.
func (f *finish) stale(ctx context.Context) error {
	if err := f.saveUnfinished(ctx); err != nil {
		return err
	}
	// Written down before the worktree, the only other trace of it, is freed.
	if err := f.save(); err != nil {
		return err
	}
	f.Say("%s: %s was taken away%s", f.rec.AgentID, f.rec.BeadID, orNothing("; the work is saved on ", f.rec.Salvage))
	if err := f.completeHook(ctx); err != nil {
		return err
	}
	f.freeWorktree(ctx)
	if err := f.step("freed"); err != nil {
		return err
	}
	return f.reach(retire.Stale)
}
