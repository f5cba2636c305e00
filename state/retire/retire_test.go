package retire

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

func TestStagesAreInOrder(t *testing.T) {
	last := -1
	for _, s := range []Stage{Published, Committed, Recorded, Submitted, Reported, Completed, Released, Stale} {
		if s.Rank() <= last {
			t.Errorf("%s ranks %d after %d", s, s.Rank(), last)
		}
		last = s.Rank()
		if s.Final() != (s == Released || s == Stale) {
			t.Errorf("%s: final %v", s, s.Final())
		}
	}
	if Stage("").Rank() != -1 || Stage("lost").Final() {
		t.Error("a stage that is none has a rank")
	}
}

func TestTheFirstRecordWins(t *testing.T) {
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(tree, nil)
	r := Record{AssignmentID: "as-1", AgentID: "polecat-alpha", BeadID: "gt-a", Outcome: Done, Stage: Published}
	if err := s.Create("as-1", r); err != nil {
		t.Fatal(err)
	}
	second := r
	second.Outcome = Fail
	if err := s.Create("as-1", second); !errors.Is(err, state.ErrExists) {
		t.Errorf("second record: %v, want ErrExists", err)
	}
	if got, err := s.Get("as-1"); err != nil || got.Outcome != Done {
		t.Errorf("%+v, %v", got, err)
	}
	for name, spoil := range map[string]func(*Record){
		"name":    func(r *Record) { r.AssignmentID = "as-2" },
		"outcome": func(r *Record) { r.Outcome = "maybe" },
		"stage":   func(r *Record) { r.Stage = "lost" },
		"bead":    func(r *Record) { r.BeadID = "" },
	} {
		bad := r
		spoil(&bad)
		if err := s.Put("as-1", bad); err == nil {
			t.Errorf("%s: was written", name)
		}
	}
}

// The log says why work did not come to its end.
func TestTheLogSaysWhy(t *testing.T) {
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	log := event.NewLog(tree, func() time.Time { return time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC) })
	for id, r := range map[state.AssignmentID]Record{
		"as-1": {Outcome: Fail, Reason: "the disk is full"},
		"as-2": {Outcome: Done},
	} {
		r.AssignmentID, r.AgentID, r.BeadID, r.Stage = id, "polecat-alpha", "gt-a", Published
		if err := NewStore(tree, log).Publish(r); err != nil {
			t.Fatal(err)
		}
	}
	all, _, _, err := log.Read(event.Position{}, time.Time{})
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for _, e := range all {
		if want := map[state.AssignmentID]string{"as-1": "fail: the disk is full", "as-2": "done"}[e.Assignment]; e.Text != want {
			t.Errorf("%q, want %q", e.Text, want)
		}
	}
}
