package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Nothing reports a file that is written to and not closed. While it is young every look reads it again, also that
// of a follower of the folder.
func TestYoungFilesAreLookedAtAgain(t *testing.T) {
	tree := newTree(t)
	s, _ := followed(t, tree)
	plant(t, tree, "state/work/a.json", `{"name":"a","count":1}`)
	later := time.Now().Add(time.Hour) // young forever
	must(t, os.Chtimes(tree.Abs("state/work/a.json"), later, later))
	f, err := os.OpenFile(tree.Abs("state/work/a.json"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	for count := 1; count < 5; count++ {
		_, err := f.WriteAt(fmt.Appendf(nil, `{"name":"a","count":%d}`, count), 0)
		must(t, err)
		if all, bad, err := s.All(); err != nil || len(bad) > 0 || len(all) != 1 || all[0].Count != count {
			t.Errorf("%+v, %v, %v; want %d", all, bad, err, count)
		}
	}
}

// GetCached reads a file once for each version of it.
func TestGetCached(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	must(t, s.Create("a", sample{Name: "a", Count: 1}))
	time.Sleep(racyWindow + 20*time.Millisecond) // the system's stamp of a change can't be set
	for i, want := range []int64{1, 1, 2, 2} {
		if i == 2 {
			must(t, s.Put("a", sample{Name: "a", Count: 2}))
			time.Sleep(racyWindow + 20*time.Millisecond)
		}
		if v, err := s.GetCached("a"); err != nil || v.Count != 1+i/2 || s.reads.Load() != want {
			t.Errorf("look %d: %+v, %v, after %d files were read, want %d", i, v, err, s.reads.Load(), want)
		}
	}
	for name, want := range map[string]error{"../a": ErrBadID, "b": ErrNotFound, "bad": ErrCorrupt} {
		plant(t, tree, "state/work/bad.json", "{")
		var unknown *Unknown
		if _, err := s.GetCached(name); !errors.Is(err, want) || errors.As(err, &unknown) != (name == "b") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, s.Remove("a"))
	if _, err := s.GetCached("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
	done := make(chan error, 8)
	for range cap(done) {
		go func() { _, err := s.GetCached("c"); done <- err }()
	}
	for range cap(done) {
		if err := <-done; !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
}

// Of many new objects each has an answer of its own.
func TestCreateAll(t *testing.T) {
	s := sampleStore(newTree(t))
	must(t, s.Create("taken", sample{Name: "taken", Count: 7}))
	long := sample{Name: "long", Meta: map[string]string{"x": string(make([]byte, MaxFile))}}
	all := []sample{{Name: "a"}, {Name: "../b"}, {Name: "taken"}, long, {Name: "c", Count: 3}}
	for i, want := range []error{nil, ErrBadID, ErrExists, ErrTooLarge, nil} {
		if i == 0 {
			for k, err := range s.CreateAll(all, func(v *sample) string { return v.Name }) {
				if want := []error{nil, ErrBadID, ErrExists, ErrTooLarge, nil}[k]; !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", all[k].Name, err, want)
				}
			}
		}
		if v, err := s.Get(all[i].Name); want == nil && (err != nil || v.Count != all[i].Count) {
			t.Errorf("%s: %+v, %v", all[i].Name, v, err)
		}
	}
	if err := s.Create("d", sample{Name: "e"}); err == nil {
		t.Error("an object was created under the name of another")
	}
	for name, verb := range map[string]func(name string) error{
		"get":    func(name string) error { _, err := s.Get(name); return err },
		"remove": s.Remove,
		"update": func(name string) error {
			_, err := s.Update(t.Context(), name, func(*sample) error { return nil })
			return err
		},
		"upsert": func(name string) error {
			_, err := s.Upsert(t.Context(), name, func(*sample, bool) error { return nil })
			return err
		},
	} {
		if err := verb("../taken"); !errors.Is(err, ErrBadID) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, err := s.Get("taken"); err != nil || v.Count != 7 {
		t.Errorf("taken: %+v, %v", v, err)
	}
}

// What was changed says which error it was, and nothing is written.
func TestChangesThatAreRefused(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	must(t, s.Create("a", sample{Name: "a", Count: 1}))
	refusal := errors.New("refused")
	change := func(err error) func(v *sample, _ bool) error {
		return func(v *sample, _ bool) error { v.Count++; return err }
	}
	if v, err := s.Upsert(t.Context(), "a", change(refusal)); !errors.Is(err, refusal) || v.Name != "" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := s.Upsert(t.Context(), "a", change(ErrUnchanged)); err != nil || v.Name != "a" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := s.UpdateThen(t.Context(), "a", func(v *sample) error { v.Count++; return nil }, func() error { return refusal }); !errors.Is(err, refusal) || v.Name != "" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := s.Get("a"); err != nil || v.Count != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	plant(t, tree, "state/work/bad.json", "{")
	if _, err := s.Upsert(t.Context(), "bad", change(nil)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a damaged object: %v", err)
	}
	if data, _ := tree.Read("state/work/bad.json", 10); string(data) != "{" {
		t.Errorf("a damaged object became %q", data)
	}
}

// Stamps tell versions, files and folders apart.
func TestStamps(t *testing.T) {
	at := time.Unix(1_000_000, 7)
	for _, c := range []struct {
		name              string
		modified, changed time.Time
		window            time.Duration
	}{
		{"modified last", at, at.Add(-time.Hour), racyWindow},
		{"changed last", at.Add(-time.Hour), at, racyWindow},
		{"whole seconds", time.Unix(1_000_000, 0), time.Unix(1_000_000, 0), coarseWindow},
	} {
		s := Stamp{Modified: c.modified.UnixNano(), Changed: c.changed.UnixNano()}
		end := time.Unix(0, max(s.Modified, s.Changed)).Add(c.window)
		if s.Settled(end) || !s.Settled(end.Add(1)) {
			t.Errorf("%s: settled %v at %v, %v after it", c.name, s.Settled(end), c.window, s.Settled(end.Add(1)))
		}
	}
	one := Stamp{Inode: 1, Born: 2, Size: 3}
	for other, want := range map[Stamp]bool{{Inode: 1, Born: 2}: true, {Inode: 1, Born: 3}: false, {Inode: 2, Born: 2}: false} {
		if one.SameFile(other) != want {
			t.Errorf("%+v is %+v: %v", one, other, !want)
		}
	}
	if (Stamp{}).SameFile(Stamp{}) {
		t.Error("nothing is a file")
	}
	tree := newTree(t)
	dir, err := tree.OpenFolder(StateDir)
	must(t, err)
	defer dir.Close()
	stamp, err := dir.Stamp()
	if err != nil || !stamp.IsDir() || stamp.Inode == 0 {
		t.Errorf("%+v, %v", stamp, err)
	}
	if _, err := dir.Stat("none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the stamp of nothing: %v", err)
	}
	if s, err := dir.Stat(rigFile.Base()); err != nil || s.IsDir() || s.Size == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// SameVersion sees each thing that may have become another.
func TestSameVersion(t *testing.T) {
	at := t.TempDir() + "/a"
	long := time.Now().Add(-time.Hour)
	for name, change := range map[string]func() error{
		"": func() error { return nil },
		"length": func() error {
			return errors.Join(os.WriteFile(at, []byte("longer"), 0o600), os.Chtimes(at, long, long))
		},
		"time":  func() error { return os.Chtimes(at, long, long.Add(1)) },
		"mode":  func() error { return os.Chmod(at, 0o640) },
		"links": func() error { return os.Link(at, at+"-link") },
		"file": func() error {
			return errors.Join(os.Rename(at, at+"-old"), os.WriteFile(at, []byte("x"), 0o600), os.Chtimes(at, long, long))
		},
	} {
		_ = os.Remove(at)
		must(t, errors.Join(os.WriteFile(at, []byte("x"), 0o600), os.Chmod(at, 0o600), os.Chtimes(at, long, long)))
		before, err := os.Lstat(at)
		must(t, err)
		must(t, change())
		after, err := os.Lstat(at)
		must(t, err)
		if SameVersion(before, after) != (name == "") {
			t.Errorf("another %q: the same version %v", name, name != "")
		}
	}
}

// A tree is known again without reading once no later version of its identity can have the same stamp.
func TestVerifyTrustsASettledStamp(t *testing.T) {
	tree := newTree(t)
	later := time.Now().Add(time.Hour)
	must(t, os.Chtimes(tree.Abs(rigFile), later, later))
	must(t, tree.Verify())
	if tree.verified.Load() != nil {
		t.Error("a young identity is trusted")
	}
	early := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(tree.Abs(rigFile), early, early))
	time.Sleep(racyWindow + 20*time.Millisecond) // the system's stamp of a change can't be set
	must(t, tree.Verify())
	if tree.verified.Load() == nil {
		t.Error("it is read each time")
	}
}

// What a watcher lost, or hears no more, is looked at whole.
func TestWatcherThatMissesChanges(t *testing.T) {
	tree := newTree(t)
	_, w := followed(t, tree)
	select {
	case err := <-w.Errors():
		t.Errorf("a new watcher warns: %v", err)
	default:
	}
	signal, err := w.Subscribe("state/work")
	must(t, err)
	feeds := []*feed{w.feed(tree.Abs("state/work")), w.feed(tree.Abs("state/mail"))}
	for name, miss := range map[string]func(){
		"overflow": func() { w.overflow(errFull) },
		"folder":   func() { w.lose(tree.Abs("state/work")) },
	} {
		for _, f := range feeds {
			f.take()
		}
		miss()
		for i, f := range feeds {
			if _, _, lost := f.take(); lost != (i == 0 || name == "overflow") {
				t.Errorf("%s: lost of folder %d: %v", name, i, lost)
			}
		}
		select {
		case <-signal:
		default:
			t.Errorf("%s: nobody is woken", name)
		}
		select {
		case err := <-w.Errors():
			if name != "overflow" || !errors.Is(err, errFull) {
				t.Errorf("%s: %v", name, err)
			}
		default:
			if name == "overflow" {
				t.Error("no warning")
			}
		}
	}
	must(t, w.Close())
	if _, err := w.Subscribe("state/mail"); err == nil {
		t.Error("a watcher that is closed watches")
	}
}

// A folder that was made again is watched when somebody subscribes again.
func TestWatchOfAFolderMadeAnew(t *testing.T) {
	tree := newTree(t)
	_, w := followed(t, tree)
	_, err := w.Subscribe("state/work")
	must(t, err)
	must(t, os.Rename(tree.Abs("state/work"), tree.Abs("state/gone")))
	signal, err := w.Subscribe("state/work")
	must(t, err)
	w.src.drain()
	select { // of the move itself
	case <-signal:
	default:
	}
	plant(t, tree, "state/work/a.json", "{}")
	w.src.drain()
	select {
	case <-signal:
	default:
		t.Error("a change in the new folder is not told")
	}
	for name, change := range map[string]func(at string) error{
		"moved away": func(at string) error { return os.Rename(at, tree.Abs("state/gone/a")) },
		"moved here": func(at string) error { return os.Rename(tree.Abs("state/gone/a"), at) },
		"written to": func(at string) error { return os.WriteFile(at, []byte("{ }"), 0o600) },
		"removed":    os.Remove,
	} {
		plant(t, tree, "state/work/a.json", "{}")
		plant(t, tree, "state/gone/a", "{}")
		w.src.drain()
		select {
		case <-signal:
		default:
		}
		must(t, change(tree.Abs("state/work/a.json")))
		w.src.drain()
		select {
		case <-signal:
		default:
			t.Errorf("a file that is %s is not told", name)
		}
	}
}

// What changed in a folder of files that are old is told once.
func TestSinceOfOldFiles(t *testing.T) {
	tree := newTree(t)
	followedStore, _ := followed(t, tree)
	stores := []*Store[sample]{followedStore, sampleStore(tree)}
	for _, id := range []string{"a", "b", "c"} {
		must(t, stores[0].Create(id, sample{Name: id}))
	}
	time.Sleep(racyWindow + 20*time.Millisecond) // the system's stamp of a change can't be set
	cursors := make([]Cursor, len(stores))
	for step, want := range []string{"true [a b c] [] 0", "false [] [] 0", "false [] [a] 0", "false [b] [] 0", "false [] [] 0"} {
		switch step {
		case 2:
			must(t, stores[0].Remove("a"))
		case 3:
			must(t, stores[0].Put("b", sample{Name: "b", Count: 1}))
			time.Sleep(racyWindow + 20*time.Millisecond)
		}
		for i, s := range stores {
			if got := since(t, s, &cursors[i]); got != want {
				t.Errorf("step %d, store %d: %s, want %s", step, i, got, want)
			}
		}
	}
}

// A store may be used by many at once.
func TestStoreOfMany(t *testing.T) {
	tree := newTree(t)
	s, w := followed(t, tree)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprint("s", i)
			for n := range 20 {
				_, _, allErr := s.All()
				_, _, selectErr := s.Select(func(v *sample) bool { return v.Count > 0 })
				_, sinceErr := s.Since(Cursor{})
				putErr := s.Put(name, sample{Name: name, Count: n})
				v, getErr := s.GetCached(name)
				s.Follow(w)
				if err := errors.Join(allErr, selectErr, sinceErr, putErr, getErr); err != nil || v.Count != n {
					t.Errorf("%+v, %v", v, err)
				}
			}
		})
	}
	all.Wait()
}

// Where a folder can't be looked at, whoever asks hears of it.
func TestLooksThatFail(t *testing.T) {
	tree := newTree(t)
	s, _ := followed(t, tree)
	must(t, s.Create("a", sample{Name: "a"}))
	_, _, err := s.All()
	must(t, err)
	must(t, os.RemoveAll(tree.Abs("state/work")))
	plant(t, tree, "state/work", "in the way")
	plant(t, tree, QuarantineDir, "in the way")
	for name, look := range map[string]func() error{
		"all":         func() error { _, _, err := s.All(); return err },
		"select":      func() error { _, _, err := s.Select(func(*sample) bool { return true }); return err },
		"since":       func() error { _, err := s.Since(Cursor{}); return err },
		"summaries":   func() error { _, _, err := summaryStore(tree).Summaries(); return err },
		"get":         func() error { _, err := s.Get("a"); return err },
		"cached":      func() error { _, err := s.GetCached("a"); return err },
		"quarantined": func() error { _, err := tree.Quarantined(); return err },
		"lock": func() error {
			_, err := s.Update(t.Context(), "a", func(*sample) error { return nil })
			if tree.IsLocked(LockBead, "a") {
				t.Error("a lock that was not given is held")
			}
			return err
		},
	} {
		if err := look(); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w, err := NewWatcher(tree)
	must(t, err)
	defer w.Close()
	follower := NewFollower(tree, "state/work/x", w)
	if c, err := follower.Next(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("followed: %+v, %v", c, err)
	}
	must(t, os.RemoveAll(tree.Abs(StateDir)))
	if temps, err := tree.TempFiles(time.Now()); err != nil || len(temps) > 0 {
		t.Errorf("in no tree: %v, %v", temps, err)
	}
	if shared, err := tree.HardLinkedFiles(tree.Abs("none")); err != nil || len(shared) > 0 {
		t.Errorf("in no tree: %v, %v", shared, err)
	}
}

// A change of what is not there, or is damaged, changes nothing and says which it is.
func TestChangesOfNothing(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	plant(t, tree, "state/work/bad.json", "{")
	plant(t, tree, "state/work/other.json", `{"name":"another"}`)
	if v, err := s.Get("other"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an object of another name: %+v, %v", v, err)
	}
	for name, want := range map[string]error{"none": ErrNotFound, "bad": ErrCorrupt} {
		if _, err := s.Update(t.Context(), name, func(v *sample) error { v.Name = name; return nil }); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if there, _ := tree.Exists("state/work/none.json"); there {
		t.Error("an object that was not there is")
	}
	if err := Conflictf("x", "y"); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
}

// A file is moved onto nothing else, also where one of the two is empty or can't be read.
func TestMoveOntoAnother(t *testing.T) {
	for name, c := range map[string]struct{ from, to func(at string) error }{
		"an empty file onto a folder": {func(at string) error { return os.WriteFile(at, nil, 0o600) }, func(at string) error { return os.Mkdir(at, 0o700) }},
		"a folder onto an empty file": {func(at string) error { return os.Mkdir(at, 0o700) }, func(at string) error { return os.WriteFile(at, nil, 0o600) }},
	} {
		for kind, features := range kinds() {
			tree := treeOn(t, &featured{features: features})
			must(t, errors.Join(tree.MkdirAll("state/a"), tree.MkdirAll("state/b")))
			must(t, errors.Join(c.from(tree.Abs("state/a/x")), c.to(tree.Abs("state/b/x"))))
			if err := tree.Move("state/a/x", "state/b/x"); !errors.Is(err, ErrExists) {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
			if there, err := tree.Exists("state/a/x"); !there {
				t.Errorf("%s, %s: it is gone, %v", kind, name, err)
			}
		}
	}
}

// A folder that is known is not made again, and no name leads out of the tree.
func TestFoldersThatAreKnown(t *testing.T) {
	d := &featured{}
	tree := treeOn(t, d)
	must(t, tree.MkdirAll("state/mail/mayor"))
	syncs := 0
	d.fail = func(op, _ string) error { syncs++; return nil }
	must(t, tree.MkdirAll("state/mail/mayor"))
	time.Sleep(checkInterval + 20*time.Millisecond) // since when links are looked for again
	must(t, tree.MkdirAll("state/mail/mayor"))
	if syncs != 0 {
		t.Errorf("%d syncs of what was durable", syncs)
	}
	must(t, os.Rename(tree.Abs("state/mail/mayor"), tree.Abs("state/mail/old")))
	must(t, os.Mkdir(tree.Abs("state/mail/mayor"), 0o700))
	must(t, tree.MkdirAll("state/mail/mayor"))
	if syncs == 0 {
		t.Error("another folder of the same name counts as durable")
	}
	elsewhere := filepath.Join(t.TempDir(), "mail")
	must(t, os.Rename(tree.Abs("state/mail"), elsewhere))
	must(t, os.Symlink(elsewhere, tree.Abs("state/mail")))
	time.Sleep(checkInterval + 20*time.Millisecond)
	if err := tree.MkdirAll("state/mail/mayor"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("the same folder, through a link: %v", err)
	}
	for _, dir := range []Path{"../x", "run/../../x", "run//x", ""} {
		if err := tree.MkdirAll(dir); !errors.Is(err, ErrBadID) {
			t.Errorf("%q: %v", dir, err)
		}
	}
	d.fail = func(string, string) error { return unix.EIO }
	if l, err := tree.Lock(t.Context(), LockBead, "a", "state/mail"); err == nil || tree.IsLocked(LockBead, "a") {
		t.Errorf("%v, %v, and it is held: %v", l, err, tree.IsLocked(LockBead, "a"))
	}
}
