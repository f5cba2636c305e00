package bead

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
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
	if e, is := eventOf(held, open); !is || e.Assignment != "as-1" || !strings.Contains(e.Text, "why") {
		t.Errorf("taken back: %+v, %v", e, is)
	}
	if e, is := eventOf(open, held); !is || e.Agent != "polecat-alpha" || e.Assignment != "as-1" || !strings.Contains(e.Text, "the task") {
		t.Errorf("hooked: %+v, %v", e, is)
	}
	if _, is := eventOf(held, held); is {
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

// A bead cools until it is ready, and no longer because the clock was set back since.
func TestCooling(t *testing.T) {
	at := func(s int) state.Time { return state.At(now.Add(time.Duration(s) * time.Second)) }
	later := at(10)
	for _, c := range []struct {
		ready            *state.Time
		updated, present state.Time
		cools            bool
	}{
		{nil, at(0), at(5), false}, {&later, at(0), at(5), true}, {&later, at(5), at(5), true}, {&later, at(0), at(10), false}, {&later, at(0), at(20), false},
		{&later, at(6), at(5), false},
	} {
		if b := (&Bead{ReadyAt: c.ready, UpdatedAt: c.updated}); b.Cooling(c.present) != c.cools {
			t.Errorf("%+v: %v", c, b.Cooling(c.present))
		}
	}
}

// The person reads what is held against a bead; hooks that were ended by hand only where there are any.
func TestFailureCounts(t *testing.T) {
	for want, b := range map[string]Bead{
		"failed attempts: 1, conflicts: 2, restarts: 3":                                       {Attempts: 1, Conflicts: 2, Restarts: 3},
		"failed attempts: 0, conflicts: 0, restarts: 0, hook completed or cleared by hand: 4": {Unended: 4},
	} {
		if got := b.FailureCounts(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A bead of another program keeps its ID and is open, whatever it says of itself.
func TestAdopt(t *testing.T) {
	s := newStore(t)
	for range 2 {
		err := s.Adopt(Bead{ID: "bd-7", Title: "theirs", Status: Merged, Gen: 9}, now)
		if b, getErr := s.Get("bd-7"); getErr != nil || b.Status != Open || b.Gen != 1 || b.Priority != P2 || !b.CreatedAt.Equal(now.Time) || !b.UpdatedAt.Equal(now.Time) {
			t.Fatalf("%+v, %v, %v", b, getErr, err)
		}
		if _, err := s.Update(t.Context(), "bd-7", func(b *Bead) error { b.Title = "ours"; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := s.Get("bd-7"); b.Title != "ours" {
		t.Error("it was adopted a second time")
	}
}

// What is gone may be gone only where no bead names it, and that is known.
func TestCheckUnreferenced(t *testing.T) {
	snapshot := func(text string, err error) audit.Snapshot {
		return func(string) (audit.File, error) {
			if text == "" {
				return audit.File{}, err
			}
			return audit.File{ID: "1", Data: []byte(text)}, err
		}
	}
	names := func(b *Bead) bool { return b.ConvoyID == "cv-1" }
	for what, c := range map[string]struct {
		later audit.Snapshot
		ids   []state.BeadID
		legal bool
	}{
		"no beads":               {snapshot("", errors.New("lost")), nil, true},
		"a bead that went, too":  {snapshot("", nil), []state.BeadID{"gt-1"}, true},
		"a bead that names it":   {snapshot(`{"id":"gt-1","convoy_id":"cv-1"}`, nil), []state.BeadID{"gt-1"}, false},
		"a bead of another one":  {snapshot(`{"id":"gt-1","convoy_id":"cv-2"}`, nil), []state.BeadID{"gt-1"}, true},
		"a bead nobody can read": {snapshot(`{`, nil), []state.BeadID{"gt-1"}, true},
		"a lost snapshot":        {snapshot("", errors.New("lost")), []state.BeadID{"gt-1"}, false},
	} {
		if err := CheckUnreferenced(c.ids, c.later, names); (err == nil) != c.legal {
			t.Errorf("%s: %v", what, err)
		}
	}
}
