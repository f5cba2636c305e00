package refinery

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// world is what the executor does, without a disk: it applies the actions to a
// queue in memory and leaves the results of the steps to the transcript.
type world struct {
	now      time.Time
	policy   Policy
	queue    []mergequeue.Request
	beads    map[state.BeadID]bead.Bead
	corrupt  map[state.BeadID]string
	tip      string
	mail     []mail.Entry
	nudges   []nudge.Nudge
	state    State
	result   Result
	out      []string
	finished bool
	deep     bool
	foreign  Foreign
	// decided gets each decision, where it is not nil.
	decided func(*roles.Decision[State])
	// asked is the step that waits for its result.
	asked roles.Action
}

func newWorld() *world {
	return &world{now: time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC), policy: Policy{MaxWaiting: 10, Mayor: "mayor"},
		beads: map[state.BeadID]bead.Bead{}, corrupt: map[state.BeadID]string{}}
}

func (w *world) facts() Facts {
	f := Facts{Now: state.At(w.now), Self: "refinery", Session: "ses-me", Policy: w.policy, Beads: w.beads, Unreadable: w.corrupt, Deep: w.deep, Foreign: w.foreign, Result: w.result, Mail: w.mail, Nudges: w.nudges}
	for _, q := range w.queue {
		if q.Status.Live() || q.Unannounced() {
			f.Queue = append(f.Queue, q)
		}
	}
	if w.state.Wait.Tip != "" {
		f.Tip = w.tip
	}
	return f
}

// settle decides until there is nothing to do, or a step's result is due. It
// reports false when decisions do not come to an end.
func (w *world) settle() bool {
	for range 100 {
		d := Decide(w.state, w.facts())
		if w.decided != nil {
			w.decided(&d)
		}
		w.state, w.result = d.Next, Result{}
		w.out = append(w.out, rolestest.Show(&d, describe)...)
		for _, a := range d.Actions() {
			w.apply(a)
		}
		if !d.Again || w.asked != nil || w.finished {
			return true
		}
	}
	return false
}

func (w *world) request(id state.MergeID) *mergequeue.Request {
	for i := range w.queue {
		if w.queue[i].ID == id {
			return &w.queue[i]
		}
	}
	return &mergequeue.Request{}
}

func (w *world) apply(a roles.Action) {
	now := state.At(w.now)
	switch a := a.(type) {
	case CheckOut:
		q := w.request(a.Request)
		q.Status, q.Waiting, q.InTheWay = mergequeue.Merging, "", false
		w.asked = a
	case RebaseOnto:
		w.asked = a
	case Land:
		for _, id := range a.Stack.Requests() {
			w.request(id).Status = mergequeue.Merging
		}
		w.asked = a
	case RunTest: // runs on its own: decisions go on meanwhile
	case MarkConflicted:
		q := w.request(a.Request)
		if q.Become(mergequeue.Conflicted, now) == nil {
			q.Failure, q.Reason, q.NoticeName, q.Notified = a.Failure, a.Reason, "x", false
		}
	case Requeue:
		q := w.request(a.Request)
		if q.Become(mergequeue.Pending, now) == nil {
			q.Waiting, q.InTheWay = a.Waiting, a.InTheWay
		}
	case SetWaiting:
		w.request(a.Request).Waiting = a.Waiting
	case Hold:
		q := w.request(a.Request)
		q.Held = a.Change
		_ = q.Become(mergequeue.Pending, now) // a stacked one is pending
	case Retire:
		_ = w.request(a.Request).Become(mergequeue.Superseded, now)
	case Notify:
		w.request(a.Request).Notified = true
	case RecordDepth:
		w.deep = true
	case ForgetDepth:
		w.deep = false
	case KnowTip:
		w.foreign = Foreign{}
	case roles.MarkRead:
		w.mail = w.mail[1:]
	case roles.MarkSeen:
		w.nudges = w.nudges[1:]
	case roles.Finish:
		w.finished = true
	}
}

func describe(a roles.Action) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", a), "refinery.")
	switch a := a.(type) {
	case CheckOut:
		return fmt.Sprintf("%s %s", name, a.Request)
	case RebaseOnto:
		return fmt.Sprintf("%s %s onto %s", name, a.Request, a.Onto)
	case RunTest:
		if a.Tip {
			return fmt.Sprintf("%s %s bare tip %s", name, a.Request, a.Onto)
		}
		return fmt.Sprintf("%s %s candidate %s", name, together(a.Stack), a.Candidate)
	case Land:
		return fmt.Sprintf("%s %s %s on %s tested=%t push=%t", name, together(a.Stack), a.Candidate, a.Onto, a.Tested, a.Push)
	case Hold:
		return fmt.Sprintf("%s %s %s", name, a.Request, a.Change.Change)
	case LeaveOut:
		return fmt.Sprintf("%s %s: %s", name, a.Request, a.Reason)
	case MarkConflicted:
		return fmt.Sprintf("%s %s %s: %s", name, a.Request, a.Failure, a.Reason)
	case Requeue:
		return fmt.Sprintf("%s %s: %s", name, a.Request, a.Waiting)
	case SetWaiting:
		return fmt.Sprintf("%s %s: %s", name, a.Request, a.Waiting)
	case RecordDepth:
		return fmt.Sprintf("%s %d", name, a.Waiting)
	case KnowTip:
		return fmt.Sprintf("%s %s of %s", name, a.Tip, a.Target)
	case QueueBlocked:
		return fmt.Sprintf("%s by %s: %s", name, a.Request, a.Reason)
	case Retire:
		return fmt.Sprintf("%s %s", name, a.Request)
	case Notify:
		return fmt.Sprintf("%s %s", name, a.Request)
	}
	return name
}

// together lists what is tested or landed together.
func together(s *Stack) string {
	var ids []string
	for _, id := range s.Requests() {
		ids = append(ids, string(id))
	}
	return strings.Join(ids, "+")
}

// Happen carries one line of a transcript out. Besides the shared nouns:
//
//	result KIND [onto=X] [candidate=X] [failure=X] [untested] [request=N] [hold=X] [| text]
//	tip X                the target moved
//	foreign X            somebody unknown moved it
//	retry ID, drop ID    what `queue retry` and `queue drop` do
//	allow ID             the person approves the change for which it is held
func (w *world) Happen(l rolestest.Line) error {
	switch l.Noun {
	case "request":
		r := l.Request(state.Time{})
		seq, err := strconv.ParseInt(strings.TrimPrefix(string(r.BeadID), "gt-"), 10, 64)
		if err != nil {
			return err
		}
		r.Seq = seq
		w.beads[r.BeadID] = bead.Bead{ID: r.BeadID, Status: bead.Done, AssignmentID: r.AssignmentID}
		w.queue = append(w.queue, r)
	case "bead":
		w.moveBead(state.BeadID(l.Word(0)), l.Word(1))
	case "result":
		w.result, w.asked = resultOf(l), nil
		if w.result.Kind == Landed {
			w.land()
		}
	case "after":
		d, err := l.Duration()
		w.now = w.now.Add(d)
		return err
	case "tip":
		w.tip = l.Word(0)
	case "foreign":
		w.foreign = Foreign{Target: "main", Tip: l.Word(0), Known: "t0", Back: true, Commits: []string{"sly"}}
	case "retry", "drop":
		w.intervene(l.Noun, w.request(state.MergeID(l.Word(0))))
	case "allow":
		if q := w.request(state.MergeID(l.Word(0))); q.Held != nil {
			q.Allowed = q.Held.Change
		}
	case "mail":
		w.mail = append(w.mail, l.Mail("refinery", state.At(w.now)))
	case "nudge":
		w.nudges = append(w.nudges, l.Nudge(state.At(w.now)))
	case "policy":
		w.policy.Remote = w.policy.Remote || l.Word(0) == "remote"
		w.policy.MaxWaiting = l.Number("max", w.policy.MaxWaiting)
		w.policy.Batch = l.Number("batch", w.policy.Batch)
	case "restart":
		w.state, w.result, w.asked, w.finished = State{}, Result{}, nil, false
	default:
		return fmt.Errorf("unknown line")
	}
	return nil
}

// intervene does to a request what a person may do.
func (w *world) intervene(verb string, q *mergequeue.Request) {
	if q.ID == "" {
		return
	}
	if verb == "drop" {
		w.moveBead(q.BeadID, string(bead.Blocked))
		_ = q.Become(mergequeue.Dropped, state.At(w.now))
		return
	}
	if q.Status == mergequeue.Conflicted {
		_ = q.Become(mergequeue.Pending, state.At(w.now))
		w.moveBead(q.BeadID, string(bead.Done))
	}
	q.Waiting, q.InTheWay, q.NoticeName, q.Notified = "", false, "", false
}

// land ends what the decision asked to land, or what an earlier process had landed.
func (w *world) land() {
	ids := w.state.Work.Stack.First(w.state.Work.Group).Requests()
	if w.state.Phase == Checkout {
		ids = []state.MergeID{w.state.Work.ID}
	}
	for _, id := range ids {
		q := w.request(id)
		q.Status, q.NoticeName = mergequeue.Merged, "x"
		w.beads[q.BeadID] = bead.Bead{ID: q.BeadID, Status: bead.Merged, AssignmentID: "as-1"}
	}
}

func (w *world) moveBead(id state.BeadID, status string) {
	delete(w.corrupt, id)
	switch status {
	case "gone":
		delete(w.beads, id)
	case "corrupt":
		delete(w.beads, id)
		w.corrupt[id] = "not JSON"
	default:
		b := w.beads[id]
		b.ID, b.Status = id, bead.Status(status)
		w.beads[id] = b
	}
}

func resultOf(l rolestest.Line) Result {
	r := Result{Kind: ResultKind(l.Word(0)), Onto: l.Options["onto"], Candidate: l.Options["candidate"],
		Failure: mergequeue.Failure(l.Options["failure"]), Untested: l.Has("untested"), Whole: l.Has("whole"), Text: l.Text}
	if h := l.Options["hold"]; h != "" {
		r.Hold = &mergequeue.Hold{Change: h, Paths: []string{".claude/x"}, Count: 1}
	}
	if n := l.Options["request"]; n != "" {
		r.Request = state.MergeID("mr-gt-" + n)
	}
	return r
}

// TestTranscripts plays testdata/*.txt. Each ---- asks for decisions until there is
// nothing to do or a result is due; after = stands the state that follows.
func TestTranscripts(t *testing.T) {
	rolestest.Run(t, func(t *testing.T, seen rolestest.Seen) rolestest.Stage {
		w := newWorld()
		w.decided = func(d *roles.Decision[State]) { rolestest.Faults(t, seen, d) }
		return w
	})
}

// Decide settles, and returns what was decided on the way.
func (w *world) Decide() []string {
	w.out = nil
	if !w.settle() {
		return append(w.out, "the decisions do not settle")
	}
	return append(w.out, "= "+w.standing())
}

func (w *world) standing() string {
	phase := string(w.state.Phase)
	if phase == "" {
		phase = "idle"
	}
	text := phase
	if w.state.Work.ID != "" {
		text += " " + string(w.state.Work.ID)
	}
	if g := w.state.Work.Group; g > 1 {
		text += fmt.Sprintf(" +%d", g-1)
	}
	if at := w.state.WakeAt(); !at.IsZero() {
		text += ", again in " + at.Sub(w.now).String()
	}
	return text
}
