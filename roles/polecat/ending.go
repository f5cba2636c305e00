package polecat

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Ending is what a worker's client says about its end, where it says anything:
// the exit codes of agents lie.
type Ending string

const (
	// ByCode: it says nothing, and the exit code counts.
	ByCode Ending = ""
	// Clean: the agent ended its turn by itself, and without an error.
	Clean Ending = "finished"
	// Early: it was made to end before it was through.
	Early Ending = "unfinished"
	// Refused: it ended, but was not permitted what it asked for.
	Refused Ending = "refused"
	// Broken: it could not go on, and going on would change nothing.
	Broken Ending = "broken"
	// Gone: the session that it was to continue can't be loaded any more.
	Gone Ending = "gone"
)

// GoOn says why a session should be continued rather than retired, and "" when it
// should not: it can't be, it has been often enough, or its end is the end. b is
// the bead, nil where it can't be read.
func (e *Exit) GoOn(left int, b *bead.Bead) string {
	if !e.Resumable || left <= 0 || e.NotStarted != "" || e.TimedOut {
		return ""
	}
	switch e.Ending {
	case ByCode:
		return ""
	case Clean:
		if e.Changed || b != nil && b.AllowEmpty {
			return ""
		}
		return "it ended although nothing has changed, and nothing was reported"
	case Early, Refused:
		return e.Why
	case Broken, Gone:
	}
	return ""
}

// endedOutside is why a session goes on that somebody ended.
const endedOutside = "it was ended from outside in the middle of its work"

// CanWait reports whether a worker that asked something can wait for the answer: it
// ended its turn of itself, and its session can be continued.
func (e *Exit) CanWait() bool {
	return e.Resumable && !e.Lost && !e.TimedOut && e.NotStarted == "" && (e.Ending == Clean || e.Ending == Refused)
}

// Failed reports whether the exit counts as a failure of the attempt that the worker
// itself came to.
func (e *Exit) Failed() bool {
	outcome, _ := e.Outcome()
	return outcome == retire.Fail && !e.EndedOutside() && e.NotStarted == ""
}

// cutShort reports whether a session can go on later that a service or its account ended, or whose client is gone, as
// while it is being updated.
func (e *Exit) cutShort() bool {
	outcome, _ := e.Outcome()
	passes := e.Fault.Class == fault.Capacity || e.Fault.Kind.NeedsPerson()
	if e.NotStarted != "" {
		passes = e.Fault.Kind == fault.ClientMissing || e.Fault.Kind == fault.ClientRefused
	}
	return outcome == retire.Fail && passes && e.Resumable && !e.Lost && !e.TimedOut
}

// silent reports whether a worker ended well whose session can't be continued.
func (e *Exit) silent() bool {
	return !e.Resumable && !e.Lost && !e.TimedOut && e.NotStarted == "" && e.Ending == ByCode && e.Signal == "" && e.Code == 0
}

// succeeded reports whether a worker whose client says nothing ended well: what it was to do is done.
func (e *Exit) succeeded() bool {
	outcome, _ := e.Outcome()
	return outcome == retire.Done && e.Ending == ByCode && !e.Lost
}

// EndedOutside reports whether somebody else ended the worker, or its supervisor: the end says nothing of the work.
func (e *Exit) EndedOutside() bool {
	return e.Lost || e.NotStarted == "" && !e.TimedOut && e.Ending == ByCode && e.Fault.IsZero() && e.terminated()
}

// endedTooOften is the record with which an attempt ends whose workers were all EndedOutside.
func (e *Exit) endedTooOften(item *hook.WorkItem, self state.AgentID) retire.Record {
	rec := newRecord(item, self)
	rec.Outcome, rec.Reason = retire.Fail, fmt.Sprintf("the worker was ended from outside %d times", maxLost)
	if e.Signal != "" {
		rec.Reason += ", at last by " + e.Signal
	}
	rec.Reason += e.lastWords()
	rec.Fault = e.shortFailure(rec.Reason)
	return rec
}

// terminated reports an end by a signal that people and systems send, which some clients turn into a code.
func (e *Exit) terminated() bool {
	signals := map[string]int{"SIGHUP": 1, "SIGINT": 2, "SIGKILL": 9, "SIGTERM": 15}
	if e.Signal != "" {
		return signals[e.Signal] > 0
	}
	return e.Resumable && slices.Contains(slices.Collect(maps.Values(signals)), e.Code-128) // a script may end with any code
}

// Outcome is what an exit means for the attempt: a clean end or code 0 is done,
// whatever else is a failure. The first line of the reason names the cause, for every
// place that shows only that; the worker's last words may follow. What only a person can
// permit is a question to one.
func (e *Exit) Outcome() (retire.Outcome, string) {
	switch {
	case e.NotStarted != "":
		return retire.Fail, "the worker could not start: " + e.NotStarted
	case e.TimedOut && !e.Fault.IsZero():
		return retire.Fail, e.timedOut() + ": " + e.Fault.Reason
	case e.TimedOut:
		return retire.Fail, e.timedOut() + e.lastWords()
	case e.Ending == Refused:
		return retire.Block, e.Why + e.lastWords()
	case !e.Fault.IsZero() && e.Ending != Clean: // its reason quotes what matters
		return retire.Fail, e.Fault.Reason
	case e.Ending == Early, e.Ending == Broken, e.Ending == Gone:
		return retire.Fail, e.Why + e.lastWords()
	case e.Signal != "":
		return retire.Fail, "killed by " + e.Signal + e.lastWords()
	case e.Code == 0:
		return retire.Done, ""
	case e.Code == 126, e.Code == 127:
		return retire.Fail, fmt.Sprintf("exit code %d, a command could not be found or executed", e.Code) + e.lastWords()
	}
	return retire.Fail, fmt.Sprintf("exit code %d", e.Code) + e.lastWords()
}

func (e *Exit) timedOut() string {
	if e.Exceeded != "" {
		return "ended because " + e.Exceeded
	}
	return fmt.Sprintf("timed out after %s", e.Ran.Round(time.Second))
}

// Record is the record with which the exit ends the attempt at an item.
func (e *Exit) Record(item *hook.WorkItem, self state.AgentID) retire.Record {
	rec := newRecord(item, self)
	rec.Outcome, rec.Reason = e.Outcome()
	if rec.Outcome != retire.Fail {
		return rec
	}
	rec.Fault = e.Fault
	if short := e.shortFailure(rec.Reason); !short.IsZero() {
		rec.Fault = short
	}
	return rec
}

// shortFailure is the fault of a worker that may never have come to its work; it is zero for any other.
func (e *Exit) shortFailure(reason string) fault.Fault {
	if e.Unexplained() && e.Untouched {
		return fault.New(fault.ShortFailure, wording.FirstLine(reason))
	}
	return fault.Fault{}
}

// shortRun is how long a worker runs at least that has come to its work: a client takes
// seconds to start, and a model to answer.
const shortRun = 10 * time.Second

// Unexplained reports whether a worker failed after a short time, and nothing says why.
// Unless it has changed something, it may never have come to its work.
func (e *Exit) Unexplained() bool {
	outcome, _ := e.Outcome()
	return outcome == retire.Fail && e.Fault.IsZero() && e.Ending == ByCode && !e.TimedOut && !e.Script && 0 < e.Ran && e.Ran < shortRun
}

func newRecord(item *hook.WorkItem, self state.AgentID) retire.Record {
	return retire.Record{AssignmentID: item.AssignmentID, AgentID: self, BeadID: item.BeadID, Session: item.Session}
}

// lastWords quotes the end of the transcript: its last line of text beside the cause, and all
// of it below where there is more.
func (e *Exit) lastWords() string {
	lines := strings.Split(e.Tail, "\n")
	text := ""
	for _, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		// A line of JSON, of punctuation alone, or a hint below an error names no cause.
		if !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "hint: ") && strings.ContainsFunc(line, unicode.IsLetter) {
			text = ": " + wording.Clip(line, maxWords)
			break
		}
	}
	if len(lines) > 1 {
		text += "\n" + e.Tail
	}
	return text
}

// maxWords bounds the last words beside a cause, in bytes.
const maxWords = 300
