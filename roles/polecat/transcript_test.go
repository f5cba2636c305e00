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
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// TestTranscripts plays testdata/*.txt. Each ---- asks for a decision: the actions,
// and after = the phase that follows. What happens is one of
//
//	hook pending AS BEAD | active AS BEAD SESSION | completed … | empty | corrupt WHY
//	bead STATUS AS | gone
//	worker none | running AS SESSION | exited AS SESSION [code=N] [signal=S] [timeout] [lost] [tail=T] [notstarted=T]
//	  [client=silent|finished|unfinished|refused|broken] [why=T] [changed] [left=N]
//	record AS OUTCOME STAGE | none
//	ended AS OUTCOME [REASON]
//	mail TYPE FROM [as=AS] [session=SESSION]
//	nudge TYPE FROM [as=AS] [session=SESSION] [early]
//	asked nothing | plan | permission | answered
//	progress | next BEAD | after DURATION | forget
//
// Mail and nudges stay until a decision retires them; progress is of one tick.
func TestTranscripts(t *testing.T) {
	rolestest.Run(t, func(t *testing.T, seen rolestest.Seen, transcript string) string {
		w, fresh := newWorld(), 0
		return rolestest.Paragraphs(t, transcript, func(lines []string, asked bool) string {
			for _, line := range lines {
				if err := w.apply(line); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			}
			if !asked {
				return ""
			}
			fresh++
			w.f.Fresh = state.SessionID(fmt.Sprintf("ses-%d", fresh))
			return w.tick(t, seen)
		})
	})
}

// world is what a transcript's lines change.
type world struct {
	f    Facts
	s    State
	mail int
}

func newWorld() *world {
	now := state.At(time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC))
	return &world{f: Facts{Now: now, Self: "polecat-alpha", Mayor: "mayor", Process: "ses-me",
		Policy: Policy{Touch: 15 * time.Second, Courtesy: 2 * time.Second},
		Hook:   &hook.Hook{AgentID: "polecat-alpha", Status: hook.Empty}, Worker: Worker{Status: WorkerNone}}}
}

func (w *world) tick(t *testing.T, seen rolestest.Seen) string {
	d := Decide(w.s, w.f)
	rolestest.Faults(t, seen, &d)
	w.s = d.Next
	for _, a := range d.Actions() {
		w.retire(a)
	}
	w.f.Progress = false
	return strings.Join(append(rolestest.Show(&d, describe), "= "+string(d.Next.Phase)), "\n") + "\n"
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
		return fmt.Sprintf("resume %s as %s after %s", a.Item.AssignmentID, a.Session, a.Item.Session)
	case Start:
		return fmt.Sprintf("start %s of %s", a.Item.Session, a.Item.AssignmentID)
	case Continue:
		return fmt.Sprintf("continue %s of %s (%s)", a.Item.Session, a.Item.AssignmentID, a.Why)
	case Touch:
		return fmt.Sprintf("touch %s %s", a.Assignment, a.Session)
	case Publish:
		return note(fmt.Sprintf("publish %s %s", a.Record.AssignmentID, a.Record.Outcome), strconv.Quote(a.Record.Reason))
	case StopWorker:
		return fmt.Sprintf("stop worker after %s (%s)", a.Courtesy, a.Why)
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

func (w *world) apply(line string) error {
	words := strings.Fields(line)
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "hook":
		w.hook(word)
	case "bead":
		w.f.Bead = nil
		if word(1) != "gone" {
			w.f.Bead = &bead.Bead{ID: "gt-a", Status: bead.Status(word(1)), AssignmentID: state.AssignmentID(word(2))}
		}
	case "worker":
		return w.worker(words[1:])
	case "record":
		w.f.Record = nil
		if word(1) != "none" {
			w.f.Record = &retire.Record{AssignmentID: state.AssignmentID(word(1)), Outcome: retire.Outcome(word(2)), Stage: retire.Stage(word(3))}
		}
	case "ended":
		w.f.Ended = append(w.f.Ended, retire.Record{AssignmentID: state.AssignmentID(word(1)), Outcome: retire.Outcome(word(2)), BeadID: "gt-a", Reason: word(3)})
	case "mail":
		w.letter(words)
	case "nudge":
		w.nudge(words)
	case "asked":
		w.f.Asked, w.f.Unplanned, w.f.Answered = nil, word(1) == "plan", word(1) == "answered"
		if word(1) == "plan" || word(1) == "permission" {
			w.f.Asked = []mail.Name{mail.NameAt(w.f.Now, w.f.Self)}
		}
	case "progress":
		w.f.Progress, w.f.Worker.LastProgress = true, w.f.Now
	case "next":
		w.f.Next = state.BeadID(word(1))
	case "after":
		d, err := time.ParseDuration(word(1))
		w.f.Now = state.At(w.f.Now.Add(d))
		return err
	case "forget": // another process takes over
		w.s, w.f.Status, w.f.Process = State{}, "", "ses-other"
	default:
		return fmt.Errorf("unknown line")
	}
	return nil
}

func (w *world) hook(word func(int) string) {
	if word(1) == "corrupt" {
		w.f.Hook, w.f.HookProblem = nil, word(2)
		return
	}
	h := &hook.Hook{AgentID: "polecat-alpha", Status: hook.Status(word(1))}
	if h.Status != hook.Empty {
		h.WorkItem = &hook.WorkItem{AssignmentID: state.AssignmentID(word(2)), BeadID: state.BeadID(word(3)), Session: state.SessionID(word(4)), AssignedAt: w.f.Now}
		if w.f.Hook != nil && w.f.Hook.Assignment() == h.WorkItem.AssignmentID {
			h.WorkItem.AssignedAt = w.f.Hook.WorkItem.AssignedAt
		}
	}
	w.f.Hook, w.f.HookProblem = h, ""
}

func (w *world) worker(words []string) error {
	w.f.Worker = Worker{Status: WorkerStatus(words[0])}
	if len(words) < 3 {
		return nil
	}
	w.f.Worker.Assignment, w.f.Worker.Session, w.f.Worker.Bead = state.AssignmentID(words[1]), state.SessionID(words[2]), "gt-a"
	w.f.Worker.StartedAt, w.f.Worker.LastProgress = w.f.Now, w.f.Now
	exit := &w.f.Worker.Exit
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "code":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			exit.Code = n
		case "signal":
			exit.Signal = value
		case "timeout":
			exit.TimedOut, exit.Ran = true, time.Minute
		case "lost":
			exit.Lost = true
		case "tail":
			exit.Tail = value
		case "notstarted":
			exit.NotStarted = value
		case "client":
			exit.Ending, exit.Resumable = Ending(value), true
			if exit.Ending == "silent" {
				exit.Ending = ByCode
			}
		case "why":
			exit.Why = value
		case "changed":
			exit.Changed = true
		case "left":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			w.f.Worker.Resumes = n
		default:
			return fmt.Errorf("unknown word %q", word)
		}
	}
	return nil
}

func (w *world) letter(words []string) {
	w.mail++
	at := state.At(w.f.Now.Add(time.Duration(w.mail)))
	e := mail.Entry{Name: mail.NameAt(at, state.AgentID(words[2])), Message: mail.Message{From: state.AgentID(words[2]), To: w.f.Self,
		Type: mail.Type(words[1]), Subject: "s", Timestamp: at}}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		if e.Ref == nil {
			e.Ref = &mail.Ref{}
		}
		if key == "as" {
			e.Ref.AssignmentID = state.AssignmentID(value)
		} else {
			e.Ref.Session = state.SessionID(value)
		}
	}
	w.f.Mail = append(w.f.Mail, e)
}

func (w *world) nudge(words []string) {
	w.mail++
	n := nudge.Nudge{From: state.AgentID(words[2]), Type: nudge.Type(words[1]), Message: "why", Timestamp: state.At(w.f.Now.Add(time.Duration(w.mail)))}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		if key == "early" {
			n.Timestamp = state.At(n.Timestamp.Add(-time.Hour))
			continue
		}
		if n.Ref == nil {
			n.Ref = &nudge.Ref{}
		}
		if key == "as" {
			n.Ref.AssignmentID = state.AssignmentID(value)
		} else {
			n.Ref.Session = state.SessionID(value)
		}
	}
	w.f.Nudges = append(w.f.Nudges, n)
}
