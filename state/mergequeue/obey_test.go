package mergequeue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

func numbered(n int) Request {
	return Request{BeadID: state.BeadID(fmt.Sprintf("gt-%d", n)), AssignmentID: state.AssignmentID(fmt.Sprintf("as-%d", n)),
		AgentID: "polecat-alpha", SourceBranch: "polecat/x", TargetBranch: "main"}
}

// Each verb of the queue changes it under its lock, says what it could not do, and tells
// what it did.
func TestVerbsObey(t *testing.T) {
	store := func(r *model.Run) Store {
		return NewStore(r.Tree, event.NewLog(r.Tree, func() time.Time { return now.Time }))
	}
	queue := func(p state.Path) (state.LockKind, string) {
		if p.Dir() != Dir {
			return "", ""
		}
		return state.LockQueue, "queue"
	}
	landed := []string{string(Dir) + "/mr-gt-3.json"}
	model.Obey(t, func(r *model.Run) error {
		s := store(r)
		var errs []error
		for n := 1; n <= 3; n++ {
			_, err := s.Submit(r, numbered(n), now)
			errs = append(errs, err)
		}
		_, err := s.Update(r, "mr-gt-3", func(q *Request) error {
			q.Onto, q.Candidate, q.MergedSHA = strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("2", 40)
			return errors.Join(q.Become(Merging, now), q.Become(Merged, now))
		})
		return errors.Join(append(errs, err)...)
	}, map[string]model.Verb{
		"submit":       {Tells: " mr.submitted", Lock: queue, Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) { return store(r).Submit(r, numbered(4), now) }},
		"submit again": {Lock: queue, Spares: []string{string(Dir)}, Do: func(r *model.Run) (any, error) { return store(r).Submit(r, numbered(1), now) }},
		"renumber": {Lock: queue, Spares: append(landed, string(Dir)+"/mr-gt-2.json"), Do: func(r *model.Run) (any, error) {
			return nil, store(r).Renumber(r, "mr-gt-1", 1, now)
		}},
		"queue":       {Do: func(r *model.Run) (any, error) { return read(store(r).Queue()) }},
		"unfinished":  {Do: func(r *model.Run) (any, error) { return read(store(r).Unfinished()) }},
		"live":        {Do: func(r *model.Run) (any, error) { return read(store(r).Live()) }},
		"last landed": {Spares: append(landed, string(Dir)+"/mr-gt-1.json", string(Dir)+"/mr-gt-2.json"), Do: func(r *model.Run) (any, error) { return lastLanded(store(r)) }},
	})
}

func read(all []Request, bad []error, err error) (any, error) {
	var ids []string
	for i := range all {
		ids = append(ids, fmt.Sprintf("%s %d", all[i].ID, all[i].Seq))
	}
	return ids, errors.Join(append(bad, err)...)
}

func lastLanded(s Store) (any, error) {
	q, err := s.LastLanded("main")
	if q == nil {
		return nil, err
	}
	return q.ID, err
}

// A second request of a bead has a name of its own, behind all others, also behind one
// that can't be read.
func TestNumbersOfRequests(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(tree, nil)
	submit := func(q Request, id state.MergeID, seq int64) {
		t.Helper()
		if got, err := s.Submit(t.Context(), q, now); err != nil || got.ID != id || got.Seq != seq {
			t.Errorf("%s %d, %v; want %s %d", got.ID, got.Seq, err, id, seq)
		}
	}
	submit(numbered(1), "mr-gt-1", 1)
	again := numbered(1)
	again.AssignmentID = "as-again"
	submit(again, "mr-gt-1-2", 2)
	if err := tree.Replace(Dir.Join("mr-gt-1.json"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	third := numbered(1)
	third.AssignmentID = "as-third"
	submit(third, "mr-gt-1-3", 4)
	if err := s.Renumber(t.Context(), "mr-gt-1-2", 2, now); err != nil {
		t.Fatal(err)
	}
	if q, err := s.Get("mr-gt-1-2"); err != nil || q.Seq != 6 {
		t.Errorf("behind all: %d, %v", q.Seq, err)
	}
	if err := s.Renumber(t.Context(), "mr-gt-none", 1, now); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
}

// The last landing of a target is the newest that moved it.
func TestLastLanded(t *testing.T) {
	s := newQueue(t)
	want := func(target string, id state.MergeID) {
		t.Helper()
		all, _, err := s.Queue()
		if err != nil {
			t.Fatal(err)
		}
		q, err := s.LastLanded(target)
		same := LastLanded(all, target)
		if err != nil || (q == nil) != (id == "") || (same == nil) != (id == "") || q != nil && (q.ID != id || same.ID != id) {
			t.Errorf("of %q: %+v and %+v, %v; want %q", target, q, same, err, id)
		}
	}
	want("main", "")
	for n, c := range []struct {
		target, onto, candidate string
		after                   time.Duration
	}{{"main", "1", "2", 2}, {"main", "2", "3", 3}, {"main", "2", "2", 4}, {"next", "1", "4", 5}, {"main", "1", "5", 1}} {
		q := numbered(n)
		q.TargetBranch = c.target
		q, err := s.Submit(t.Context(), q, now)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Update(t.Context(), string(q.ID), func(q *Request) error {
			q.Onto, q.Candidate, q.MergedSHA = strings.Repeat(c.onto, 40), strings.Repeat(c.candidate, 40), strings.Repeat(c.candidate, 40)
			return errors.Join(q.Become(Merging, now), q.Become(Merged, state.At(now.Add(c.after*time.Second))))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want("main", "mr-gt-1")
	want("next", "mr-gt-3")
	want("other", "")
}

// What the log says of a request names the ones it was tested with, and what it landed as.
func TestWhy(t *testing.T) {
	long := strings.Repeat("x", maxWhy+1)
	for want, q := range map[string]Request{
		"try 2":                     {Status: Merging, Attempts: 2, ID: "mr-1", Stack: []state.MergeID{"mr-1", "mr-2"}},
		"try 1, together with mr-1": {Status: Merging, Attempts: 1, ID: "mr-2", Stack: []state.MergeID{"mr-1", "mr-2"}},
		"the person is in the way":  {Status: Pending, Waiting: "the person is in the way"},
		"conflict: in a.txt":        {Status: Conflicted, Failure: "conflict", Reason: "in a.txt\nand more"},
		"not needed":                {Status: Dropped, Reason: "not needed"},
		(&Request{}).Landed():       {Status: Merged, Stack: []state.MergeID{"mr-1"}},
		(&Request{}).Landed() + " (one of 2 that were tested together)": {Status: Merged, Stack: []state.MergeID{"mr-1", "mr-2"}},
	} {
		if got := q.why(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	q := Request{Status: Conflicted, Failure: "conflict", Reason: long}
	if len(q.why()) > len("conflict: ")+maxWhy+len("…") {
		t.Errorf("%d bytes of a reason", len(q.why()))
	}
}

func newQueue(t *testing.T) Store {
	t.Helper()
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return NewStore(tree, nil)
}
