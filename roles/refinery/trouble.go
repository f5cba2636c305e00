package refinery

import (
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// What keeps a request from landing without being its fault: it waits, is tried again, and
// the person is told once.

// redTip: the target is red by itself, and nobody is blamed.
func (d *decision) redTip(res Result) {
	w := &d.s.Work
	what := "is red without the request too"
	if res.Failure == mergequeue.FailCouldNotRun {
		what = "can't be tested"
	}
	reason := fmt.Sprintf("target tip %s %s: %s", wording.ShortHash(w.Onto), what, wording.Reason(res.Text))
	d.putBack()
	d.change(Requeue{Request: w.ID, Waiting: reason})
	tries := d.tries(RedTip)
	if tries == 1 { // a new tip that is red as well is the same trouble
		d.tellHuman("tip:"+w.Onto, "The merge queue is blocked: "+reason,
			fmt.Sprintf("Nothing lands until this is put right; no bead is charged for it. %s is tried again when the tip moves, "+
				"after a while, or at once with: chipset queue retry %s\n\nThe test of the bare tip said:\n%s\n", w.ID, w.ID, res.Text))
	}
	d.wait(RedTip, tries, roles.Backoff(retryTip, mostRetryTip, tries))
	if !d.Policy.Remote {
		d.s.Wait.Tip = w.Onto
	}
	d.s.Work, d.s.Phase = Work{}, Idle
}

// inTheWay lets the request wait for the checkout. Where that refuses only what this one changes, others
// pass it; of several that were to land together the lowest is tried alone.
func (d *decision) inTheWay(res Result) {
	w, text, tries := &d.s.Work, res.Text, d.tries(WaitCheckout)
	reason := "a checkout of the target is in the way: " + text
	again := tries > 1 // the first time it may be a passing git of the person
	if again && !res.Whole && w.Group > 1 {
		d.test(1)
		return
	}
	pass := again && !res.Whole && d.othersWait()
	if pass {
		d.putBack()
		d.change(Requeue{Request: w.ID, Waiting: reason, InTheWay: true})
	} else {
		d.change(SetWaiting{Request: w.ID, Waiting: reason})
	}
	if tries == 2 {
		d.tellHuman("checkout:"+string(w.ID)+":"+text, string(w.ID)+" can't land: "+wording.Reason(text),
			"Its work is rebased and tested, but the branch it lands on is checked out, and git refuses to advance it there:\n\n"+
				text+"\n\nNothing was moved. Commit or stash your changes: the request lands by itself then.\n")
	}
	if pass {
		d.drop()
		return
	}
	d.wait(WaitCheckout, tries, RetryCheckout)
}

// othersWait reports whether another request than the one in work may begin now.
func (d *decision) othersWait() bool {
	return slices.ContainsFunc(d.Queue, func(r mergequeue.Request) bool {
		return r.ID != d.s.Work.ID && (r.Status == mergequeue.Pending || r.Status == mergequeue.Merging) &&
			!r.IsHeld() && !r.Passed(d.Now) && d.owned(&r)
	})
}

// trouble tries the same step again, and tells a person when that did not help.
func (d *decision) trouble(text string) {
	w, tries := d.s.Work, d.tries(WaitTrouble)
	d.change(SetWaiting{Request: w.ID, Waiting: "trouble: " + wording.Reason(text)})
	if tries == 2 {
		d.tellHuman("trouble:"+string(w.ID)+":"+wording.Reason(text), string(w.ID)+" can't land now: "+wording.Reason(text),
			"This is not the fault of its work, and it is tried again after a growing while, or at once with: chipset queue retry "+
				string(w.ID)+"\n\n"+text+"\n")
	}
	d.wait(WaitTrouble, tries, roles.Backoff(retryTrouble, mostRetryTrouble, tries))
}

// diverged tells the person once how to bring the target and the remote together.
func (d *decision) diverged(v Divergence) {
	mend := fmt.Sprintf("git pull --rebase %s %s", v.Remote, v.Target)
	where := v.Checkout
	if where == "" {
		where, mend = "the repository", "git switch "+v.Target+" && "+mend
	}
	d.tellHuman("diverged:"+v.Fork, fmt.Sprintf("%s here and on %s have diverged: %s", v.Target, v.Remote, mend),
		fmt.Sprintf("You committed to %s while the rig was pushing work to %s. What was pushed has landed, and the queue goes on from "+
			"what %s holds. Your commits are untouched, and %s here stays where you left it. To bring the two together, in %s:\n\n    %s\n",
			v.Target, v.Remote, v.Remote, v.Target, where, mend))
}

// tellHuman mails the person about the request in work, once: id makes
// repetitions the same message.
func (d *decision) tellHuman(id, subject, body string) {
	m := mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent, ID: wording.Clip(id, maxID), Subject: subject, Body: body}
	if r := d.request(d.s.Work.ID); r != nil {
		m.Ref = &mail.Ref{BeadID: r.BeadID, AssignmentID: r.AssignmentID}
	}
	d.do(roles.Send{Message: m})
}

// tries counts the failures of a kind in a row, with the present one.
func (d *decision) tries(kind WaitKind) int {
	if d.s.Wait.Kind != kind {
		return 1
	}
	return d.s.Wait.Tries + 1
}

func (d *decision) wait(kind WaitKind, tries int, after time.Duration) {
	d.s.Wait = Wait{Kind: kind, Request: d.s.Work.ID, Tries: tries}
	if after > 0 {
		d.s.Wait.Until = state.At(d.Now.Add(after))
	}
}
