package bead

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

var moment = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

// A new status sets the times and the holder that belong to it, and no others.
func TestBecomeSetsWhatBelongs(t *testing.T) {
	later := state.At(moment.Add(time.Hour))
	for _, c := range []struct{ from, to Status }{{Open, Hooked}, {Hooked, Open}, {InProgress, Closed}, {Done, Merged}, {Open, Cancelled}, {Closed, Open}, {Failed, Blocked}} {
		b := Bead{Status: c.from, Assignee: "polecat-alpha", AssignmentID: "as-1", ReadyAt: &moment, ClosedAt: &moment, CloseReason: "old", Gen: 3}
		if err := b.Become(c.to, "new", later); err != nil {
			t.Fatal(err)
		}
		over := c.to == Closed || c.to == Merged || c.to == Cancelled
		if b.Gen != 4 || !b.UpdatedAt.Equal(later.Time) || b.ReadyAt != nil || b.CloseReason != "new" || (b.ClosedAt != nil) != over || over && !b.ClosedAt.Equal(later.Time) {
			t.Errorf("%s → %s: %+v", c.from, c.to, b)
		}
		if (b.AssignmentID == "") != (c.to == Open) || (b.Assignee == "") != (c.to == Open) {
			t.Errorf("%s → %s: it is held by %q under %q", c.from, c.to, b.Assignee, b.AssignmentID)
		}
	}
}

// Only an imported bead that nobody works on is closed from elsewhere.
func TestCloseImported(t *testing.T) {
	for _, status := range []Status{Open, Hooked, InProgress, Done, Merged, Closed, Failed, Blocked, Cancelled} {
		for _, imported := range []bool{true, false} {
			b := Bead{Status: status, Gen: 1, ReadyAt: &moment}
			if imported {
				b.Metadata = map[string]string{MetaImported: "x-1"}
			}
			before := b
			err := b.CloseImported("done there", moment, state.At(moment.Add(time.Hour)))
			want := imported && (status == Open || status == Failed || status == Blocked)
			switch {
			case want && (err != nil || b.Status != Closed || b.Gen != 2 || b.ReadyAt != nil || b.CloseReason != "done there" || !b.ClosedAt.Equal(moment.Time) || b.UpdatedAt.Equal(moment.Time)):
				t.Errorf("%s: %v, %+v", status, err, b)
			case !want && (!errors.Is(err, state.ErrConflict) || b.Status != before.Status || b.Gen != before.Gen):
				t.Errorf("%s, imported %v: %v, %+v", status, imported, err, b)
			}
		}
	}
}

// An end is a word about how it went; a bead that is merely open again has none.
func TestBecomeForgetsUnended(t *testing.T) {
	for from, to := range map[Status]Status{InProgress: Done, Hooked: InProgress, Open: Hooked} {
		b := Bead{Status: from, AssignmentID: "as-1", Unended: 3}
		if err := b.Become(to, "", moment); err != nil || (b.Unended == 0) != (to == Done) {
			t.Errorf("%s → %s: %d, %v", from, to, b.Unended, err)
		}
	}
}

func TestTouch(t *testing.T) {
	b := Bead{Gen: 1}
	if b.Touch(moment); b.Gen != 2 || !b.UpdatedAt.Equal(moment.Time) {
		t.Errorf("%+v", b)
	}
}

// The log says who had a bead that is open again, and what was hooked.
func TestTold(t *testing.T) {
	held := &Bead{ID: "tt-1", Status: Hooked, Assignee: "polecat-alpha", AssignmentID: "as-1", Title: "the task", CloseReason: "why"}
	open := &Bead{ID: "tt-1", Status: Open, Title: "the task", CloseReason: "why"}
	if e, is := tell(held, open); !is || e.Assignment != "as-1" || !strings.Contains(e.Text, "why") {
		t.Errorf("taken back: %+v, %v", e, is)
	}
	if e, is := tell(open, held); !is || e.Agent != "polecat-alpha" || e.Assignment != "as-1" || !strings.Contains(e.Text, "the task") {
		t.Errorf("hooked: %+v, %v", e, is)
	}
	if _, is := tell(held, held); is {
		t.Error("no new status, but it is told")
	}
}

// No counter of a file is negative or above what can be counted.
func TestCheckCounters(t *testing.T) {
	good := Bead{ID: "tt-1", Status: Open, Priority: P2, Title: "t", Gen: state.MaxCounter}
	if err := check("tt-1", &good); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Bead){
		"gen": func(b *Bead) { b.Gen = -1 }, "attempts": func(b *Bead) { b.Attempts = -1 }, "restarts": func(b *Bead) { b.Restarts = -1 }, "unended": func(b *Bead) { b.Unended = -1 },
		"conflicts": func(b *Bead) { b.Conflicts = -1 }, "assignments": func(b *Bead) { b.Assignments = -1 }, "large gen": func(b *Bead) { b.Gen++ },
		"hooked": func(b *Bead) { b.Status = Hooked }, "in progress": func(b *Bead) { b.Status = InProgress }, "done": func(b *Bead) { b.Status = Done },
	} {
		b := good
		change(&b)
		if check("tt-1", &b) == nil {
			t.Errorf("%s: a bad one was taken", what)
		}
	}
}
