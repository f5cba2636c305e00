package polecat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/rolestest"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestTranscripts plays testdata/*.txt. Each ---- asks for a decision: the actions,
// and after = the phase that follows. What happens besides the shared nouns is
//
//	worker none | running AS SESSION [turns=N] | exited AS SESSION [code=N] [signal=S] [timeout] [lost] [attended] [inherited] [tail=T] [notstarted=T]
//	  [client=silent|finished|unfinished|refused|broken|gone] [why=T] [changed] [left=N] [loads=SECONDS]
//	record AS OUTCOME STAGE | none
//	ended AS OUTCOME [| REASON]
//	asked nothing | plan | permission | answered | late | vain
//	held | held no
//	budget used | budget raised
//	lease held | left | none
//	progress
//	next BEAD
//
// Mail and nudges stay until a decision retires them; progress is of one tick.
func TestTranscripts(t *testing.T) {
	rolestest.Run(t, func(t *testing.T, seen rolestest.Seen) rolestest.Stage {
		w := newWorld()
		w.decided = func(d *roles.Decision[State]) { rolestest.Faults(t, seen, d) }
		return w
	})
}

// world is what a transcript's lines change.
type world struct {
	f    Facts
	s    State
	mail int
	// decided gets each decision.
	decided func(*roles.Decision[State])
	count   int
}

func newWorld() *world {
	now := state.At(time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC))
	return &world{f: Facts{Now: now, Self: "polecat-alpha", Mayor: "mayor", Process: "ses-me",
		Policy: Policy{Touch: 15 * time.Second, StopDelay: 2 * time.Second, Patience: 2 * time.Minute, Silence: 450 * time.Second},
		Hook:   &hook.Hook{AgentID: "polecat-alpha", Status: hook.Empty}, Worker: Worker{Status: WorkerNone}}}
}

// Decide returns the actions and the phase that follows.
func (w *world) Decide() []string {
	w.count++
	w.f.Fresh = state.SessionID(fmt.Sprintf("ses-%d", w.count))
	d := Decide(w.s, w.f)
	w.decided(&d)
	w.s = d.Next
	for _, a := range d.Actions() {
		w.retire(a)
	}
	w.f.Progress = false
	return append(rolestest.Show(&d, describe), "= "+string(d.Next.Phase))
}

// retire takes out of the world what a decision has dealt with.
func (w *world) retire(a roles.Action) {
	nudged := func(n nudge.Nudge) {
		for i := range w.f.Nudges {
			if w.f.Nudges[i].Timestamp == n.Timestamp {
				w.f.Nudges = append(w.f.Nudges[:i:i], w.f.Nudges[i+1:]...)
				return
			}
		}
	}
	mailed := func(e mail.Entry) {
		for i := range w.f.Mail {
			if w.f.Mail[i].Name == e.Name {
				w.f.Mail = append(w.f.Mail[:i:i], w.f.Mail[i+1:]...)
				return
			}
		}
	}
	switch a := a.(type) {
	case roles.MarkSeen:
		nudged(a.Nudge)
	case roles.MarkRead:
		mailed(a.Entry)
	case ForgetEnded:
		w.f.Ended = slices.DeleteFunc(w.f.Ended, func(r retire.Record) bool { return r.AssignmentID == a.Assignment })
	case SetStatus:
		w.f.Status = a.Status
	}
}

func describe(a roles.Action) string {
	note := func(s, note string) string {
		if note != "" {
			s += " (" + note + ")"
		}
		return s
	}
	switch a := a.(type) {
	case CopyHook:
		return "copy hook: " + a.Problem
	case Activate:
		return fmt.Sprintf("activate %s as %s", a.Item.AssignmentID, a.Session)
	case Resume:
		return note(fmt.Sprintf("resume %s as %s after %s", a.Item.AssignmentID, a.Session, a.Item.Session), a.Why)
	case Start:
		return fmt.Sprintf("start %s of %s", a.Item.Session, a.Item.AssignmentID)
	case Continue:
		return fmt.Sprintf("continue %s of %s (%s)", a.Item.Session, a.Item.AssignmentID, a.Why)
	case Hold:
		if a.Fault.IsZero() {
			return fmt.Sprintf("hold %s", a.Item.AssignmentID)
		}
		return fmt.Sprintf("hold %s: %s", a.Item.AssignmentID, a.Fault.Kind)
	case TakeBack:
		return "take back"
	case Touch:
		return fmt.Sprintf("touch %s %s", a.Assignment, a.Session)
	case Publish:
		text := note(fmt.Sprintf("publish %s %s", a.Record.AssignmentID, a.Record.Outcome), strconv.Quote(a.Record.Reason))
		if f := a.Record.Fault; !f.IsZero() {
			text += fmt.Sprintf(" %s %s", f.Class, f.Kind)
		}
		return text
	case StopWorker:
		return fmt.Sprintf("stop worker after %s (%s)", a.Delay, a.Why)
	case Retire:
		return fmt.Sprintf("retire %s from %s", a.Record.AssignmentID, a.Record.Stage)
	case ForgetEnded:
		return "forget " + string(a.Assignment)
	case Abandon:
		return fmt.Sprintf("abandon %s of %s", a.Assignment, a.Session)
	case Claim:
		return "claim " + string(a.Bead)
	case SetStatus:
		return "status " + string(a.Status)
	}
	return fmt.Sprintf("%T", a)
}

// Happen takes in one line.
func (w *world) Happen(l rolestest.Line) error {
	switch l.Noun {
	case "hook":
		w.hook(l)
	case "bead":
		w.f.Bead = nil
		if !l.Has("gone") {
			b := l.Bead(w.f.Now)
			w.f.Bead = &b
		}
	case "worker":
		return w.worker(l)
	case "record":
		w.f.Record = nil
		if l.Word(0) != "none" {
			w.f.Record = &retire.Record{AssignmentID: state.AssignmentID(l.Word(0)), Outcome: retire.Outcome(l.Word(1)), Stage: retire.Stage(l.Word(2))}
		}
	case "ended":
		w.f.Ended = append(w.f.Ended, retire.Record{AssignmentID: state.AssignmentID(l.Word(0)), Outcome: retire.Outcome(l.Word(1)), BeadID: "gt-a", Reason: l.Text})
	case "mail":
		w.mail++
		w.f.Mail = append(w.f.Mail, l.Mail(w.f.Self, state.At(w.f.Now.Add(time.Duration(w.mail)))))
	case "nudge":
		w.mail++
		w.f.Nudges = append(w.f.Nudges, l.Nudge(state.At(w.f.Now.Add(time.Duration(w.mail)))))
	case "asked":
		asked := l.Word(0)
		w.f.Asked, w.f.Unplanned, w.f.Answered = nil, asked == "plan", asked == "answered"
		w.f.WaitedInVain, w.f.AnsweredLate = asked == "vain", asked == "late"
		if asked == "plan" || asked == "permission" || asked == "vain" {
			w.f.Asked = []mail.Name{mail.NameAt(w.f.Now, w.f.Self)}
		}
	case "lease":
		w.f.Lease = Lease(strings.TrimPrefix(l.Word(0), "none"))
	case "beside":
		w.f.Beside = true
	case "held":
		w.f.Held = l.Word(0) != "no"
	case "budget":
		w.f.OutOfBudget, w.f.Granted = l.Word(0) == "used", ""
		if l.Word(0) == "raised" {
			w.f.Granted = "the budget is used up: 5"
		}
		w.f.Held = w.f.OutOfBudget
	case "progress":
		w.f.Progress, w.f.Worker.LastProgress = true, w.f.Now
	case "next":
		w.f.Next = state.BeadID(l.Word(0))
	case "after":
		d, err := l.Duration()
		w.f.Now = state.At(w.f.Now.Add(d))
		return err
	case "restart":
		w.s, w.f.Status, w.f.Process = State{}, "", "ses-other"
	default:
		return fmt.Errorf("unknown line")
	}
	return nil
}

func (w *world) hook(l rolestest.Line) {
	if l.Has("corrupt") {
		w.f.Hook, w.f.HookProblem = nil, l.Text
		return
	}
	h := l.Hook(w.f.Now)
	if w.f.Hook != nil && h.WorkItem != nil && w.f.Hook.Assignment() == h.WorkItem.AssignmentID {
		h.WorkItem.AssignedAt = w.f.Hook.WorkItem.AssignedAt
	}
	w.f.Hook, w.f.HookProblem = &h, ""
}

func (w *world) worker(l rolestest.Line) error {
	w.f.Worker = Worker{Status: WorkerStatus(l.Word(0))}
	if l.Word(2) == "" {
		return nil
	}
	w.f.Worker.Assignment, w.f.Worker.Session, w.f.Worker.Bead = state.AssignmentID(l.Word(1)), state.SessionID(l.Word(2)), "gt-a"
	w.f.Worker.StartedAt, w.f.Worker.LastProgress = w.f.Now, w.f.Now
	if n := l.Number("loads", 0); n > 0 {
		w.f.Worker.Loadable = state.At(w.f.Now.Add(time.Duration(n) * time.Second))
	}
	w.f.Worker.Turns, w.f.Worker.Quiet = l.Number("turns", 0), time.Duration(l.Number("quiet", 0))*time.Second
	w.f.Worker.Resumes, w.f.Worker.Inherited = l.Number("left", 0), l.Has("inherited")
	if kind := l.Options["trying"]; kind != "" {
		w.f.Worker.Trying, w.f.Worker.TryingSince = fault.New(fault.Kind(kind), ""), w.f.Now
	}
	exit := &w.f.Worker.Exit
	exit.Lost, exit.Changed, exit.Script = l.Has("lost"), l.Has("changed"), l.Has("script")
	if l.Has("attended") {
		exit.Attended, exit.Lost = true, true
	}
	if l.Has("untouched") {
		exit.Untouched, exit.Ran = true, time.Duration(l.Number("seconds", 3))*time.Second
	}
	if l.Has("timeout") {
		exit.TimedOut, exit.Ran = true, time.Minute
	}
	exit.Code = l.Number("code", 0)
	exit.Signal, exit.Tail, exit.NotStarted, exit.Why = l.Options["signal"], l.Options["tail"], l.Options["notstarted"], l.Options["why"]
	if kind := l.Options["fault"]; kind != "" {
		exit.Fault = fault.New(fault.Kind(kind), exit.Why)
	}
	if client := l.Options["client"]; client != "" {
		exit.Ending, exit.Resumable = Ending(client), true
		if client == "silent" {
			exit.Ending = ByCode
		}
	}
	return nil
}
