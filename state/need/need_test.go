package need

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

func newTree(t *testing.T) *state.Tree {
	t.Helper()
	tree, err := state.Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func assign(t *testing.T, s Store, keys ...Key) map[Key]int {
	t.Helper()
	var needs []Numbered
	for _, k := range keys {
		needs = append(needs, Numbered{Key: k, What: "what " + string(k)})
	}
	numbers, err := s.Assign(t.Context(), needs)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

// TestNumbersStay: a number stays with its need while others come and go, and none is
// given twice.
func TestNumbersStay(t *testing.T) {
	tree := newTree(t)
	s := NewStore(tree)
	for _, step := range []struct {
		open []Key
		want []int
	}{
		{[]Key{"a", "b", "c"}, []int{1, 2, 3}},
		{[]Key{"b", "c"}, []int{2, 3}},
		{[]Key{"d", "c", "b"}, []int{4, 3, 2}},
		{nil, nil},
		{[]Key{"e"}, []int{5}},
		{[]Key{"c", "a"}, []int{3, 1}}, // the same causes again
	} {
		numbers := assign(t, s, step.open...)
		for i, k := range step.open {
			if numbers[k] != step.want[i] {
				t.Errorf("%v: %s has number %d, want %d", step.open, k, numbers[k], step.want[i])
			}
		}
	}
	if n, err := s.Find(2); err != nil || n.Key != "b" || n.What != "what b" {
		t.Errorf("number 2 is %+v, %v", n, err)
	}
	if _, err := s.Find(9); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("number 9: %v", err)
	}
}

// TestNumbersOfManyReaders: those who look at the same time agree.
func TestNumbersOfManyReaders(t *testing.T) {
	tree := newTree(t)
	var all sync.WaitGroup
	found := make([]map[Key]int, 8)
	for i := range found {
		all.Go(func() {
			numbers, err := NewStore(tree).Assign(t.Context(), []Numbered{{Key: "a"}, {Key: Key(fmt.Sprint("own", i))}, {Key: "b"}})
			if err != nil {
				t.Error(err)
			}
			found[i] = numbers
		})
	}
	all.Wait()
	given := map[int]Key{}
	for i, numbers := range found {
		if numbers["a"] != found[0]["a"] || numbers["b"] != found[0]["b"] {
			t.Errorf("reader %d: %v, reader 0: %v", i, numbers, found[0])
		}
		for k, n := range numbers {
			if other, taken := given[n]; n == 0 || taken && other != k {
				t.Errorf("%d means %s and %s", n, k, other)
			}
			given[n] = k
		}
	}
}

// TestNumbersAreBounded: the file does not grow forever, and what can't be used is made
// again.
func TestNumbersAreBounded(t *testing.T) {
	tree := newTree(t)
	s := NewStore(tree)
	for round := range 4 {
		var keys []Key
		for i := range maxOpen + 10 {
			keys = append(keys, Key(fmt.Sprintf("round %d need %d of somebody with a long name indeed", round, i)))
		}
		numbers := assign(t, s, keys...)
		if numbers[keys[0]] != round*maxOpen+1 || numbers[keys[maxOpen]] != 0 {
			t.Errorf("round %d: %d and %d", round, numbers[keys[0]], numbers[keys[maxOpen]])
		}
	}
	if k, err := s.read(); err != nil || len(k.Needs) != maxKept {
		t.Errorf("%d are kept, %v", len(k.Needs), err)
	}
	if err := os.WriteFile(tree.Abs(Path), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if numbers := assign(t, s, "a"); numbers["a"] != 1 {
		t.Errorf("after damage: %v", numbers)
	}
}

// TestNumbersOfATreeThatCantBeWritten: what has a number keeps it, and the rest has none.
func TestNumbersOfATreeThatCantBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	tree := newTree(t)
	s := NewStore(tree)
	assign(t, s, "a")
	dir := tree.Abs(Path.Dir())
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	numbers, err := s.Assign(t.Context(), []Numbered{{Key: "a"}, {Key: "b"}})
	if err == nil || numbers["a"] != 1 || numbers["b"] != 0 {
		t.Errorf("%v, %v", numbers, err)
	}
}

// short is a context that waits for no other process.
func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Numbers are given under a lock, and an error gives none: nobody acts on a number that is not stored.
func TestNumbersThatCannotBeStored(t *testing.T) {
	tree := newTree(t)
	s := NewStore(tree)
	assign(t, s, "a")
	lock, err := tree.Lock(t.Context(), state.LockRecord, "needs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	numbers, err := s.Assign(ctx, []Numbered{{Key: "a"}, {Key: "b"}})
	cancel()
	lock.Unlock()
	if !errors.Is(err, state.ErrLockTimeout) || numbers["b"] != 0 || numbers["a"] != 1 {
		t.Errorf("beside the lock: %v, %v", numbers, err)
	}
	if err := os.Remove(tree.Abs(Path)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(tree.Abs(Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if numbers, err := s.Assign(t.Context(), []Numbered{{Key: "c"}}); err == nil || numbers["c"] != 0 {
		t.Errorf("a folder in the place of the file: %v, %v", numbers, err)
	}
	var unknown *state.Unknown
	if _, err := s.Find(1); err == nil || errors.As(err, &unknown) {
		t.Errorf("what can't be read is taken for unknown: %v", err)
	}
}
