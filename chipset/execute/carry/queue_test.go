package carry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// queueCase is what a person's order makes of a bead and its request.
type queueCase struct {
	name       string
	bead       bead.Status
	request    mergequeue.Status
	assignment state.AssignmentID // of the bead; the request's is as-1
	wantBead   bead.Status
	want       mergequeue.Status
	conflict   bool
}

// play gives the order, and returns what has become of both.
func (c *queueCase) play(t *testing.T, order func(*rig.Rig, state.MergeID) error) (mergequeue.Request, bead.Bead) {
	t.Helper()
	r, id, b := queued(t, c.bead, c.request, c.assignment)
	err := order(r, id)
	if errors.Is(err, state.ErrConflict) != c.conflict || err != nil && !c.conflict {
		t.Fatal(err)
	}
	got, err := r.Queue.Get(string(id))
	if err != nil || got.Status != c.want {
		t.Errorf("request: %s, %v", got.Status, err)
	}
	of, err := r.Beads.Get(string(b))
	if err != nil || of.Status != c.wantBead {
		t.Errorf("bead: %s, %v", of.Status, err)
	}
	return got, of
}

// queued is a bead and its request in given statuses.
func queued(t *testing.T, b bead.Status, q mergequeue.Status, assignment state.AssignmentID) (*rig.Rig, state.MergeID, state.BeadID) {
	t.Helper()
	dir := gittest.Repo(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, rig.DirName), 0o755))
	r, err := rig.Init(t.Context(), rig.InitOptions{Dir: dir, Clock: time.Now})
	must(err)
	added, err := r.Beads.Add(bead.Bead{Title: "x"}, "gt", r.Clock.Now())
	must(err)
	_, err = r.Beads.Update(t.Context(), string(added.ID), func(x *bead.Bead) error {
		x.Status, x.AssignmentID = b, assignment
		return nil
	})
	must(err)
	m, err := r.Queue.Submit(t.Context(), mergequeue.Request{BeadID: added.ID, AssignmentID: "as-1", SourceBranch: "polecat/x"}, r.Clock.Now())
	must(err)
	_, err = r.Queue.Update(t.Context(), string(m.ID), func(m *mergequeue.Request) error {
		m.Status, m.Failure, m.Reason, m.Waiting, m.NoticeName = q, mergequeue.FailTests, "why", "wait", "name"
		if q != mergequeue.Pending && q != mergequeue.Merging {
			m.Waiting = ""
		}
		return nil
	})
	must(err)
	return r, m.ID, added.ID
}

func TestRetry(t *testing.T) {
	for _, c := range []queueCase{
		{"blocked by the mayor", bead.Blocked, mergequeue.Conflicted, "as-1", bead.Done, mergequeue.Pending, false},
		{"still done", bead.Done, mergequeue.Conflicted, "as-1", bead.Done, mergequeue.Pending, false},
		{"reworked", bead.InProgress, mergequeue.Conflicted, "as-2", bead.InProgress, mergequeue.Conflicted, true},
		{"blocked in a later attempt", bead.Blocked, mergequeue.Conflicted, "as-2", bead.Blocked, mergequeue.Conflicted, true},
		{"waits", bead.Done, mergequeue.Pending, "as-1", bead.Done, mergequeue.Pending, false},
		{"stands still", bead.Done, mergequeue.Merging, "as-1", bead.Done, mergequeue.Merging, false},
		{"merged", bead.Merged, mergequeue.Merged, "as-1", bead.Merged, mergequeue.Merged, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := c.play(t, func(r *rig.Rig, id state.MergeID) error {
				_, err := Retry(t.Context(), r, id, state.Human)
				return err
			})
			if !c.conflict && (got.Waiting != "" || got.Status != c.request && (got.NoticeName != "" || got.Reason != "")) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestDrop(t *testing.T) {
	for _, c := range []queueCase{
		{"conflicted", bead.Done, mergequeue.Conflicted, "as-1", bead.Blocked, mergequeue.Dropped, false},
		{"pending", bead.Done, mergequeue.Pending, "as-1", bead.Blocked, mergequeue.Dropped, false},
		{"in work", bead.Done, mergequeue.Merging, "as-1", bead.Blocked, mergequeue.Dropped, false},
		{"reworked", bead.Done, mergequeue.Conflicted, "as-2", bead.Done, mergequeue.Dropped, false},
		{"twice", bead.Blocked, mergequeue.Dropped, "as-1", bead.Blocked, mergequeue.Dropped, false},
		{"merged", bead.Merged, mergequeue.Merged, "as-1", bead.Merged, mergequeue.Merged, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := c.play(t, func(r *rig.Rig, id state.MergeID) error {
				_, err := Drop(t.Context(), r, id, "no good", state.Human)
				return err
			})
			if c.bead == bead.Done && c.wantBead == bead.Blocked && !strings.Contains(got.CloseReason, "no good") {
				t.Errorf("close_reason %q", got.CloseReason)
			}
		})
	}
}

// TestHalfAnOrder: a bead is not done again while its request can't be put back, for the mayor would rework it; a
// request is not dropped while its bead can't be blocked, for the work would be lost without a word.
func TestHalfAnOrder(t *testing.T) {
	for name, c := range map[string]struct {
		bead  bead.Status
		lock  func(q state.MergeID, b state.BeadID) state.Path
		order func(r *rig.Rig, q state.MergeID) error
	}{
		"retry": {bead.Blocked, func(q state.MergeID, _ state.BeadID) state.Path { return state.Path("record/" + q + ".lock") },
			func(r *rig.Rig, q state.MergeID) error { return done(Retry(t.Context(), r, q, state.Human)) }},
		"drop": {bead.Done, func(_ state.MergeID, b state.BeadID) state.Path { return state.Path("bead/" + b + ".lock") },
			func(r *rig.Rig, q state.MergeID) error { return done(Drop(t.Context(), r, q, "no", state.Human)) }},
	} {
		t.Run(name, func(t *testing.T) {
			r, id, b := queued(t, c.bead, mergequeue.Conflicted, "as-1")
			lock := r.Tree.Abs(state.RunDir.Join("locks", string(c.lock(id, b))))
			if err := errors.Join(os.RemoveAll(lock), os.Mkdir(lock, 0o700)); err != nil {
				t.Fatal(err)
			}
			if err := c.order(r, id); err == nil {
				t.Error("it says that all is done")
			}
			q, errRequest := r.Queue.Get(string(id))
			now, errBead := r.Beads.Get(string(b))
			if errRequest != nil || errBead != nil || q.Status != mergequeue.Conflicted || now.Status != c.bead {
				t.Errorf("request %s, bead %s; %v, %v", q.Status, now.Status, errRequest, errBead)
			}
		})
	}
}

// Who denies a request that is not there, or not held, is told so.
func TestDenyOfNothing(t *testing.T) {
	y := newYard(t, "")
	if err := Deny(t.Context(), y.Rig, "mr-tt-none", "no", "human"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
	for what, err := range map[string]error{"retry": done(Retry(t.Context(), y.Rig, "mr-tt-none", "human")), "drop": done(Drop(t.Context(), y.Rig, "mr-tt-none", "no", "human"))} {
		if !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s of none: %v", what, err)
		}
	}
	id := y.add()
	y.become(id, ways()[bead.Done]...)
	q, err := y.Queue.Submit(t.Context(), mergequeue.Request{BeadID: id, AssignmentID: y.bead(id).AssignmentID, AgentID: alpha, SourceBranch: "polecat/" + string(id),
		TargetBranch: "main", Head: strings.Repeat("1", 40), Base: strings.Repeat("2", 40)}, y.now())
	y.must(err)
	if err := Deny(t.Context(), y.Rig, q.ID, "no", "human"); !errors.Is(err, state.ErrConflict) {
		t.Errorf("of one that is not held: %v", err)
	}
}
