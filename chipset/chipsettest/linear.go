package chipsettest

import (
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state/bead"
)

// Verdict is how a process that tried a step ended.
type Verdict string

// The ends of a step.
const (
	Did Verdict = "did"
	// Refused is exit 4: the step was illegal or stale, and changed nothing.
	Refused Verdict = "refused"
	// Unknown is a process that was killed: the step may or may not have happened.
	Unknown Verdict = "unknown"
)

// Step is one step that a process tried on an object of the tree.
type Step struct {
	// Object is the agent or the bead.
	Object string
	// Verb is the command: set, activate, touch, complete, clear, cancel, reopen, edit, show.
	Verb string
	// Assignment is the one that the process spoke of; "" is none.
	Assignment string
}

// Seen is what a step told: its verdict, and the object as it then was.
type Seen struct {
	Verdict    Verdict
	Gen        int64
	Status     string
	Assignment string
	Session    string
}

// Tried makes an operation of a history. Times are counted from the history's
// beginning. One of unknown end may still happen at any later time.
func Tried(client int, s Step, call time.Duration, seen Seen, end time.Duration) porcupine.Operation {
	if seen.Verdict == Unknown {
		end = math.MaxInt64
	}
	return porcupine.Operation{ClientId: client, Input: s, Call: int64(call), Output: seen, Return: int64(end)}
}

// object is what a model knows of one hook or bead.
type object struct {
	gen                         int64
	status, assignment, session string
}

// unseen stands for a name that a killed process chose and nobody has told yet.
const unseen = "?"

// fits reports whether a name can be the one that is known, and what is known then.
func fits(known, told string) (string, bool) {
	if known == unseen && told != "" {
		return told, true
	}
	return known, known == told
}

// is reports whether the object is what a step told, and fills in what was unseen.
func (o object) is(s Seen) (object, bool) {
	if s.Verdict == Unknown {
		return o, true
	}
	var a, b bool
	o.assignment, a = fits(o.assignment, s.Assignment)
	o.session, b = fits(o.session, s.Session)
	return o, a && b && o.gen == s.Gen && o.status == s.Status
}

// HookModel is the machine of state.md for one hook at a time. told are the
// assignments of which a process said that it set them: one that a killed
// process set is none of these.
func HookModel(told map[string]bool) porcupine.Model {
	return model(object{status: string(hook.Empty)}, func(o object, s Step, seen Seen) (object, bool) {
		names := o.assignment == s.Assignment
		if o.assignment == unseen && !told[s.Assignment] && s.Assignment != "" {
			if seen.Verdict == Refused {
				return o, true // it may or may not have been this one
			}
			names, o.assignment = true, s.Assignment
		}
		legal := false
		next := object{o.gen + 1, o.status, o.assignment, o.session}
		switch s.Verb {
		case "show":
			return o.is(seen)
		case "set":
			legal = o.status == string(hook.Empty)
			next.status, next.assignment, next.session = string(hook.Pending), unseen, ""
		case "activate":
			legal = o.status == string(hook.Pending) && names
			next.status, next.session = string(hook.Active), unseen
		case "touch":
			legal = o.status == string(hook.Active) && names
			if seen.Verdict == Did && seen.Gen == o.gen {
				next.gen = o.gen // throttled: nothing was written
			}
		case "complete":
			legal = o.status == string(hook.Active) && names
			next.status = string(hook.Completed)
		case "clear":
			legal = o.status != string(hook.Empty) && (names || s.Assignment == "")
			next.status, next.assignment, next.session = string(hook.Empty), "", ""
		}
		return o.after(next, legal, seen)
	})
}

// BeadModel is the part of the beads' machine that one command moves at once.
func BeadModel() porcupine.Model {
	return model(object{gen: 1, status: string(bead.Open)}, func(o object, s Step, seen Seen) (object, bool) {
		next, legal := object{gen: o.gen + 1, status: o.status}, false
		switch s.Verb {
		case "show":
			return o.is(seen)
		case "cancel":
			legal, next.status = o.status == string(bead.Open), string(bead.Cancelled)
		case "reopen":
			legal, next.status = o.status == string(bead.Cancelled), string(bead.Open)
		case "edit":
			legal = o.status == string(bead.Open)
		}
		if seen.Verdict == Did { // these commands do not tell what they left
			return next, legal
		}
		return o.after(next, legal, seen)
	})
}

// after is how a step leaves an object: one that did must have been legal, one that was
// refused must not, and of one whose process was killed either is true.
func (o object) after(next object, legal bool, seen Seen) (object, bool) {
	switch {
	case seen.Verdict == Refused:
		return o, !legal
	case seen.Verdict == Did && legal:
		return next.is(seen)
	case seen.Verdict == Did:
		return o, false
	case legal:
		return next, true
	}
	return o, true
}

func model(first object, step func(object, Step, Seen) (object, bool)) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byObject := map[string][]porcupine.Operation{}
			var order []string
			for _, op := range history {
				name := op.Input.(Step).Object
				if _, seen := byObject[name]; !seen {
					order = append(order, name)
				}
				byObject[name] = append(byObject[name], op)
			}
			var parts [][]porcupine.Operation
			for _, name := range order {
				parts = append(parts, byObject[name])
			}
			return parts
		},
		Init: func() any { return first },
		Step: func(state, input, output any) (bool, any) {
			next, ok := step(state.(object), input.(Step), output.(Seen))
			return ok, next
		},
		DescribeOperation: func(input, output any) string {
			s, seen := input.(Step), output.(Seen)
			return strings.Join([]string{s.Verb, s.Object, s.Assignment, "→", string(seen.Verdict), seen.Status, seen.Assignment}, " ")
		},
	}
}

// Told lists the assignments that a history says were set.
func Told(history []porcupine.Operation) map[string]bool {
	told := map[string]bool{}
	for _, op := range history {
		if seen := op.Output.(Seen); op.Input.(Step).Verb == "set" && seen.Verdict == Did {
			told[seen.Assignment] = true
		}
	}
	return told
}
