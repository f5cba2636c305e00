package bead

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Dir is the folder of the beads.
const Dir = state.StateDir + "/work"

// Store is state/work/.
type Store struct{ event.Recorder[Bead] }

// NewStore opens the beads of a tree. It logs new beads and changes of status; log may be
// nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{event.Record(state.NewStore(t, Dir, "bead", state.LockBead, check).WithSummaries("1", outlineFields), log, eventOf)}
}

// By returns the store with agent as the author of its events, and with why as their
// text, unless why is "".
func (s Store) By(agent state.AgentID, why string) Store {
	return Store{s.Recorder.By(agent, why)}
}

// eventOf returns the event of a new bead or a new status. Other changes are logged by the
// verbs that make them.
func eventOf(before, after *Bead) (event.Event, bool) {
	if before == nil {
		return event.BeadAdded(after.CreatedBy, after.ID, string(after.Status), after.Title), true
	}
	if before.Status == after.Status {
		return event.Event{}, false
	}
	m := event.BeadMove{Bead: after.ID, Assignment: after.AssignmentID, Assignee: after.Assignee,
		From: string(before.Status), To: string(after.Status), Why: after.CloseReason}
	if m.Assignment == "" {
		m.Assignment, m.Assignee = before.AssignmentID, before.Assignee
	}
	if after.Status == Hooked {
		m.Why = after.Title
	}
	return event.BeadMoved(after.Assignee, m), true
}

// Edit changes a bead and logs that as an edit, with the text of By, unless the status
// changes, which is logged as such. Durable when it returns nil.
func (s Store) Edit(ctx context.Context, id state.BeadID, change func(b *Bead) error) (Bead, error) {
	var before Bead
	b, err := s.Update(ctx, string(id), func(b *Bead) error {
		before = *b
		return change(b)
	})
	if err == nil && b.Status == before.Status && b.Gen != before.Gen {
		s.Author().Tell(event.BeadEdited(b.CreatedBy, b.ID, ""))
	}
	return b, err
}

func outlineFields(b *Bead) []string {
	var reason, ready string
	if b.Status == Blocked {
		reason = b.CloseReason
	}
	if b.Status == Open && b.ReadyAt != nil {
		ready = b.ReadyAt.String()
	}
	fields := []string{string(b.Status), b.Title, reason, ready}
	if b.Status == Open {
		fields = append(fields, wording.Strings(b.BlockedBy)...)
	}
	return fields
}

// Overview returns all beads with some of their fields, and an error for each file that
// could not be read. It is faster than All, because it reads only files that have changed
// since the last call of any process. It sets ID, Status and Title; for an open bead also
// BlockedBy and ReadyAt; for a blocked one CloseReason.
func (s Store) Overview() ([]Bead, []error, error) {
	summaries, bad, err := s.Summaries()
	all := make([]Bead, 0, len(summaries))
	for _, summary := range summaries {
		if len(summary.Fields) < 4 {
			continue // not made by outlineFields
		}
		b := Bead{ID: state.BeadID(summary.Name), Status: Status(summary.Fields[0]), Title: summary.Fields[1], CloseReason: summary.Fields[2]}
		if summary.Fields[3] != "" {
			var at state.Time
			if err := at.UnmarshalText([]byte(summary.Fields[3])); err == nil {
				b.ReadyAt = &at
			}
		}
		for _, dep := range summary.Fields[4:] {
			b.BlockedBy = append(b.BlockedBy, state.BeadID(dep))
		}
		all = append(all, b)
	}
	return all, bad, err
}

// Add stores a new open bead under a fresh ID and returns it. Durable when it returns nil.
// Errors: those of CheckDependencies.
func (s Store) Add(b Bead, prefix string, now state.Time) (Bead, error) {
	if b.Priority == "" {
		b.Priority = P2
	}
	b.Status, b.CreatedAt, b.UpdatedAt, b.Gen = Open, now, now, 1
	if err := s.CheckDependencies(b.ID, b.BlockedBy); err != nil {
		return b, err
	}
	for {
		id, err := NewID(prefix)
		if err != nil {
			return b, err
		}
		b.ID = id
		err = s.Create(string(id), b)
		if errors.Is(err, state.ErrExists) {
			continue
		}
		return b, err
	}
}

// Adopt stores a new open bead under the ID that another program gave it. Durable when
// it returns nil. Errors: ErrExists.
func (s Store) Adopt(b Bead, now state.Time) error {
	b.Priority, b.Status, b.CreatedAt, b.UpdatedAt, b.Gen = P2, Open, now, now, 1
	return s.Create(string(b.ID), b)
}

// CheckDependencies returns an error if a dependency does not exist, or if the
// dependencies make a cycle through id ("" for a new bead, which can't be in a cycle).
func (s Store) CheckDependencies(id state.BeadID, blockedBy []state.BeadID) error {
	if len(blockedBy) == 0 {
		return nil
	}
	for _, dep := range blockedBy {
		if dep == id {
			return state.Conflictf("bead "+string(id), "can't be blocked by itself")
		}
		if _, err := s.Get(string(dep)); err != nil {
			return err
		}
	}
	if id == "" {
		return nil
	}
	all, bad, err := s.All()
	for _, b := range bad {
		if !errors.Is(b, state.ErrCorrupt) { // a damaged bead has no dependencies
			err = errors.Join(err, b)
		}
	}
	if err != nil {
		return err
	}
	graph := GraphOf(all)
	graph[id] = blockedBy
	if cycle := graph.Cycle(id); cycle != nil {
		return state.Conflictf("bead "+string(id), "dependency cycle: %s", wording.Join(cycle, " → "))
	}
	return nil
}

// Blockers returns b's dependencies that have not landed, as text with their status.
func Blockers(b *Bead, byID map[state.BeadID]*Bead) []string {
	var open []string
	for _, dep := range Unmet(b, byID) {
		status := "missing"
		if d := byID[dep]; d != nil {
			status = string(d.Status)
		}
		open = append(open, fmt.Sprintf("%s (%s)", dep, status))
	}
	return open
}

// Unmet returns b's dependencies that have not landed, including missing ones.
func Unmet(b *Bead, byID map[state.BeadID]*Bead) []state.BeadID {
	var open []state.BeadID
	for _, dep := range b.BlockedBy {
		if d := byID[dep]; d == nil || !d.Status.Landed() {
			open = append(open, dep)
		}
	}
	return open
}

// Index returns a map of the beads by ID.
func Index(all []Bead) map[state.BeadID]*Bead {
	byID := make(map[state.BeadID]*Bead, len(all))
	for i := range all {
		byID[all[i].ID] = &all[i]
	}
	return byID
}
