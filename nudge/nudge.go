// Package nudge stores short notices to an agent; only the latest of each sender counts.
// Nothing depends on them: a rig in which every nudge is lost still finishes all work.
// The fields are described in docs/state.md.
//
//	state/nudge/{agent}/from/{sender}.json  the newest nudge of a sender, written first
//	state/nudge/{agent}/latest.json         the newest nudge of all senders; other programs
//	                                        write only this file
//	state/nudge/{agent}/seen.json           for each sender the time of the newest nudge
//	                                        that the agent has processed
//
// There is one file for each sender so that a response can't replace the abort of
// another sender.
package nudge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Type is what a nudge asks for.
type Type string

// Types of nudges. Only mayor and human may abort.
const (
	HealthCheck    Type = "health_check"
	StallWarning   Type = "stall_warning"
	PriorityChange Type = "priority_change"
	Abort          Type = "abort"
	SyncRequest    Type = "sync_request"
	Response       Type = "nudge_response"
)

// Types lists all types, for help texts and checks.
func Types() []Type {
	return []Type{HealthCheck, StallWarning, PriorityChange, Abort, SyncRequest, Response}
}

// Ref is what a nudge refers to. The nudge is stale for another assignment or session.
type Ref struct {
	BeadID       state.BeadID       `json:"bead_id,omitempty"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	Session      state.SessionID    `json:"session,omitempty"`
}

// Nudge is one notice.
type Nudge struct {
	From             state.AgentID `json:"from"`
	Type             Type          `json:"type"`
	Message          string        `json:"message"`
	Timestamp        state.Time    `json:"timestamp"`
	RequiresResponse bool          `json:"requires_response"`
	Ref              *Ref          `json:"ref,omitempty"`
	// InReplyTo is the timestamp of the nudge that a response answers.
	InReplyTo *state.Time `json:"in_reply_to,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (n *Nudge) UnmarshalJSON(b []byte) error {
	type plain Nudge
	return state.UnmarshalWithExtra(b, (*plain)(n), &n.Extra)
}

// MarshalJSON writes unknown fields back.
func (n Nudge) MarshalJSON() ([]byte, error) {
	type plain Nudge
	return state.MarshalWithExtra(plain(n), n.Extra)
}

// MaxMessage bounds a nudge's text, in bytes.
const MaxMessage = 4 << 10

// Dir is the folder above the agents' folders.
const Dir = state.StateDir + "/nudge"

// Slot holds one agent's nudges.
type Slot struct {
	tree  *state.Tree
	owner state.AgentID
	log   *event.Log
	note  string
}

// NewSlot opens the slot of an agent. It logs nudges that are sent and seen; log may be
// nil.
func NewSlot(t *state.Tree, owner state.AgentID, log *event.Log) Slot {
	return Slot{tree: t, owner: owner, log: log}
}

// WithNote returns the slot with the text that MarkSeen logs instead of a nudge's own
// message.
func (s Slot) WithNote(note string) Slot {
	s.note = note
	return s
}

// Dir is the agent's folder.
func (s Slot) Dir() state.Path { return Dir.Join(string(s.owner)) }

// Send puts a nudge into the slot. Its timestamp is now, or one nanosecond after the
// sender's previous one if that is later. A later nudge of another sender stays in
// latest.json. Durable when it returns nil.
func (s Slot) Send(ctx context.Context, n Nudge, now state.Time) (Nudge, error) {
	if err := n.check(); err != nil {
		return n, err
	}
	from := s.Dir().Join("from", string(n.From)+".json")
	l, err := s.tree.Lock(ctx, state.LockRecord, "nudge-"+string(s.owner))
	if err != nil {
		return n, err
	}
	defer l.Unlock()
	latest, err := s.keepLatest()
	if err != nil {
		return n, err
	}
	n.Timestamp = now
	previous, err := s.read(from)
	switch {
	case err == nil && !now.After(previous.Timestamp.Time):
		n.Timestamp = state.At(previous.Timestamp.Add(1))
	case err == nil, errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrCorrupt): // a damaged nudge is replaced
	default:
		return n, err
	}
	if err := s.tree.ReplaceJSON(from, n); err != nil {
		return n, err
	}
	if !latest.Timestamp.After(n.Timestamp.Time) { // a sender with a later time may have got the lock first
		if err := s.tree.ReplaceJSON(s.Dir().Join("latest.json"), n); err != nil {
			return n, err
		}
	}
	s.log.Tell(event.NudgeSent(s.describe(&n, n.Message)))
	return n, nil
}

// keepLatest returns the nudge in latest.json, or the zero value if it is missing or
// damaged. If only latest.json has it, keepLatest first writes it to its sender's file,
// because latest.json is about to be replaced. The caller holds the lock of the slot.
func (s Slot) keepLatest() (Nudge, error) {
	latest, alone, err := s.LatestAlone()
	if err != nil || !alone {
		return latest, err
	}
	return latest, s.tree.ReplaceJSON(s.Dir().Join("from", string(latest.From)+".json"), latest)
}

// LatestAlone returns the nudge in latest.json, and whether it is newer than its sender's
// file, because another program has written it. A missing or damaged latest.json counts
// as no nudge.
func (s Slot) LatestAlone() (Nudge, bool, error) {
	latest, err := s.Latest()
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return Nudge{}, false, nil
	}
	if err != nil {
		return Nudge{}, false, err
	}
	own, err := s.read(s.Dir().Join("from", string(latest.From)+".json"))
	if err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrCorrupt) {
		return Nudge{}, false, err
	}
	return latest, err != nil || latest.Timestamp.After(own.Timestamp.Time), nil
}

// describe returns the content of the events about a nudge.
func (s Slot) describe(n *Nudge, message string) event.Nudge {
	e := event.Nudge{From: n.From, To: s.owner, Type: string(n.Type), Message: message}
	if n.Ref != nil {
		e.Work = event.Work{Bead: n.Ref.BeadID, Assignment: n.Ref.AssignmentID, Session: n.Ref.Session}
	}
	return e
}

func (n *Nudge) check() error {
	if n.From == "" {
		return errors.New("nudge: from is required")
	}
	if !slices.Contains(Types(), n.Type) {
		return fmt.Errorf("nudge: unknown type %q", n.Type)
	}
	if len(n.Message) > MaxMessage {
		return fmt.Errorf("nudge: %w: %d bytes, at most %d", state.ErrTooLarge, len(n.Message), MaxMessage)
	}
	return nil
}

func (s Slot) read(p state.Path) (Nudge, error) {
	var n Nudge
	if err := s.tree.ReadJSON(p, &n); err != nil {
		return n, err
	}
	if sender, ok := strings.CutSuffix(p.Base(), ".json"); p.Dir().Base() == "from" && (!ok || string(n.From) != sender) {
		return n, &state.Corruption{Path: string(p), Reason: fmt.Sprintf("from %q contradicts the file's name", n.From)}
	}
	if err := n.check(); err != nil {
		return n, &state.Corruption{Path: string(p), Reason: err.Error()}
	}
	return n, nil
}

// Latest returns the nudge in latest.json. Errors: ErrNotFound, *Corruption.
func (s Slot) Latest() (Nudge, error) { return s.read(s.Dir().Join("latest.json")) }

// All returns the newest nudge of each sender, oldest first, including one that only
// latest.json has, and an error for each file that could not be read.
func (s Slot) All() ([]Nudge, []error, error) {
	all, bad, err := s.senders()
	if err != nil {
		return nil, nil, err
	}
	latest, alone, err := s.LatestAlone()
	if err != nil {
		return nil, nil, err
	}
	if alone {
		all = append(slices.DeleteFunc(all, func(n Nudge) bool { return n.From == latest.From }), latest)
		byTime(all)
	}
	return all, bad, nil
}

func byTime(all []Nudge) {
	slices.SortStableFunc(all, func(a, b Nudge) int { return a.Timestamp.Compare(b.Timestamp.Time) })
}

// senders reads the files below from/.
func (s Slot) senders() ([]Nudge, []error, error) {
	entries, err := s.tree.List(s.Dir().Join("from"))
	if err != nil {
		return nil, nil, err
	}
	var all []Nudge
	var bad []error
	for _, e := range entries {
		n, err := s.read(s.Dir().Join("from", e.Name()))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		all = append(all, n)
	}
	byTime(all)
	return all, bad, nil
}

// Seen holds for each sender the timestamp of the newest nudge that the agent has
// processed.
type Seen struct {
	Seen map[state.AgentID]state.Time `json:"seen"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (s *Seen) UnmarshalJSON(b []byte) error {
	type plain Seen
	return state.UnmarshalWithExtra(b, (*plain)(s), &s.Extra)
}

// MarshalJSON writes unknown fields back.
func (s Seen) MarshalJSON() ([]byte, error) {
	type plain Seen
	return state.MarshalWithExtra(plain(s), s.Extra)
}

// Seen reads seen.json. A missing file is empty.
func (s Slot) Seen() (Seen, error) {
	var seen Seen
	err := s.tree.ReadJSON(s.Dir().Join("seen.json"), &seen)
	if errors.Is(err, state.ErrNotFound) {
		err = nil
	}
	return seen, err
}

// Unseen returns the nudges that are not marked as seen, oldest first, and an error for
// each file that could not be read.
func (s Slot) Unseen() ([]Nudge, []error, error) {
	all, bad, err := s.All()
	if err != nil || len(all) == 0 {
		return nil, bad, err
	}
	seen, err := s.Seen()
	if err != nil {
		bad = append(bad, err) // processing nudges twice does no harm
	}
	return slices.DeleteFunc(all, func(n Nudge) bool { return !n.Timestamp.After(seen.Seen[n.From].Time) }), bad, nil
}

// Injected logs that a nudge was shown to its recipient's model.
func (s Slot) Injected(n *Nudge) { s.log.Tell(event.NudgeInjected(s.describe(n, n.Message))) }

// MarkSeen records that a nudge was processed. Durable when it returns nil.
func (s Slot) MarkSeen(ctx context.Context, n Nudge) error {
	l, err := s.tree.Lock(ctx, state.LockRecord, "seen-"+string(s.owner))
	if err != nil {
		return err
	}
	defer l.Unlock()
	seen, err := s.Seen()
	if err != nil && !errors.Is(err, state.ErrCorrupt) {
		return err
	}
	if !n.Timestamp.After(seen.Seen[n.From].Time) {
		return nil
	}
	next := maps.Clone(seen.Seen)
	if next == nil {
		next = map[state.AgentID]state.Time{}
	}
	next[n.From] = n.Timestamp
	seen.Seen = next
	if err := s.tree.ReplaceJSON(s.Dir().Join("seen.json"), seen); err != nil {
		return err
	}
	s.log.Tell(event.NudgeSeen(s.describe(&n, cmp.Or(s.note, n.Message))))
	return nil
}

// Reconcile makes the files of a slot consistent after one was lost or damaged: it sets
// latest.json to the newest nudge of all, restores a sender's file from latest.json if
// only that has the newest nudge, and resets times in seen.json that are later than
// both the sender's newest nudge and now. Durable when it returns nil.
func (s Slot) Reconcile(ctx context.Context, now state.Time) error {
	l, err := s.tree.Lock(ctx, state.LockRecord, "nudge-"+string(s.owner))
	if err != nil {
		return err
	}
	defer l.Unlock()
	all, bad, err := s.senders()
	if err != nil || len(bad) > 0 {
		return errors.Join(append(bad, err)...)
	}
	latest, err := s.Latest()
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	newest := map[state.AgentID]state.Time{}
	last := latest
	for _, n := range all {
		newest[n.From] = n.Timestamp
		if !n.Timestamp.Before(last.Timestamp.Time) {
			last = n
		}
	}
	if err == nil && latest.Timestamp.After(newest[latest.From].Time) {
		if err := s.tree.ReplaceJSON(s.Dir().Join("from", string(latest.From)+".json"), latest); err != nil {
			return err
		}
		newest[latest.From] = latest.Timestamp
	}
	if last.From != "" && (err != nil || !last.Timestamp.Equal(latest.Timestamp.Time)) {
		if err := s.tree.ReplaceJSON(s.Dir().Join("latest.json"), last); err != nil {
			return err
		}
	}
	return s.takeBack(ctx, newest, now)
}

// takeBack resets times in seen.json that are in the future.
func (s Slot) takeBack(ctx context.Context, newest map[state.AgentID]state.Time, now state.Time) error {
	l, err := s.tree.Lock(ctx, state.LockRecord, "seen-"+string(s.owner))
	if err != nil {
		return err
	}
	defer l.Unlock()
	seen, err := s.Seen()
	if err != nil {
		return err
	}
	next, changed := maps.Clone(seen.Seen), false
	for from, t := range seen.Seen {
		if !t.After(newest[from].Time) || !t.After(now.Time) {
			continue
		}
		changed = true
		if newest[from].IsZero() {
			delete(next, from)
		} else {
			next[from] = newest[from]
		}
	}
	if !changed {
		return nil
	}
	seen.Seen = next
	return s.tree.ReplaceJSON(s.Dir().Join("seen.json"), seen)
}

// Quarantine moves a file of the slot to the quarantine, if it is still damaged under its
// lock. See state.Tree.QuarantineDamaged. Durable when it returns nil.
func (s Slot) Quarantine(ctx context.Context, p state.Path, now state.Time) error {
	lock := "nudge-"
	if p == s.Dir().Join("seen.json") {
		lock = "seen-"
	}
	l, err := s.tree.Lock(ctx, state.LockRecord, lock+string(s.owner))
	if err != nil {
		return err
	}
	defer l.Unlock()
	switch p {
	case s.Dir().Join("seen.json"):
		_, err = s.Seen()
	case s.Dir().Join("from"):
		_, err = s.tree.List(p)
	default:
		_, err = s.read(p)
	}
	return s.tree.QuarantineDamaged(p, err, now)
}
