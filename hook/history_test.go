package hook

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// TestHistory holds pairs of versions against the rules; many transitions may lie between two.
func TestHistory(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	made := func(gen int64, st Status, a state.AssignmentID, s state.SessionID) *Hook {
		h := &Hook{AgentID: "polecat-alpha", Gen: gen, Status: st, LastActivity: at}
		if a != "" {
			h.WorkItem = &WorkItem{AssignedAt: at, AssignmentID: a, BeadID: "gt-abc12", Title: "Thing", Session: s}
		}
		return h
	}
	other := made(8, Active, "as-1", "ses-1")
	other.WorkItem.BeadID = "gt-zzzzz"
	for _, c := range []struct {
		name          string
		before, after *Hook
		legal         bool
	}{
		{"new", nil, made(0, Empty, "", ""), true},
		{"new and set", nil, made(1, Pending, "as-1", ""), true},
		{"new, with a gen and nothing on it", nil, made(1, Empty, "", ""), false},
		{"new and set without a gen", nil, made(0, Pending, "as-1", ""), false},
		{"new and active too soon", nil, made(1, Active, "as-1", "ses-1"), false},
		{"set", made(4, Empty, "", ""), made(5, Pending, "as-2", ""), true},
		{"set with a session", made(4, Empty, "", ""), made(5, Pending, "as-2", "ses-1"), false},
		{"activated", made(5, Pending, "as-1", ""), made(6, Active, "as-1", "ses-1"), true},
		{"activated under another assignment", made(5, Pending, "as-1", ""), made(6, Active, "as-2", "ses-1"), false},
		{"touched and resumed", made(6, Active, "as-1", "ses-1"), made(9, Active, "as-1", "ses-2"), true},
		{"completed without work", made(5, Pending, "as-1", ""), made(6, Completed, "as-1", ""), false},
		{"completed", made(6, Active, "as-1", "ses-1"), made(7, Completed, "as-1", "ses-1"), true},
		{"active again", made(7, Completed, "as-1", "ses-1"), made(8, Active, "as-1", "ses-1"), false},
		{"pending again", made(5, Pending, "as-1", ""), made(7, Pending, "as-1", ""), false},
		{"cleared and set anew", made(5, Pending, "as-1", ""), made(7, Pending, "as-2", ""), true},
		{"set anew in one", made(5, Pending, "as-1", ""), made(6, Pending, "as-2", ""), false},
		{"empty and one later", made(4, Empty, "", ""), made(5, Empty, "", ""), false},
		{"empty and two later", made(4, Empty, "", ""), made(6, Empty, "", ""), true},
		{"a whole round", made(4, Empty, "", ""), made(8, Empty, "", ""), true},
		{"thousands of touches", made(4, Empty, "", ""), made(5003, Completed, "as-1", "ses-1"), true},
		{"another bead under its assignment", made(7, Active, "as-1", "ses-1"), other, false},
		{"gen fell", made(4, Empty, "", ""), made(3, Empty, "", ""), false},
		{"changed without a gen", made(4, Active, "as-1", "ses-1"), made(4, Active, "as-1", "ses-2"), false},
	} {
		if err := CheckChange(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	err := CheckChange(made(4, Empty, "", ""), made(5, Active, "as-1", "ses-1"))
	if want := "empty can't become active under as-1 in 1 transitions (gen 4 to 5)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	err = CheckChange(made(4, Active, "as-1", "ses-1"), made(4, Active, "as-1", "ses-2"))
	if want := "changed without a new gen (4)"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, gen := range []int64{7, 8} {
		if err := rebuilt(made(7, Active, "as-1", "ses-1"), made(gen, Active, "as-1", "ses-1")); err != nil {
			t.Errorf("rebuilt at gen %d: %v", gen, err)
		}
	}
	if err := rebuilt(nil, made(0, Empty, "", "")); err != nil {
		t.Errorf("rebuilt from nothing: %v", err)
	}
	if err := rebuilt(made(7, Active, "as-1", "ses-1"), made(8, Pending, "as-2", "")); err != nil {
		t.Errorf("rebuilt: %v", err)
	}
	if err := rebuilt(made(7, Active, "as-1", "ses-1"), made(1, Active, "as-1", "ses-1")); err == nil {
		t.Error("rebuilt with a lower gen")
	}
}
