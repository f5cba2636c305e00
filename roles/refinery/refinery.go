// Package refinery decides how finished work lands: one merge request at a
// time, in strict order, and nothing that is not green on the very tip it is
// put on.
//
//	state     meaning                                        leaves when
//	idle      nothing waits                                  a request is there
//	checkout  the request is begun, the tip found            the worktree is ready
//	rebase    its commits are put on the tip                 they stand there, or conflict
//	test      the test command runs; before a request is     it ended
//	          blamed, on the bare tip too
//	merge     the target is advanced from the tested tip     it holds the candidate, or moved
//	push      the same, with a remote that goes first        the remote and the target hold it
//	blocked   the first request waits: for a rework, a       what it waits for is there
//	          person, or a green tip
//
// Three bad ends are distinguished and none of them is ever merged: conflict,
// tests failed, could not run; a fourth, refused, is for a branch that may not
// land at all. The request becomes conflicted and blocks the queue as long as
// its bead is still done under its assignment: the mayor ends that by a rework,
// a person by `queue retry` or `queue drop`.
//
// A request that changes protected files is held: it stays pending, others pass it, and
// its turn comes again once the person has allowed that very change.
package refinery

import (
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Phase is where the refinery is in its cycle; see the package's table.
type Phase string

// Phases.
const (
	Idle     Phase = ""
	Checkout Phase = "checkout"
	Rebase   Phase = "rebase"
	Test     Phase = "test"
	Merge    Phase = "merge"
	Push     Phase = "push"
	Blocked  Phase = "blocked"
)

// decision is one tick's work in progress.
type decision struct {
	Facts
	s      State
	asked  []mail.Entry // shutdown requests that wait for the end
	groups []roles.Group
	work   roles.Group
	// changed is true when an action changes what Facts says of the queue: the
	// next decision goes on, with new facts.
	changed bool
}

// alone adds a group of actions that neither the queue nor the state waits for.
func (d *decision) alone(actions ...roles.Action) { d.groups = append(d.groups, actions) }

// do adds actions to the work.
func (d *decision) do(actions ...roles.Action) { d.work = append(d.work, actions...) }

// change is do for actions that change the queue.
func (d *decision) change(actions ...roles.Action) {
	d.changed = true
	d.do(actions...)
}

// Decide is the refinery's whole behaviour. At most one step is asked for at a
// time, as the last action. Again is set until nothing is asked for and the state
// stays as it is.
func Decide(s State, f Facts) roles.Decision[State] {
	d := &decision{Facts: f, s: s}
	d.mail()
	d.result()
	d.nudges()
	d.takenAway()
	d.notices()
	d.foreign()
	d.sweep()
	d.depth()
	switch {
	case d.changed:
	case d.s.Closing && (d.s.Work.ID == "" || d.s.Waiting()):
		d.finish()
	default:
		if d.s.Work.ID == "" {
			d.choose()
		}
		d.step()
	}
	return roles.Decision[State]{Groups: d.groups, Work: d.work, Next: d.s, Again: len(d.work) > 0 || d.s != s}
}

// mail handles shutdown_request, and marks everything else as read: the queue says the same.
func (d *decision) mail() {
	for _, e := range d.Mail {
		if e.RequestsShutdown(d.Policy.Mayor, d.Session) {
			d.s.Closing = true
			d.asked = append(d.asked, e)
			continue
		}
		d.alone(roles.MarkRead{Entry: e})
	}
}

// finish leaves no request half-way: what waits goes back to its place, then the
// process may end.
func (d *decision) finish() {
	if r := d.request(d.s.Work.ID); r != nil && r.Status == mergequeue.Merging {
		d.putBack()
		d.change(Requeue{Request: r.ID, Waiting: r.Waiting})
	}
	d.drop()
	if d.changed {
		return
	}
	for _, e := range d.asked {
		d.alone(roles.AnswerShutdown(d.Self, e, "The current request is done; waiting requests are left to the next process.\n")...)
	}
}

func (d *decision) request(id state.MergeID) *mergequeue.Request {
	for i := range d.Queue {
		if id != "" && d.Queue[i].ID == id {
			return &d.Queue[i]
		}
	}
	return nil
}

// owned reports whether the request may land: its bead is done under its assignment.
func (d *decision) owned(r *mergequeue.Request) bool {
	b, ok := d.Beads[r.BeadID]
	return ok && b.CheckAssignment(r.AssignmentID, bead.Done) == nil
}

// result handles the result of the last step.
func (d *decision) result() {
	w, res := &d.s.Work, d.Result
	if res.Kind == None || w.ID == "" {
		return
	}
	w.Running = false
	if d.s.Wait.Kind != RedTip && res.Kind != Trouble && res.Kind != InTheWay {
		d.s.Wait = Wait{} // the retry helped
	}
	if res.Diverged.Fork != "" {
		d.diverged(res.Diverged)
	}
	if w.Next != "" && res.Kind != Rebased {
		d.leftOut(res)
		return
	}
	switch res.Kind {
	case CheckedOut:
		d.checkedOut(res.Onto)
	case Refused:
		d.badEnd(mergequeue.FailRefused, res.Text)
	case Rebased:
		d.stacked(res.Candidate)
	case Held:
		d.hold(res.Hold)
	case Conflict:
		d.badEnd(mergequeue.FailConflict, res.Text)
	case Green:
		d.green(res)
	case Red:
		d.red(res)
	case Landed:
		d.landed()
	case Moved:
		d.again()
	case Taken:
		d.taken(res.Request)
	case InTheWay:
		d.inTheWay(res)
	case Trouble:
		d.trouble(res.Text)
	case None:
	}
}

// drop ends the work on a request, for good or until it is chosen again.
func (d *decision) drop() { d.s.Work, d.s.Wait, d.s.Phase = Work{}, Wait{}, Idle }

func (d *decision) landing() Phase {
	if d.Policy.Remote {
		return Push
	}
	return Merge
}

// again begins the same request again, on the present tip.
func (d *decision) again() {
	d.s.Work, d.s.Phase = Work{ID: d.s.Work.ID}, Checkout
}

// taken drops a request whose bead was taken away. Requests that were stacked on it
// begin again without it.
func (d *decision) taken(id state.MergeID) {
	if id == "" || id == d.s.Work.ID {
		d.putBack()
		d.change(Retire{d.s.Work.ID})
		d.drop()
		return
	}
	d.change(Retire{id})
	d.again()
}

// hold lets the others pass a request that waits for the person.
func (d *decision) hold(change *mergequeue.Hold) {
	d.putBack()
	d.change(Hold{Request: d.s.Work.ID, Change: change})
	d.drop()
}

func (d *decision) badEnd(f mergequeue.Failure, reason string) {
	d.putBack()
	d.change(MarkConflicted{Request: d.s.Work.ID, Failure: f, Reason: reason})
	if d.Policy.Block {
		id := d.s.Work.ID
		d.tellHuman(fmt.Sprintf("conflicted:%s:%s", id, d.s.Work.Onto), string(id)+" could not land: "+wording.Reason(reason),
			fmt.Sprintf("The queue waits for you (on_conflict: block).\n\nTo try again: chipset queue retry %s   To give it up: chipset queue drop %s --reason WHY\n\n%s\n", id, id, reason))
	}
	d.drop()
}

// green lands what was tested. A bare tip that is green means that the red
// request above it is to blame, or one in the red stack.
func (d *decision) green(res Result) {
	w := &d.s.Work
	switch {
	case w.Blame == "":
		w.Tested, d.s.Phase = !res.Untested, d.landing()
	case w.Group > 1:
		w.TipGreen = true
		d.split()
	default:
		d.badEnd(w.Blame, w.Reason)
	}
}

// red: before a request is blamed, the target's tip is tested alone.
func (d *decision) red(res Result) {
	w := &d.s.Work
	switch {
	case w.Blame != "":
		d.redTip(res)
	case !w.TipGreen:
		w.Blame, w.Reason = res.Failure, res.Text
	case w.Group > 1:
		d.split()
	default:
		d.badEnd(res.Failure, res.Text)
	}
}

// takenAway drops the work on a bead that somebody took away meanwhile. Once it
// lands, the bead's lock decides, and in checkout an earlier process may have
// landed it.
func (d *decision) takenAway() {
	w := d.s.Work
	r := d.request(w.ID)
	if w.ID == "" || d.s.Phase != Rebase && d.s.Phase != Test {
		return
	}
	mine := r != nil && r.Status == mergequeue.Merging && d.mayLand(r)
	if mine && d.wholeStack() {
		return
	}
	if w.Running {
		d.do(StopTest{})
	}
	if mine { // without the one that is gone
		d.again()
		return
	}
	d.putBack()
	if r != nil && r.Status.Live() {
		d.change(Retire{w.ID})
	}
	d.drop()
}

func (d *decision) mayLand(r *mergequeue.Request) bool {
	return d.owned(r) || d.Unreadable[r.BeadID] != ""
}

// wholeStack reports whether everything in the stack may still land.
func (d *decision) wholeStack() bool {
	return !slices.ContainsFunc(d.s.Work.Stack.Requests(), func(id state.MergeID) bool {
		r := d.request(id)
		return r == nil || r.Status != mergequeue.Pending && r.Status != mergequeue.Merging || !d.mayLand(r)
	})
}

// notices reports ends that were not reported yet, including those of an earlier
// process.
func (d *decision) notices() {
	for i := range d.Queue {
		if r := &d.Queue[i]; r.Unannounced() {
			d.alone(Notify{r.ID})
		}
	}
}

// sweep retires the requests that wait for nothing any more. Conflicted ones
// are the mayor's and the person's: what blocks a bead may come back.
func (d *decision) sweep() {
	for i := range d.Queue {
		r := &d.Queue[i]
		if r.Status == mergequeue.Pending && r.ID != d.s.Work.ID && !d.owned(r) && d.Unreadable[r.BeadID] == "" {
			d.alone(Retire{r.ID})
		}
	}
}

func (d *decision) depth() {
	// The one in work counts: begun and put back, it must not cross the limit.
	waiting, newest := 0, state.MergeID("")
	for i := range d.Queue {
		if s := d.Queue[i].Status; (s == mergequeue.Pending || s == mergequeue.Merging) && !d.Queue[i].IsHeld() {
			waiting++
			newest = d.Queue[i].ID
		}
	}
	deep := mergequeue.IsDeep(waiting, d.Policy.MaxWaiting, d.Deep)
	switch {
	case deep && !d.Deep:
		d.alone(roles.Send{Message: mail.Message{To: d.Policy.Mayor, Type: mail.Coordination, ID: "queue-depth:" + string(newest),
			Subject: fmt.Sprintf("The merge queue is deep: %d requests wait", waiting),
			Body: fmt.Sprintf("More than %d requests wait (merge.max_waiting). They land one at a time, in order; this is told once until the queue has shrunk.\n",
				d.Policy.MaxWaiting)}}, RecordDepth{Waiting: waiting, Newest: newest})
	case !deep && d.Deep:
		d.alone(ForgetDepth{})
	}
}

// choose takes the next request: one that was begun first, else the oldest.
func (d *decision) choose() {
	head := d.head()
	switch {
	case head == nil:
		d.block("", "")
		d.drop()
		return
	case d.Unreadable[head.BeadID] != "":
		d.block(head.ID, fmt.Sprintf("bead %s can't be read: %s", head.BeadID, d.Unreadable[head.BeadID]))
	case head.Status == mergequeue.Conflicted:
		d.block(head.ID, fmt.Sprintf("%s: %s", head.Failure, wording.Reason(head.Reason)))
	case !d.waitOver(head):
		d.block(head.ID, head.Waiting)
	default:
		d.s.Work = Work{ID: head.ID}
	}
	d.s.Phase = Blocked
	if d.s.Work.ID != "" {
		d.s.Phase = Checkout
	}
}

func (d *decision) head() *mergequeue.Request {
	i := slices.IndexFunc(d.Queue, func(r mergequeue.Request) bool { return r.Status == mergequeue.Merging })
	if i < 0 {
		mayBegin := func(r mergequeue.Request) bool {
			return r.Status.Live() && !r.IsHeld() && (d.owned(&r) || d.Unreadable[r.BeadID] != "")
		}
		i = slices.IndexFunc(d.Queue, func(r mergequeue.Request) bool { return mayBegin(r) && !r.Passed(d.Now) })
		if i < 0 {
			i = slices.IndexFunc(d.Queue, mayBegin)
		}
	}
	if i < 0 {
		return nil
	}
	return &d.Queue[i]
}

// waitOver ends the wait of a request, or that of another one that is gone from
// the head. How often it was tried is kept.
func (d *decision) waitOver(r *mergequeue.Request) bool {
	w := &d.s.Wait
	switch {
	case w.Kind == NoWait:
		return true
	case w.Request != r.ID:
		*w = Wait{}
		return true
	case r.Waiting == "":
	case w.Tip != "" && d.Tip != "" && d.Tip != w.Tip:
	case !w.Until.IsZero() && !d.Now.Before(w.Until.Time):
	case w.Until.After(d.Now.Add(mostRetryTip)): // the clock was set back: nothing waits that long
	default:
		return false
	}
	w.Until, w.Tip = state.Time{}, ""
	return true
}

// block records in the event log that the queue begins or ends to be blocked.
func (d *decision) block(id state.MergeID, reason string) {
	if reason == d.s.Block {
		return
	}
	d.s.Block = reason
	if reason == "" {
		d.do(QueueUnblocked{})
		return
	}
	d.do(QueueBlocked{Request: id, Reason: reason})
}

// step asks for the next step of the request in work, unless it waits or runs.
func (d *decision) step() {
	w := &d.s.Work
	if w.ID == "" || w.Running {
		return
	}
	if d.s.Waiting() {
		if r := d.request(w.ID); r != nil && !d.waitOver(r) {
			d.block(w.ID, r.Waiting)
			return
		}
	}
	if d.s.Wait.Kind == NoWait { // a try that may fail again is not worth reporting
		d.block("", "")
	}
	switch d.s.Phase {
	case Checkout:
		d.do(CheckOut{w.ID})
	case Rebase:
		if w.Next != "" {
			d.do(RebaseOnto{Request: w.Next, Onto: w.Stack.Top(), Stacked: true})
			return
		}
		d.do(RebaseOnto{Request: w.ID, Onto: w.Onto})
	case Test:
		w.Running = true
		d.do(RunTest{Request: w.ID, Onto: w.Onto, Candidate: w.Candidate, Stack: w.Stack.First(w.Group), Tip: w.Blame != ""})
	case Merge, Push:
		d.do(Land{Request: w.ID, Onto: w.Onto, Candidate: w.Candidate, Stack: w.Stack.First(w.Group), Tested: w.Tested, Push: d.s.Phase == Push})
	case Idle, Blocked:
	}
}
