package need

import (
	"errors"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
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

// Each verb takes its numbers and its notices under their locks, and returns an error for what it could not write.
func TestVerbsObey(t *testing.T) {
	lock := func(p state.Path) (state.LockKind, string) {
		switch p {
		case Path:
			return state.LockRecord, "needs"
		case ToldPath:
			return state.LockRecord, "told"
		}
		return "", ""
	}
	model.Obey(t, func(r *model.Run) error {
		_, err := NewStore(r.Tree).Assign(r, []Numbered{{Key: "a", What: "one"}})
		_, tellErr := NewStore(r.Tree).Tell(r, Standing{Keys: []Key{"a"}})
		return errors.Join(err, tellErr)
	}, map[string]model.Verb{
		"assign": {Lock: lock, Do: func(r *model.Run) (any, error) {
			return NewStore(r.Tree).Assign(r, []Numbered{{Key: "a", What: "one"}, {Key: "b"}})
		}},
		"tell": {Lock: lock, Do: func(r *model.Run) (any, error) {
			return NewStore(r.Tree).Tell(r, Standing{Keys: []Key{"a", "b"}})
		}},
	})
}
