package state

import (
	"fmt"
	"slices"
	"testing"
)

// since is what a store tells after a mark, as one line.
func since(t *testing.T, s *Store[sample], m *Cursor) string {
	t.Helper()
	c, err := s.Since(*m)
	if err != nil {
		t.Fatal(err)
	}
	*m = c.Next
	var names []string
	for _, v := range c.Values {
		names = append(names, v.Name)
	}
	slices.Sort(names)
	return fmt.Sprint(c.All, names, c.Removed, len(c.Bad))
}

func TestSinceTellsWhatChanged(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	var m, other Cursor
	want := func(at *Cursor, want string) {
		t.Helper()
		if got := since(t, s, at); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	want(&m, "true [] [] 0")
	for _, id := range []string{"a", "b", "c"} {
		must(t, s.Create(id, sample{Name: id}))
	}
	want(&m, "false [a b c] [] 0")
	want(&other, "true [a b c] [] 0")
	must(t, s.Put("b", sample{Name: "b", Count: 2}))
	must(t, s.Remove("a"))
	plant(t, tree, "state/work/c.json", "nonsense")
	if got := since(t, s, &m); got != "false [b] [a c] 1" && got != "false [b] [c a] 1" {
		t.Errorf("%s, want b changed, a and c gone", got)
	}
	// Whoever has missed more than is remembered gets everything.
	for range 2*maxHistory + 1 {
		s.note("b.json")
	}
	want(&other, "true [b] [] 1")
}

func TestSelect(t *testing.T) {
	s := sampleStore(newTree(t))
	for i, id := range []string{"a", "b", "c"} {
		must(t, s.Create(id, sample{Name: id, Count: i}))
	}
	got, bad, err := s.Select(func(v *sample) bool { return v.Count > 0 })
	if err != nil || len(bad) > 0 || len(got) != 2 || got[0].Name != "b" || got[1].Name != "c" {
		t.Errorf("%v %v %v", got, bad, err)
	}
}
