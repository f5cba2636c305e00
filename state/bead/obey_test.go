package bead

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
	"github.com/gastown-chipset/chipset/state/wording"
)

func logged(r *model.Run) Store {
	return NewStore(r.Tree, event.NewLog(r.Tree, func() time.Time { return now.Time }))
}

// Each verb changes a bead under its lock, says what it could not do, and tells what it did.
func TestVerbsObey(t *testing.T) {
	none := []string{string(Dir)} // it is made where there is none
	later := state.At(now.Add(time.Hour))
	add := func(s Store, id state.BeadID, change func(b *Bead)) error {
		b := Bead{ID: id, Title: "title of " + string(id), Status: Open, Priority: P2, CreatedBy: state.Human, CreatedAt: now, UpdatedAt: now, Gen: 1}
		change(&b)
		return s.Create(string(id), b)
	}
	model.Obey(t, func(r *model.Run) error {
		s := logged(r)
		return errors.Join(
			add(s, "gt-one", func(b *Bead) { b.ReadyAt = &later }),
			add(s, "gt-two", func(b *Bead) { b.BlockedBy = []state.BeadID{"gt-one"} }),
			add(s, "gt-bad", func(b *Bead) { b.Status, b.CloseReason = Blocked, "why" }),
		)
	}, map[string]model.Verb{
		"add": {Tells: " bead.added", Spares: none, Do: func(r *model.Run) (any, error) {
			b, err := logged(r).Add(Bead{Title: "new", CreatedBy: state.Human}, "gt", now)
			return b.Priority, err
		}},
		"add what waits": {Tells: " bead.added", Do: func(r *model.Run) (any, error) {
			b, err := logged(r).Add(Bead{Title: "new", CreatedBy: state.Human, BlockedBy: []state.BeadID{"gt-one"}}, "gt", now)
			return b.BlockedBy, err
		}, Spares: []string{"state/work/gt-two.json", "state/work/gt-bad.json"}},
		"edit": {Tells: " bead.edited", Lock: lockOf, Do: func(r *model.Run) (any, error) {
			return logged(r).Edit(r, "gt-one", func(b *Bead) error { b.Title = "another"; b.Touch(now); return nil })
		}},
		"edit to a move": {Tells: " bead.cancelled", Lock: lockOf, Do: func(r *model.Run) (any, error) {
			return logged(r).Edit(r, "gt-one", func(b *Bead) error { return b.Become(Cancelled, "no", now) })
		}},
		"edit nothing": {Lock: lockOf, Do: func(r *model.Run) (any, error) {
			return logged(r).Edit(r, "gt-one", func(*Bead) error { return state.ErrUnchanged })
		}},
		"move": {Tells: " bead.open", Lock: lockOf, Do: func(r *model.Run) (any, error) {
			return logged(r).Update(r, "gt-bad", func(b *Bead) error { return b.Become(Open, "again", later) })
		}},
		"dependencies": {Do: func(r *model.Run) (any, error) {
			err := logged(r).CheckDependencies("gt-one", []state.BeadID{"gt-two"})
			if errors.Is(err, state.ErrConflict) {
				return err.Error(), nil
			}
			return nil, err
		}, Spares: []string{"state/work/gt-bad.json"}},
		"overview": {Do: func(r *model.Run) (any, error) {
			all, bad, err := logged(r).Overview()
			return all, errors.Join(append(bad, err)...)
		}},
	})
}

func lockOf(p state.Path) (state.LockKind, string) {
	if p.Dir() != Dir {
		return "", ""
	}
	return state.LockBead, strings.TrimSuffix(p.Base(), ".json")
}

// The overview has of each bead what waiting for it needs.
func TestOverview(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(tree, nil)
	later := state.At(now.Add(time.Hour))
	for _, b := range []Bead{
		{ID: "gt-a", Status: Open, ReadyAt: &later, CloseReason: "old"},
		{ID: "gt-b", Status: Open, BlockedBy: []state.BeadID{"gt-a", "gt-c"}},
		{ID: "gt-c", Status: Blocked, CloseReason: "why", BlockedBy: []state.BeadID{"gt-a"}, ReadyAt: &later},
	} {
		b.Title, b.Priority, b.CreatedBy, b.CreatedAt, b.UpdatedAt, b.Gen = "t", P2, state.Human, now, now, 1
		if err := s.Create(string(b.ID), b); err != nil {
			t.Fatal(err)
		}
	}
	all, bad, err := s.Overview()
	if err != nil || len(bad) > 0 {
		t.Fatalf("%v, %v", bad, err)
	}
	var got []string
	for _, b := range all {
		got = append(got, fmt.Sprintf("%s %s %s %q %v %t", b.ID, b.Title, b.Status, b.CloseReason, b.BlockedBy, b.ReadyAt != nil && b.ReadyAt.Equal(later.Time)))
	}
	const want = `gt-a t open "" [] true|gt-b t open "" [gt-a gt-c] false|gt-c t blocked "why" [] false`
	if strings.Join(got, "|") != want {
		t.Errorf("%s", strings.Join(got, "|"))
	}
}

// A cycle is named from one end to the other.
func TestCycleIsNamed(t *testing.T) {
	got := Graph{"a": {"x", "b"}, "b": {"y", "c"}, "c": {"a"}, "x": nil, "y": nil}.Cycle("a")
	if wording.Join(got, " ") != "a b c a" {
		t.Errorf("%v", got)
	}
}
