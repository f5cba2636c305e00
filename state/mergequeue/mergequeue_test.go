package mergequeue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func newTree(t *testing.T) *state.Tree {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

var legal = map[Status]string{
	Pending:    "merging dropped superseded",
	Merging:    "pending merged conflicted superseded dropped",
	Conflicted: "pending superseded dropped",
	Merged:     "",
	Superseded: "",
	Dropped:    "",
}

func TestEveryMove(t *testing.T) {
	for from, allowed := range legal {
		for to := range legal {
			r := Request{ID: "mr-a", Status: from, Stage: StageTest, Candidate: "c", Tested: true, Failure: FailTests, Reason: "why"}
			before := r
			err := r.Become(to, now)
			want := slices.Contains(strings.Fields(allowed), string(to))
			switch {
			case want != (err == nil):
				t.Errorf("%s → %s: %v, want legal %v", from, to, err, want)
			case !want && (!errors.Is(err, state.ErrConflict) || r.Status != before.Status || r.UpdatedAt != before.UpdatedAt):
				t.Errorf("%s → %s was refused with %v, but the request is %+v", from, to, err, r)
			case want && to == Pending && (r.Stage != "" || r.Candidate != "" || r.Tested || r.Failure != ""):
				t.Errorf("%s → pending kept what the last try found: %+v", from, r)
			}
		}
	}
}

func request(beadID string, n int) Request {
	return Request{BeadID: state.BeadID(beadID), AssignmentID: state.AssignmentID(fmt.Sprintf("as-%s-%d", beadID, n)),
		AgentID: "polecat-alpha", SourceBranch: "polecat/" + beadID, TargetBranch: "main", Head: strings.Repeat("a", 40)}
}

func TestSeqUnderConcurrency(t *testing.T) {
	tree := newTree(t)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			s := NewStore(tree, nil)
			for n := range 4 {
				if _, err := s.Submit(t.Context(), request(fmt.Sprintf("gt-%d", i), n), now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, bad, err := NewStore(tree, nil).Queue()
	if err != nil || len(bad) > 0 || len(all) != 24 {
		t.Fatalf("%d requests, %v, %v", len(all), bad, err)
	}
	for i, r := range all {
		if r.Seq != int64(i+1) {
			t.Errorf("request %d has seq %d", i, r.Seq)
		}
	}
}

func TestSubmitOncePerAssignment(t *testing.T) {
	s := NewStore(newTree(t), nil)
	first, err := s.Submit(t.Context(), request("gt-a", 1), now)
	if err != nil || first.ID != "mr-gt-a" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := s.Submit(t.Context(), request("gt-a", 1), now)
	if err != nil || again.ID != first.ID || again.Seq != first.Seq {
		t.Errorf("the same assignment: %+v, %v", again, err)
	}
	second, err := s.Submit(t.Context(), request("gt-a", 2), now)
	if err != nil || second.ID != "mr-gt-a-2" || second.Seq != 2 {
		t.Errorf("the next assignment: %+v, %v", second, err)
	}
	all, _, _ := s.Queue()
	if Find(all, "as-gt-a-2") == nil || Find(all, "as-none") != nil {
		t.Error("Find is wrong")
	}
}

// A request that can't be read may hold any number and a name.
func TestSubmitBesideCorruptRequests(t *testing.T) {
	tree := newTree(t)
	s := NewStore(tree, nil)
	if _, err := s.Submit(t.Context(), request("gt-a", 1), now); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tree.Abs(s.Path("mr-gt-a")), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := s.Submit(t.Context(), request("gt-a", 2), now)
	if err != nil || got.ID != "mr-gt-a-2" || got.Seq < 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	good := request("gt-a", 1)
	good.ID, good.Seq, good.Status = "mr-gt-a", 1, Pending
	if err := check("mr-gt-a", &good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Request){
		"name":   func(r *Request) { r.ID = "mr-b" },
		"status": func(r *Request) { r.Status = "lost" },
		"seq":    func(r *Request) { r.Seq = 0 },
		"bead":   func(r *Request) { r.BeadID = "" },
		"branch": func(r *Request) { r.SourceBranch = "--upload-pack=x" },
		"target": func(r *Request) { r.TargetBranch = "-x" },
		"head":   func(r *Request) { r.Head = "HEAD" },
		"onto":   func(r *Request) { r.Onto = "--exec" },
	} {
		r := good
		spoil(&r)
		if err := check("mr-gt-a", &r); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRenumber(t *testing.T) {
	s := NewStore(newTree(t), nil)
	var ids []string
	for i := range 3 {
		r, err := s.Submit(t.Context(), request(fmt.Sprintf("gt-%d", i), 1), now)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(r.ID))
	}
	for range 2 { // the second time it has another number already
		if err := s.Renumber(t.Context(), state.MergeID(ids[0]), 1, now); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := s.Get(ids[0]); err != nil || r.Seq != 4 {
		t.Errorf("number %d, %v; want 4, behind all others", r.Seq, err)
	}
}
