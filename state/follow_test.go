package state

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state/statetest"
)

// followed is a store that is told of changes; it skips where nothing tells.
func followed(t testing.TB, tree *Tree) (*Store[sample], *Watcher) {
	t.Helper()
	w, err := NewWatcher(tree)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { w.Close() })
	if !w.src.follows() {
		t.Skip("this system does not tell of changes in time")
	}
	s := sampleStore(tree)
	s.Follow(w)
	return s, w
}

// One object of many that changed is one file that is read.
func TestAllOfAFollowedFolderReadsWhatChanged(t *testing.T) {
	tree := newTree(t)
	s, _ := followed(t, tree)
	const n = 300
	var news []NewFile
	for i := range n {
		name := "b" + strconv.Itoa(i)
		data, err := Encode(sample{Name: name})
		must(t, err)
		news = append(news, NewFile{Path: s.Path(name), Data: data})
	}
	for _, err := range tree.WriteAll(news) {
		must(t, err)
	}
	all, _, err := s.All()
	must(t, err)
	if len(all) != n {
		t.Fatalf("%d objects, want %d", len(all), n)
	}
	s.mu.Lock()
	clear(s.young) // as if the files were older than the racy window
	s.mu.Unlock()
	other := sampleStore(tree) // another process, as far as s knows
	for i := range 20 {
		before := s.reads.Load()
		must(t, other.Put("b7", sample{Name: "b7", Count: i + 1}))
		all, _, err := s.All()
		must(t, err)
		count := 0
		for _, v := range all {
			count += v.Count
		}
		if count != i+1 {
			t.Fatalf("round %d: the change is not seen", i)
		}
		if read := s.reads.Load() - before; read != 1 {
			t.Errorf("round %d: %d files were read for one change", i, read)
		}
		s.mu.Lock()
		clear(s.young)
		s.mu.Unlock()
		before = s.reads.Load()
		_, _, err = s.All()
		must(t, err)
		if read := s.reads.Load() - before; read != 0 {
			t.Errorf("round %d: %d files were read for none", i, read)
		}
	}
}

// TestFollowedStoreIsLikeAFreshLook: whatever happens to the folder, what a
// store remembers is what a new one reads.
func TestFollowedStoreIsLikeAFreshLook(t *testing.T) {
	statetest.Check(t, 30, func(r *rapid.T) {
		tree := newTree(t)
		s, w := followed(t, tree)
		other := sampleStore(tree)
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		count := 0
		must(t, tree.MkdirAll(s.Dir()))
		steps := map[string]func(*rapid.T){
			"put by another": func(r *rapid.T) {
				n := name.Draw(r, "name")
				count++
				must(t, other.Put(n, sample{Name: n, Count: count}))
			},
			"put": func(r *rapid.T) {
				n := name.Draw(r, "name")
				count++
				must(t, s.Put(n, sample{Name: n, Count: count}))
			},
			"in place": func(r *rapid.T) {
				count++
				n := name.Draw(r, "name")
				plant(t, tree, s.Path(n), fmt.Sprintf(`{"name":%q,"count":%d}`, n, count))
			},
			"damage": func(r *rapid.T) { plant(t, tree, s.Path(name.Draw(r, "name")), "{") },
			"foreign": func(r *rapid.T) {
				plant(t, tree, s.Dir().Join(rapid.SampledFrom([]string{"README", "A.json", ".hidden"}).Draw(r, "file")), "x")
			},
			"remove": func(r *rapid.T) { must(t, other.Remove(name.Draw(r, "name"))) },
			"take the folder away": func(r *rapid.T) {
				must(t, os.RemoveAll(tree.Abs(s.Dir())))
				tree.mu.Lock()
				clear(tree.durable)
				tree.mu.Unlock()
				must(t, tree.MkdirAll(s.Dir()))
			},
			"overflow": func(r *rapid.T) { w.overflow(errFull) },
			"": func(r *rapid.T) {
				got, gotBad, gotErr := s.All()
				want, wantBad, wantErr := sampleStore(tree).All()
				if gotErr != nil || wantErr != nil || !reflect.DeepEqual(got, want) || fmt.Sprint(gotBad) != fmt.Sprint(wantBad) {
					r.Fatalf("remembered %+v %v %v\nfresh      %+v %v %v", got, gotBad, gotErr, want, wantBad, wantErr)
				}
			},
		}
		r.Repeat(steps)
	})
}

var errFull = fmt.Errorf("full")

// A folder that changes without a word is looked at whole.
func TestFollowerDoesNotRelyOnNotification(t *testing.T) {
	tree := newTree(t)
	s, w := followed(t, tree)
	must(t, s.Create("a", sample{Name: "a"}))
	_, _, err := s.All()
	must(t, err)
	// As on a file system that forgets to tell.
	w.mu.Lock()
	for _, feeds := range w.feeds {
		for _, f := range feeds {
			f.take()
		}
	}
	w.feeds = map[string][]*feed{}
	w.mu.Unlock()
	must(t, sampleStore(tree).Create("b", sample{Name: "b"}))
	if all, _, err := s.All(); err != nil || len(all) != 2 {
		t.Errorf("%d objects, %v; want 2", len(all), err)
	}
}

func TestFeedIsBounded(t *testing.T) {
	var f feed
	for i := range maxFeed + 1 {
		f.note(strconv.Itoa(i))
	}
	if names, _, lost := f.take(); len(names) != 0 || !lost {
		t.Errorf("%d names, lost %v", len(names), lost)
	}
	f.note("a")
	if names, _, lost := f.take(); len(names) != 1 || lost {
		t.Errorf("%d names, lost %v", len(names), lost)
	}
}

// TestAMissingFolderChangesOnce: as long as there is no folder nothing changes in it, and
// when it comes, it is looked at.
func TestAMissingFolderChangesOnce(t *testing.T) {
	tree := newTree(t)
	_, w := followed(t, tree)
	dir := RunDir.Join("later")
	f := NewFollower(tree, dir, w)
	for i, want := range []bool{true, false, false, true, false} {
		if i == 3 {
			must(t, tree.MkdirAll(dir))
		}
		c, err := f.Next()
		must(t, err)
		if c.Rescan != want || len(c.Names) > 0 {
			t.Errorf("look %d: %+v, want a rescan: %v", i, c, want)
		}
	}
}
