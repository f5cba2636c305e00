package handoff

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func newStore(t *testing.T) (Store, *state.Tree) {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	return NewStore(tree, nil), tree
}

func TestEveryHandoffIsKept(t *testing.T) {
	s, _ := newStore(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.Write(Handoff{AgentID: "polecat-alpha", Summary: "s", Timestamp: now}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, bad, err := s.List("polecat-alpha")
	if err != nil || len(bad) > 0 || len(all) != 8 {
		t.Fatalf("%d, %v, %v", len(all), bad, err)
	}
	for i := range all {
		if want := now.Add(time.Duration(i)); !all[i].Timestamp.Equal(want) {
			t.Errorf("number %d is of %s", i, all[i].Timestamp)
		}
	}
}

func TestLatestOfABead(t *testing.T) {
	s, tree := newStore(t)
	for i, h := range []Handoff{{BeadID: "gt-a", Summary: "1"}, {BeadID: "gt-a", Summary: "2"}, {BeadID: "gt-b", Summary: "3"}} {
		h.AgentID, h.Timestamp = "polecat-alpha", state.At(now.Add(time.Duration(i)*time.Hour))
		if _, err := s.Write(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(tree.Abs(Dir.Join("polecat-alpha", "broken.json")), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[state.BeadID]string{"gt-a": "2", "gt-b": "3", "": "3", "gt-c": ""} {
		h, err := s.Latest("polecat-alpha", id)
		got := ""
		if h != nil {
			got = h.Summary
		}
		if err != nil || got != want {
			t.Errorf("latest of %q: %q, %v; want %q", id, got, err, want)
		}
	}
	if _, bad, _ := s.List("polecat-alpha"); len(bad) != 1 {
		t.Errorf("bad %v", bad)
	}
}

func TestNobodysHandoff(t *testing.T) {
	s, _ := newStore(t)
	if _, err := s.Write(Handoff{Summary: "s", Timestamp: now}); !errors.Is(err, state.ErrBadID) {
		t.Errorf("%v, want ErrBadID", err)
	}
	if _, err := s.Write(Handoff{AgentID: "a", Summary: string(make([]byte, state.MaxFile)), Timestamp: now}); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
}

// The newest of a bead counts, or of any; a folder that can't be read is no empty one.
func TestLatestOrError(t *testing.T) {
	s, tree := newStore(t)
	if h, err := s.Latest("polecat-alpha", ""); err != nil || h != nil {
		t.Errorf("of none: %+v, %v", h, err)
	}
	for i, bead := range []state.BeadID{"tt-1", "tt-1", "tt-2"} {
		if _, err := s.Write(Handoff{AgentID: "polecat-alpha", BeadID: bead, Summary: string(rune('a' + i)), Timestamp: now}); err != nil {
			t.Fatal(err)
		}
	}
	for bead, want := range map[state.BeadID]string{"": "c", "tt-1": "b", "tt-2": "c"} {
		if h, err := s.Latest("polecat-alpha", bead); err != nil || h == nil || h.Summary != want {
			t.Errorf("of %q: %+v, %v", bead, h, err)
		}
	}
	if _, err := s.Write(Handoff{AgentID: "polecat-bravo", BeadID: "tt-1", Summary: "first of all", Timestamp: now}); err != nil {
		t.Fatal(err)
	}
	if h, err := s.Latest("polecat-bravo", "tt-1"); err != nil || h == nil {
		t.Errorf("the only one: %+v, %v", h, err)
	}
	if err := os.WriteFile(tree.Abs(Dir.Join("polecat-carol")), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Latest("polecat-carol", ""); err == nil {
		t.Error("a file in the place of the folder is no error")
	}
}
