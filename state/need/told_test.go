package need

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gastown-chipset/chipset/state"
)

// TestEachNeedIsToldOnce: once while it stands, whoever asks, and again when it comes back.
func TestEachNeedIsToldOnce(t *testing.T) {
	tree := newTree(t)
	for i, step := range []struct {
		now  Current
		want []Key
	}{
		{Current{}, nil},
		{Current{Keys: []Key{"b", "a"}}, []Key{"b", "a"}},
		{Current{Keys: []Key{"b", "a"}}, nil},
		{Current{Keys: []Key{"b", "c"}}, []Key{"c"}},
		{Current{Keys: []Key{"a"}}, []Key{"a"}},                    // it was gone
		{Current{Partial: true}, nil},                              // it may stand
		{Current{Keys: []Key{"a"}}, nil},                           // it stood all the time
		{Current{Keys: []Key{"a", "d"}, Quiet: true}, nil},         // not now
		{Current{Keys: []Key{"a", "d"}}, []Key{"d"}},               // it still stands
		{Current{Keys: []Key{"d"}, Quiet: true}, nil},              // also in quiet hours a need goes
		{Current{Keys: []Key{"a", "d"}}, []Key{"a"}},               // and comes back
		{Current{Keys: []Key{"e"}, Partial: true}, []Key{"e"}},     // what is seen is told
		{Current{Keys: []Key{"a", "d", "e"}, Partial: false}, nil}, // none of them was forgotten
	} {
		got, err := NewStore(tree).TakeNew(t.Context(), step.now)
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("step %d, %+v: %v, %v; want %v", i, step.now, got, err, step.want)
		}
	}
	held, err := tree.Lock(t.Context(), state.LockRecord, "told")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := NewStore(tree).TakeNew(short(t), Current{Keys: []Key{"a", "d", "e"}}); err != nil || len(got) > 0 {
		t.Errorf("nothing new waits for others: %v, %v", got, err)
	}
	held.Unlock()
	many := make([]Key, maxOpen+10)
	for i := range many {
		many[i] = Key(fmt.Sprint("many ", i))
	}
	if got, err := NewStore(tree).TakeNew(t.Context(), Current{Keys: many}); err != nil || len(got) != maxOpen {
		t.Errorf("told of %d needs, %v", len(got), err)
	}
}

// What can't be remembered is not told: it would be told again and again.
func TestNothingIsToldThatCannotBeRemembered(t *testing.T) {
	tree := newTree(t)
	s, now := NewStore(tree), Current{Keys: []Key{"a"}}
	held, err := tree.Lock(t.Context(), state.LockRecord, "told")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.TakeNew(short(t), now); err == nil || len(got) > 0 {
		t.Errorf("beside another: %v, %v", got, err)
	}
	held.Unlock()
	if err := tree.MkdirAll(ToldPath); err != nil {
		t.Fatal(err)
	}
	if got, err := s.TakeNew(t.Context(), now); err == nil || len(got) > 0 {
		t.Errorf("without a file: %v, %v", got, err)
	}
	if _, err := s.TakeNew(t.Context(), Current{Keys: now.Keys, Quiet: true}); err == nil {
		t.Error("what can't be read counts as nothing told")
	}
	tree = newTree(t)
	if err := os.WriteFile(tree.Abs(ToldPath), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := NewStore(tree).TakeNew(t.Context(), now); err != nil || len(got) != 1 {
		t.Errorf("a file that can't be used: %v, %v", got, err)
	}
}
