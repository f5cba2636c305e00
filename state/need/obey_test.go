package need

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/disk"
)

// Nothing is numbered while the file of the numbers can't be used, or somebody else numbers.
func TestNumbersThatCannotBeKept(t *testing.T) {
	tree := newTree(t)
	s := NewStore(tree)
	assign(t, s, "a")
	more := []Numbered{{Key: "a"}, {Key: "b"}}
	if err := tree.Remove(Path); err != nil {
		t.Fatal(err)
	}
	if err := tree.MkdirAll(Path); err != nil {
		t.Fatal(err)
	}
	if numbers, err := s.Assign(t.Context(), more); err == nil || len(numbers) > 0 {
		t.Errorf("numbered without a file: %v, %v", numbers, err)
	}
	if n, err := s.Find(1); err == nil {
		t.Errorf("found without a file: %+v", n)
	}
	s = NewStore(newTree(t))
	assign(t, s, "a")
	held, err := s.tree.Lock(t.Context(), state.LockRecord, "needs")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	if numbers, err := s.Assign(short(t), more); err == nil || numbers["a"] != 1 || numbers["b"] != 0 {
		t.Errorf("numbered beside another: %v, %v", numbers, err)
	}
	if numbers, err := s.Assign(short(t), more[:1]); err != nil || numbers["a"] != 1 {
		t.Errorf("what is known needs nobody's leave: %v, %v", numbers, err)
	}
	for text, next := range map[string]int{"{": 1, `{"next":0,"needs":[]}`: 1, `{"next":7,"needs":[]}`: 7} {
		tree := newTree(t)
		if err := tree.Replace(Path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if numbers := assign(t, NewStore(tree), "a"); numbers["a"] != next {
			t.Errorf("after %s: %v", text, numbers)
		}
	}
}

// guarded is a disk on which the two files change under their locks alone, and that may refuse to.
type guarded struct {
	disk.OS
	*testing.T
	tree *state.Tree
	full bool
}

// Pending implements disk.Disk.
func (d *guarded) Pending(path string) (disk.Pending, error) {
	d.Helper()
	for p, lock := range map[state.Path]string{Path: "needs", ToldPath: "told"} {
		if path == d.tree.Abs(p) && !d.tree.IsLocked(state.LockRecord, lock) {
			d.Errorf("%s changes without its lock", p)
		}
	}
	if d.full {
		return nil, errors.New("no space left")
	}
	return d.OS.Pending(path)
}

// Numbers and notices are taken under their locks, and what can't be written counts for nobody.
func TestVerbsObey(t *testing.T) {
	d := &guarded{T: t}
	tree, err := state.CreateOn(d, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d.tree = tree
	s := NewStore(tree)
	assign(t, s, "a")
	if keys, err := s.TakeNew(t.Context(), Current{Keys: []Key{"a"}}); err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	d.full = true
	if numbers, err := s.Assign(t.Context(), []Numbered{{Key: "a"}, {Key: "b"}}); err == nil || numbers["a"] != 1 || numbers["b"] != 0 {
		t.Errorf("on a full disk: %v, %v", numbers, err)
	}
	if keys, err := s.TakeNew(t.Context(), Current{Keys: []Key{"a", "b"}}); err == nil || len(keys) > 0 {
		t.Errorf("on a full disk the person is told of %v, %v", keys, err)
	}
}

// before runs do when a verb begins to wait for its lock.
type before struct {
	context.Context
	do func()
}

func (b before) Deadline() (time.Time, bool) {
	b.do()
	return b.Context.Deadline()
}

// What becomes of the files while a verb waits for its lock counts, also when they can't be read any more.
func TestFilesThatAreLostMeanwhile(t *testing.T) {
	tree := newTree(t)
	s := NewStore(tree)
	lose := func(p state.Path) context.Context {
		return before{t.Context(), func() {
			if err := errors.Join(tree.RemoveAll(p), tree.MkdirAll(p)); err != nil {
				t.Error(err)
			}
		}}
	}
	if numbers, err := s.Assign(lose(Path), []Numbered{{Key: "a"}}); err == nil || !strings.Contains(err.Error(), "numbers of needs") {
		t.Errorf("numbered: %v, %v", numbers, err)
	}
	if keys, err := s.TakeNew(lose(ToldPath), Current{Keys: []Key{"a"}}); err == nil || !strings.Contains(err.Error(), "needs that the person was notified of") {
		t.Errorf("told of: %v, %v", keys, err)
	}
}
