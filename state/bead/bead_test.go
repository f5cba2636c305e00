package bead

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state"
)

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func newStore(t *testing.T) Store {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	return NewStore(tree, nil)
}

var statuses = []Status{Open, Hooked, InProgress, Done, Merged, Closed, Failed, Blocked, Cancelled}

// legal is the contract, written down a second time.
var legal = map[Status]string{
	Open:       "hooked blocked cancelled",
	Hooked:     "in_progress open blocked cancelled",
	InProgress: "done failed closed open blocked cancelled",
	Done:       "merged open blocked cancelled",
	Merged:     "",
	Closed:     "open",
	Failed:     "open blocked cancelled",
	Blocked:    "open done cancelled",
	Cancelled:  "open",
}

func TestEveryMove(t *testing.T) {
	for _, from := range statuses {
		if !from.Known() {
			t.Errorf("%s is not known", from)
		}
		for _, to := range statuses {
			b := Bead{ID: "gt-aaaaa", Status: from, Gen: 7, AssignmentID: "as-1", Assignee: "polecat-alpha"}
			err := b.Become(to, "because", now)
			want := slices.Contains(strings.Fields(legal[from]), string(to))
			switch {
			case want != (err == nil):
				t.Errorf("%s → %s: %v, want legal %v", from, to, err, want)
			case !want && (!errors.Is(err, state.ErrConflict) || b.Status != from || b.Gen != 7):
				t.Errorf("%s → %s was refused with %v, but the bead is %+v", from, to, err, b)
			case want && (b.Gen != 8 || b.Status != to || (b.ClosedAt != nil) != to.Finished() || (to == Open) != (b.AssignmentID == "")):
				t.Errorf("%s → %s left %+v", from, to, b)
			}
		}
	}
	if Status("").Known() || Status("nonsense").Known() {
		t.Error("a status that is none is known")
	}
}

func TestStaleAssignmentsAreRefused(t *testing.T) {
	s := newStore(t)
	b, err := s.Add(Bead{Title: "x"}, "gt", now)
	if err != nil {
		t.Fatal(err)
	}
	set := func(b *Bead) error { b.AssignmentID = "as-new"; return b.Become(Hooked, "", now) }
	if b, err = s.Update(t.Context(), string(b.ID), set); err != nil {
		t.Fatal(err)
	}
	if err := b.CheckAssignment("as-old", Hooked); !errors.Is(err, state.ErrConflict) {
		t.Errorf("an earlier assignment: %v, want ErrConflict", err)
	}
	if err := b.CheckAssignment("as-new", Done); !errors.Is(err, state.ErrConflict) {
		t.Errorf("another status: %v, want ErrConflict", err)
	}
	if err := b.CheckAssignment("as-new", Open, Hooked); err != nil {
		t.Errorf("the right one: %v", err)
	}
}

func TestWhatIsNoBead(t *testing.T) {
	good := Bead{ID: "gt-aaaaa", Title: "x", Status: Open, Priority: P2}
	if err := check("gt-aaaaa", &good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Bead){
		"name":       func(b *Bead) { b.ID = "gt-bbbbb" },
		"status":     func(b *Bead) { b.Status = "lost" },
		"priority":   func(b *Bead) { b.Priority = "P9" },
		"no title":   func(b *Bead) { b.Title = " " },
		"two lines":  func(b *Bead) { b.Title = "a\nb" },
		"long title": func(b *Bead) { b.Title = strings.Repeat("x", MaxTitle+1) },
		"counter":    func(b *Bead) { b.Attempts = -1 },
		"no owner":   func(b *Bead) { b.Status = Done },
	} {
		b := good
		spoil(&b)
		if err := check("gt-aaaaa", &b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestDependencies(t *testing.T) {
	s := newStore(t)
	if _, err := s.Add(Bead{Title: "x", BlockedBy: []state.BeadID{"gt-none"}}, "gt", now); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("unknown dependency: %v, want ErrNotFound", err)
	}
	var ids []state.BeadID
	for i := range 4 {
		b := Bead{Title: "x"}
		if i > 0 {
			b.BlockedBy = ids[i-1 : i]
		}
		b, err := s.Add(b, "gt", now)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, b.ID)
	}
	err := s.CheckDependencies(ids[0], []state.BeadID{ids[3]})
	if !errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), string(ids[2])) {
		t.Errorf("cycle: %v, want ErrConflict that names the way", err)
	}
	if err := s.CheckDependencies(ids[1], ids[1:2]); !errors.Is(err, state.ErrConflict) {
		t.Errorf("itself: %v, want ErrConflict", err)
	}
	if err := s.CheckDependencies(ids[3], ids[:3]); err != nil {
		t.Errorf("a diamond is no cycle: %v", err)
	}
	all, _, err := s.All()
	if err != nil {
		t.Fatal(err)
	}
	byID := Index(all)
	if got := Blockers(byID[ids[1]], byID); len(got) != 1 || got[0] != string(ids[0])+" (open)" {
		t.Errorf("blockers %v", got)
	}
	byID[ids[0]].Status = Closed
	if got := Blockers(byID[ids[1]], byID); len(got) != 0 {
		t.Errorf("blockers of what landed: %v", got)
	}
	delete(byID, ids[0])
	if got := Blockers(byID[ids[1]], byID); len(got) != 1 || !strings.Contains(got[0], "missing") {
		t.Errorf("missing blocker: %v", got)
	}
}

// Cycle agrees with reachability, on any graph, and Cycles with Cycle.
func TestCycleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []state.BeadID{"a", "b", "c", "d", "e", "f"}
		graph := Graph{}
		for _, n := range nodes {
			graph[n] = rapid.SliceOfN(rapid.SampledFrom(nodes), 0, 3).Draw(t, string(n))
		}
		reach := map[state.BeadID]bool{}
		todo := slices.Clone(graph["a"])
		for len(todo) > 0 {
			n := todo[0]
			todo = todo[1:]
			if !reach[n] {
				reach[n] = true
				todo = append(todo, graph[n]...)
			}
		}
		cycle := graph.Cycle("a")
		if (cycle != nil) != reach["a"] {
			t.Fatalf("cycle %v in %v, want %v", cycle, graph, reach["a"])
		}
		for i := 1; i < len(cycle); i++ {
			if !slices.Contains(graph[cycle[i-1]], cycle[i]) {
				t.Fatalf("%v is no way in %v", cycle, graph)
			}
		}
		if some := graph.Cycles(); cycle != nil && len(some) == 0 || slices.ContainsFunc(some, func(c []state.BeadID) bool { return graph.Cycle(c[0]) == nil }) {
			t.Fatalf("cycles %v in %v", some, graph)
		}
	})
}

func TestNames(t *testing.T) {
	for _, prefix := range []string{"", "GT", "gt-", "toolongprefix", "ü"} {
		if _, err := NewID(prefix); !errors.Is(err, state.ErrBadID) {
			t.Errorf("prefix %q: %v, want ErrBadID", prefix, err)
		}
	}
	id, err := NewID("gt")
	if err != nil || state.CheckID(string(id)) != nil || len(id) != 8 {
		t.Errorf("%q, %v", id, err)
	}
	seen := map[string]bool{}
	for n := range 5 {
		seen[BranchFor("gt-aaaaa", n)] = true
	}
	if len(seen) != 4 || !seen["polecat/gt-aaaaa"] || !seen["polecat/gt-aaaaa-2"] {
		t.Errorf("branches %v", seen)
	}
}

// FuzzDecodeBead: what is accepted can be written and read again, unknown
// fields included.
func FuzzDecodeBead(f *testing.F) {
	f.Add([]byte(`{"id":"gt-aaaaa","title":"x","status":"open","priority":"P1","created_at":"2026-03-05T10:30:00Z","updated_at":"2026-03-05T10:30:00+01:00","gen":1,"new":{"a":1}}`))
	f.Add([]byte(`{"id":"gt-aaaaa","title":"x","status":"done","priority":"P3","assignment_id":"as-1","blocked_by":["gt-b"],"metadata":{"k":"v"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var b Bead
		if state.Decode("p", data, &b) != nil || check(string(b.ID), &b) != nil {
			return
		}
		once, err := state.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		var again Bead
		if err := state.Decode("p", once, &again); err != nil {
			t.Fatal(err)
		}
		if err := check(string(b.ID), &again); err != nil {
			t.Fatal(err)
		}
		twice, err := state.Encode(again)
		if err != nil || string(once) != string(twice) || len(again.Extra) != len(b.Extra) {
			t.Fatalf("%s then %s, %v", once, twice, err)
		}
	})
}
