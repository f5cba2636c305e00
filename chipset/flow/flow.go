// Package flow holds the durable sequences that make a bead's way, each written
// once: slinging it, retiring an attempt, landing a stack, and the interventions
// of a person or the mayor. It is pure. A sequence is a value that holds the
// records as they are on disk, and its method Next returns the next effect:
//
//	for {
//		records := read()
//		effect := records.Next()   // Done when nothing is left
//		carry out effect           // one durable step
//	}
//
// The first run and the recovery after a crash are the same loop. Whatever a
// process was doing when it died, whoever comes next reads the records and goes
// on from there. chipset/execute/carry carries effects out on the stores and git
// of a rig, chipset/simulate on stores in memory.
//
//	Dispatch      dispatch record → bead hooked → hook pending → launched → mail → confirmed
//	Retirement    retire record → work durable → bead done → merge request → mails → hook completed → worktree free
//	Landing       requests say so → target moved and beads merged, under the beads' locks → requests merged
//	Intervention  bead → hook → merge request
//
// Every effect may be carried out again: what it finds done, it leaves as it is.
// Its doc comment names what it relies on, which was made durable by an effect
// before it.
package flow

import (
	"errors"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Effect is one durable step of a sequence. Those that change one record
// implement BeadChange, HookChange or RequestChange as well, and are carried out
// by an update of that record.
type Effect interface {
	// Name says for events and tests what the effect makes durable.
	Name() string
}

// Sequence holds what the next effect of a sequence depends on: the records, and
// what this run knows beside them.
type Sequence interface {
	// Next returns the next effect, or Done.
	Next() Effect
	// Answer takes note of how the last effect went: err is nil, or one that decides.
	Answer(e Effect, err error)
}

// BeadChange is an effect that changes one bead, as a compare-and-swap: Change
// returns state.ErrUnchanged for a bead that was changed before a crash, and a
// state.ErrConflict for one that has gone another way.
type BeadChange interface {
	Effect
	Bead() state.BeadID
	Change(b *bead.Bead, now state.Time) error
}

// HookChange is an effect that changes one hook. See BeadChange.
type HookChange interface {
	Effect
	Hook() state.AgentID
	Change(h *hook.Hook, now state.Time) error
}

// RequestChange is an effect that changes one merge request. See BeadChange.
type RequestChange interface {
	Effect
	Request() state.MergeID
	Change(q *mergequeue.Request, now state.Time) error
}

// Done is returned by Next when nothing is left to do.
type Done struct{}

// PutDispatch writes a dispatch record. Written first, it relies on nothing; as
// launched it relies on bead and hook, as confirmed on the mail.
type PutDispatch struct{ Record dispatch.Record }

// RemoveDispatch removes the record of a dispatch that is undone. It relies on the
// bead being given back and the hook cleared: without the record nobody would know
// what is to be undone.
type RemoveDispatch struct {
	Record dispatch.Record
	// Refusal is why the dispatch could not be carried out, or nil.
	Refusal error
}

// Send delivers a message under its fixed name. It relies on the record that fixed
// the name, so that a retry publishes the same message. Errors that decide: see
// Decides.
type Send struct {
	As      mail.Name
	Message mail.Message
	// Short is true for the text that stands for one that was too large.
	Short bool
	// Optional mail to somebody who can't get any is dropped: the records say the same.
	Optional bool
}

// PutRetire advances a retire record. It relies on what its stage says.
type PutRetire struct {
	Record retire.Record
	// From is the stage that the record has had: the same when only a name or a ref
	// is written down.
	From retire.Stage
}

// Name implements Effect.
func (Done) Name() string { return "done" }

// Name implements Effect.
func (e PutDispatch) Name() string { return string(e.Record.Stage) }

// Name implements Effect.
func (RemoveDispatch) Name() string { return "undone" }

// Name implements Effect.
func (e Send) Name() string { return "mail " + string(e.Message.Type) }

// Name implements Effect.
func (e PutRetire) Name() string { return string(e.Record.Stage) }

// Refused reports whether an error stays however often one tries, other than a
// fault of the disk or of time.
func Refused(err error) bool {
	return errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt)
}

// Decides reports whether the error of an effect is an answer by which the
// sequence goes on: a change that a record refuses, or mail that can't be delivered
// as it is. Any other error ends the run, which is tried again later from the records.
func Decides(e Effect, err error) bool {
	switch e := e.(type) {
	case Send:
		return errors.Is(err, state.ErrExists) || errors.Is(err, state.ErrTooLarge) && !e.Short || Refused(err)
	case BeadChange, HookChange, RequestChange:
		return Refused(err)
	}
	return false
}

// sending is what a run knows of its mail: a name that is taken, and a text that is
// larger than the rig lets mail be.
type sending struct{ taken, large bool }

// answer takes note of the error of a Send.
func (s *sending) answer(err error) {
	s.taken = errors.Is(err, state.ErrExists)
	s.large = s.large || errors.Is(err, state.ErrTooLarge)
}

// fixedName is the name that a record holds, or the one for a time where what it
// holds is not a name of this sender.
func fixedName(text string, from state.AgentID, at state.Time) mail.Name {
	n, err := mail.ParseName(text)
	if err != nil || n != mail.NameAt(n.Time(), from) {
		return mail.NameAt(at, from)
	}
	return n
}

// nextName is the name of the next nanosecond, for a name that somebody else's
// message has.
func nextName(n mail.Name, from state.AgentID) string {
	return string(mail.NameAt(state.At(n.Time().Add(1)), from))
}
