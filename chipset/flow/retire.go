package flow

import (
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// MaxReason bounds what an attempt's end may say, in bytes.
const MaxReason = 16 << 10

// NewRetire completes the record with which an attempt ends, for the hook and the
// bead that it is about. It returns an ErrConflict unless the hook is active under
// the record's assignment and session, and the bead is still that attempt's.
func NewRetire(rec retire.Record, h *hook.Hook, b *bead.Bead, now state.Time) (retire.Record, error) {
	if h.Status != hook.Active {
		return rec, state.Conflictf("assignment "+string(rec.AssignmentID), "is %s, not active", h.Status)
	}
	if err := b.CheckAssignment(rec.AssignmentID, bead.Hooked, bead.InProgress); err != nil {
		return rec, err
	}
	rec.BeadID, rec.Branch, rec.Stage = b.ID, b.Branch, retire.Published
	rec.CreatedAt, rec.UpdatedAt = now, now
	rec.Reason, rec.Summary = wording.Clip(rec.Reason, MaxReason), wording.Clip(rec.Summary, MaxReason)
	if rec.Session == "" {
		rec.Session = h.WorkItem.Session
	}
	return rec, nil
}

// BeginWork is the change of a bead whose worker is about to start: a hooked one is in progress.
func BeginWork(b *bead.Bead, a state.AssignmentID, now state.Time) error {
	if b.CheckAssignment(a, bead.InProgress) == nil {
		return state.ErrUnchanged
	}
	if err := b.CheckAssignment(a, bead.Hooked); err != nil {
		return err
	}
	return b.Become(bead.InProgress, "", now)
}

// CheckAttempt returns an ErrConflict for an end of an attempt that is over, or of a
// session that another one has replaced.
func CheckAttempt(rec *retire.Record, h *hook.Hook) error {
	name := "assignment " + string(rec.AssignmentID)
	switch {
	case rec.AssignmentID == "" || h.Assignment() != rec.AssignmentID:
		return state.Conflictf(name, "is over: the hook of %s names %q", rec.AgentID, h.Assignment())
	case rec.Session != "" && h.WorkItem.Session != "" && h.WorkItem.Session != rec.Session:
		return state.Conflictf(name, "belongs to session %q now, not %q", h.WorkItem.Session, rec.Session)
	}
	return nil
}

// Retirement is the sequence that carries out the end of an attempt, from its
// published record. Nothing of the worker runs any more. The stage of the record
// advances after each step:
//
//	published → committed   work validated and durable on its branch, or saved
//	          → recorded    bead done, closed or failed: the compare-and-swap that arbitrates
//	          → submitted   merge request
//	          → reported    mails to mayor and witness
//	          → completed   hook
//	          → released    the person's own session told, if one held the bead; worktree clean and detached
//	published → stale       the bead was taken away: work saved, session told, nothing lands
type Retirement struct {
	Record retire.Record
	// Bead is zero when it does not exist.
	Bead bead.Bead
	// Active is true while the hook is active under the record's assignment.
	Active bool
	// Session is true where a session of the person's own held the bead: it is told.
	Session bool
	// Mayor and Witness are told. Target is the branch that work lands on.
	Mayor, Witness state.AgentID
	Target         string
	Now            state.Time

	// Work is the record with what securing or saving the work came to, in this run;
	// it is nil until git was asked. Request is the one that this run submitted.
	Work    *retire.Record
	Request state.MergeID
	done    map[string]bool
	mail    sending
}

// Answer takes note of how the last effect went.
func (r *Retirement) Answer(e Effect, err error) {
	if r.done == nil {
		r.done = map[string]bool{}
	}
	if _, ok := e.(Send); ok {
		r.mail.answer(err)
	}
	if err == nil {
		r.mail = sending{}
		r.done[e.Name()] = true
	}
}

// Next returns the next effect of a retirement.
func (r *Retirement) Next() Effect {
	rec := r.Record
	to, _ := verdict(&rec)
	recorded := r.Bead.Status == to && r.Bead.AssignmentID == rec.AssignmentID
	taken := r.Bead.CheckAssignment(rec.AssignmentID, bead.InProgress, bead.Hooked) != nil
	switch rec.Stage {
	case retire.Published:
		switch {
		case taken:
			return r.stale()
		case r.Work == nil:
			return SecureWork{rec}
		}
		return r.reach(*r.Work, retire.Committed)
	case retire.Committed:
		switch {
		case recorded:
			return r.reach(rec, retire.Recorded)
		case taken:
			return r.stale()
		}
		return BeadDone{rec}
	case retire.Recorded:
		return r.submit()
	case retire.Submitted:
		return r.report()
	case retire.Reported:
		if r.Active {
			return CompleteHook{rec}
		}
		return r.reach(rec, retire.Completed)
	case retire.Completed:
		return r.release(rec, retire.Released)
	case retire.Released, retire.Stale:
	}
	return Done{}
}

func (r *Retirement) reach(rec retire.Record, stage retire.Stage) Effect {
	rec.Stage = stage
	return PutRetire{Record: rec, From: r.Record.Stage}
}

// stale ends an attempt whose bead was taken away: the work is saved, the hook freed
// if it still names the attempt, nothing lands.
func (r *Retirement) stale() Effect {
	rec := r.Record
	save := SaveWork{rec}
	switch {
	case rec.Salvage == "" && !r.done[save.Name()]:
		return save
	case rec.Salvage == "" && r.Work != nil && r.Work.Salvage != "": // written down before the worktree, the only other trace of it, is freed
		rec.Salvage = r.Work.Salvage
		return r.reach(rec, rec.Stage)
	case r.Active:
		return CompleteHook{rec}
	}
	return r.release(rec, retire.Stale)
}

// release reaches the last stage.
func (r *Retirement) release(rec retire.Record, last retire.Stage) Effect {
	tell, free := TellSession{Record: rec, Taken: last == retire.Stale}, FreeWorktree{rec}
	switch {
	case r.Session && !r.done[tell.Name()]:
		return tell
	case !r.done[free.Name()]:
		return free
	}
	return r.reach(rec, last)
}

func (r *Retirement) submit() Effect {
	rec := r.Record
	push := PushBranch{rec}
	switch {
	case Lands(&rec) && r.Request == "":
		return Submit{mergequeue.Request{BeadID: rec.BeadID, AssignmentID: rec.AssignmentID, AgentID: rec.AgentID,
			SourceBranch: rec.Branch, TargetBranch: r.Target, Head: rec.Head, Base: rec.Base}}
	case Lands(&rec) && !r.done[push.Name()]:
		return push
	}
	rec.MR = r.Request
	// The names are fixed with the stage before the mail, so a retry sends the same.
	name := string(mail.NameAt(r.Now, rec.AgentID))
	rec.ReportName, rec.NoteName = name, name
	return r.reach(rec, retire.Submitted)
}

// report tells the mayor and the witness. One that is not registered any more is
// left out: bead, queue and hook say the same as the mail.
func (r *Retirement) report() Effect {
	rec := r.Record
	subject, body := letter(&rec, &r.Bead)
	ref := &mail.Ref{BeadID: rec.BeadID, AssignmentID: rec.AssignmentID, Session: rec.Session}
	report := mail.Message{From: rec.AgentID, To: r.Mayor, Type: mail.CompletionReport, Subject: subject, Body: body,
		ID: "report-" + string(rec.AssignmentID), Ref: ref}
	note := mail.Message{From: rec.AgentID, To: r.Witness, Type: mail.Coordination, Priority: mail.Low, Subject: subject,
		Body: "The attempt is retired; there is nothing to watch until the next one.\n", ID: "note-" + string(rec.AssignmentID), Ref: ref}
	for _, m := range []struct {
		mail.Message
		name *string
	}{{report, &rec.ReportName}, {note, &rec.NoteName}} {
		as := fixedName(*m.name, rec.AgentID, rec.UpdatedAt)
		send := Send{As: as, Message: m.Message, Optional: true, Short: r.mail.large}
		switch {
		case r.done[send.Name()]:
			continue
		case r.mail.taken:
			*m.name = nextName(as, rec.AgentID)
			return r.reach(rec, rec.Stage)
		case r.mail.large:
			send.Message.Body = shortReport
		}
		return send
	}
	return r.reach(rec, retire.Reported)
}

// shortReport stands for a report that is larger than the rig's limit.
const shortReport = "The report is larger than a message may be: see state/retire/.\n"

// verdict is the bead's next status, and the reason that it shall carry.
func verdict(rec *retire.Record) (bead.Status, string) {
	switch {
	case rec.Outcome == retire.Block:
		return bead.Failed, "blocked: " + rec.Reason
	case rec.Outcome == retire.Fail:
		return bead.Failed, rec.Reason
	case rec.Empty && strings.TrimSpace(rec.Summary) == "":
		return bead.Closed, "nothing to land"
	case rec.Empty:
		return bead.Closed, rec.Summary
	}
	return bead.Done, ""
}

// Lands reports whether there is something for the merge queue.
func Lands(rec *retire.Record) bool { return rec.Outcome == retire.Done && !rec.Empty }

// letter is the subject and the body of the completion report.
func letter(rec *retire.Record, b *bead.Bead) (subject, body string) {
	title := ""
	if b.Title != "" {
		title = ": " + b.Title
	}
	word := string(retire.Done)
	switch rec.Outcome {
	case retire.Fail:
		word = "failed"
	case retire.Block:
		word = "blocked"
	case retire.Done:
	}
	var text strings.Builder
	line := func(label, value string) {
		if value = strings.TrimSpace(value); value != "" {
			fmt.Fprintf(&text, "%s: %s\n", label, value)
		}
	}
	line("Outcome", word)
	if rec.Empty {
		line("Landed", "nothing to land")
	}
	line("Reason", rec.Reason)
	line("Summary", rec.Summary)
	if Lands(rec) {
		line("Merge request", string(rec.MR))
		line("Branch", rec.Branch+" at "+wording.ShortHash(rec.Head))
	}
	line("Unfinished work", rec.Salvage)
	line("Transcript", string(state.LogDir)+"/"+string(rec.Session)+".log")
	return string(rec.BeadID) + " " + word + title, text.String()
}

// SecureWork commits what the worker left, validates it, and makes it durable: on
// its branch when it is done, on the salvage ref otherwise. It relies on what the
// worker wrote being durable, which the record says, or counts as not done.
type SecureWork struct{ Record retire.Record }

// SaveWork puts what the worktree holds of an attempt that was taken away on its
// salvage ref. It relies on the worktree.
type SaveWork struct{ Record retire.Record }

// Submit publishes the merge request of an assignment. It relies on the bead, which
// is done, and on the head, which is durable on its branch.
type Submit struct{ Request mergequeue.Request }

// PushBranch publishes the branch where the definition asks for that. It is a
// courtesy to people; nothing relies on it.
type PushBranch struct{ Record retire.Record }

// TellSession tells the person's own session that held the bead how its attempt ended, or that it was taken away. It relies on
// the work being durable where the record says.
type TellSession struct {
	Record retire.Record
	Taken  bool
}

// FreeWorktree cleans the worktree for the next bead. It relies on the work being
// durable on a branch or a salvage ref that the record names, and on the hook, which
// is completed. One that can't be cleaned is the next preparation's to heal.
type FreeWorktree struct{ Record retire.Record }

// Name implements Effect.
func (SecureWork) Name() string { return "work" }

// Name implements Effect.
func (SaveWork) Name() string { return "salvage" }

// Name implements Effect.
func (Submit) Name() string { return "request" }

// Name implements Effect.
func (PushBranch) Name() string { return "pushed" }

// Name implements Effect.
func (TellSession) Name() string { return "told" }

// Name implements Effect.
func (FreeWorktree) Name() string { return "freed" }

// BeadDone moves the bead to what the attempt came to. It relies on the work being
// durable. Who has lost this compare-and-swap lands nothing.
type BeadDone struct{ Record retire.Record }

// Name implements Effect.
func (BeadDone) Name() string { return "bead" }

// Bead implements BeadChange.
func (e BeadDone) Bead() state.BeadID { return e.Record.BeadID }

// Reason is what the bead says of its end.
func (e BeadDone) Reason() string {
	_, reason := verdict(&e.Record)
	return reason
}

// Change implements BeadChange.
func (e BeadDone) Change(b *bead.Bead, now state.Time) error {
	to, reason := verdict(&e.Record)
	if b.Status == to && b.AssignmentID == e.Record.AssignmentID {
		return state.ErrUnchanged // done before a crash
	}
	if err := b.CheckAssignment(e.Record.AssignmentID, bead.InProgress, bead.Hooked); err != nil {
		return err
	}
	if b.Status == bead.Hooked { // retired before its worker was started
		if err := b.Become(bead.InProgress, "", now); err != nil {
			return err
		}
	}
	return b.Become(to, reason, now)
}

// CompleteHook ends the attempt on the hook. It relies on the bead, and on the mail
// being sent. A hook that was cleared or names another assignment by now is the
// mayor's decision.
type CompleteHook struct{ Record retire.Record }

// Name implements Effect.
func (CompleteHook) Name() string { return "hook" }

// Hook implements HookChange.
func (e CompleteHook) Hook() state.AgentID { return e.Record.AgentID }

// Change implements HookChange.
func (e CompleteHook) Change(h *hook.Hook, now state.Time) error {
	if h.Status != hook.Active || h.Assignment() != e.Record.AssignmentID {
		return state.ErrUnchanged
	}
	return h.Complete(e.Record.AssignmentID, "", now)
}
