package bead

import (
	"fmt"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// TestHistory holds pairs of versions against the rules; many steps may lie between two.
func TestHistory(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	made := func(gen int64, st Status, a state.AssignmentID, slung int) *Bead {
		b := &Bead{ID: "gt-abc12", Title: "Thing", Status: st, Priority: P2, CreatedAt: at, UpdatedAt: at, Gen: gen, AssignmentID: a, Assignments: slung}
		if a != "" {
			b.Assignee, b.Branch = "polecat-alpha", BranchFor(b.ID, slung)
		}
		return b
	}
	with := func(b *Bead, change func(*Bead)) *Bead { change(b); return b }
	shows := func(b *Bead, source string) *Bead {
		b.Metadata = map[string]string{MetaImported: "bd-1", MetaSource: source}
		return b
	}
	imported := func(b *Bead) *Bead { return shows(b, fmt.Sprintf(`{"as":%q,"gen":%d}`, b.Status, b.Gen)) }
	for _, c := range []struct {
		name          string
		before, after *Bead
		legal         bool
	}{
		{"new", nil, made(1, Open, "", 0), true},
		{"new and slung at once", nil, made(2, Hooked, "as-1", 1), true},
		{"new and merged too soon", nil, made(2, Merged, "as-1", 1), false},
		{"new without a gen", nil, made(0, Open, "", 0), false},
		{"new and hooked without a step", nil, made(1, Hooked, "as-1", 1), false},
		{"slung", made(1, Open, "", 0), made(2, Hooked, "as-1", 1), true},
		{"slung without counting it", made(1, Open, "", 0), made(2, Hooked, "as-1", 0), false},
		{"merged at last", made(1, Open, "", 0), made(5, Merged, "as-1", 1), true},
		{"merged in too few steps", made(1, Open, "", 0), made(4, Merged, "as-1", 1), false},
		{"merged with steps to spare", made(1, Open, "", 0), made(9, Merged, "as-1", 1), true},
		{"reworked", made(5, Done, "as-1", 1), made(7, Hooked, "as-2", 2), true},
		{"reworked under the old assignment", made(5, Done, "as-1", 1), made(7, Hooked, "as-1", 2), false},
		{"reworked often", made(5, Done, "as-1", 1), made(5+2*7, Hooked, "as-9", 8), true},
		{"reworked oftener than steps allow", made(5, Done, "as-1", 1), made(5+2*7-1, Hooked, "as-9", 8), false},
		{"another assignment without being slung", made(3, InProgress, "as-1", 1), made(6, InProgress, "as-2", 1), false},
		{"open keeps its assignment", made(3, InProgress, "as-1", 1), made(4, Open, "as-1", 1), false},
		{"taken back", made(3, InProgress, "as-1", 1), made(4, Open, "", 1), true},
		{"retried", made(6, Blocked, "as-1", 1), made(7, Done, "as-1", 1), true},
		{"moved after it was merged", made(5, Merged, "as-1", 1), made(6, Open, "", 1), false},
		{"joined a convoy after it was merged", made(5, Merged, "as-1", 1), with(made(6, Merged, "as-1", 1), func(b *Bead) { b.ConvoyID = "cv-1" }), true},
		{"changed without a gen", made(5, Open, "", 0), with(made(5, Open, "", 0), func(b *Bead) { b.Title = "Other" }), false},
		{"edited", made(5, Open, "", 0), with(made(6, Open, "", 0), func(b *Bead) { b.Title = "Other" }), true},
		{"edited while a worker works", made(5, InProgress, "as-1", 1), with(made(6, InProgress, "as-1", 1), func(b *Bead) { b.Title = "Other" }), false},
		{"edited and slung", made(5, Open, "", 0), with(made(7, Hooked, "as-1", 1), func(b *Bead) { b.Title = "Other" }), true},
		{"gen fell", made(5, Open, "", 0), made(4, Open, "", 0), false},
		{"given to another under the same assignment", made(3, Hooked, "as-1", 1), with(made(4, InProgress, "as-1", 1), func(b *Bead) { b.Assignee = "polecat-bravo" }), false},
		{"born at another time", made(3, Open, "", 0), with(made(4, Open, "", 0), func(b *Bead) { b.CreatedAt = state.At(at.Add(1)) }), false},
		{"merged without an assignment", made(2, Blocked, "", 0), made(4, Merged, "", 0), false},
		{"imported and closed", nil, imported(made(2, Closed, "", 0)), true},
		{"closed, and not imported", nil, made(2, Closed, "", 0), false},
		{"finished elsewhere", made(1, Open, "", 0), imported(made(3, Closed, "", 0)), true},
		{"finished elsewhere after a failure", made(4, Failed, "as-1", 1), imported(made(6, Closed, "as-1", 1)), true},
		{"finished elsewhere while a worker works", made(3, InProgress, "as-1", 1), imported(made(4, Closed, "", 1)), false},
		{"finished elsewhere, and in a convoy since", made(1, Open, "", 0), shows(made(3, Closed, "", 0), `{"as":"closed","gen":2}`), true},
		{"closed by a name of another tracker alone", made(1, Open, "", 0), shows(made(2, Closed, "", 0), ""), false},
		{"closed, though the import left it open", made(1, Open, "", 0), shows(made(2, Closed, "", 0), `{"as":"open","gen":2}`), false},
		{"closed by an import of before", made(3, Open, "", 0), shows(made(4, Closed, "", 0), `{"as":"closed","gen":3}`), false},
		{"closed by an import that is still to come", made(3, Open, "", 0), shows(made(4, Closed, "", 0), `{"as":"closed","gen":5}`), false},
		{"closed by what is no import", made(1, Open, "", 0), shows(made(2, Closed, "", 0), `closed`), false},
		{"imported and merged", nil, imported(made(2, Merged, "", 0)), false},
		{"assignments fell", made(3, Open, "", 2), made(4, Open, "", 1), false},
	} {
		if err := CheckChange(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
