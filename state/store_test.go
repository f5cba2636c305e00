package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func sampleStore(tree *Tree) *Store[sample] {
	return NewStore(tree, "state/work", "sample", LockBead, func(name string, s *sample) error {
		if s.Name != name {
			return fmt.Errorf("name %q contradicts the file's name", s.Name)
		}
		return nil
	})
}

func TestStoreRoundTrip(t *testing.T) {
	s := sampleStore(newTree(t))
	must(t, s.Create("a", sample{Name: "a"}))
	if err := s.Create("a", sample{Name: "a"}); !errors.Is(err, ErrExists) {
		t.Errorf("second create: %v, want ErrExists", err)
	}
	if err := s.Put("a", sample{Name: "b"}); err == nil {
		t.Error("an object that contradicts its name was written")
	}
	if err := s.Put("../a", sample{Name: "../a"}); !errors.Is(err, ErrBadID) {
		t.Errorf("bad name: %v, want ErrBadID", err)
	}
	if err := s.Put("a", sample{Name: "a", Meta: map[string]string{"x": string(make([]byte, MaxFile))}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v, want ErrTooLarge", err)
	}
	_, err := s.Get("b")
	var unknown *Unknown
	if !errors.As(err, &unknown) || !errors.Is(err, ErrNotFound) || unknown.Hint() != "did you mean a?" {
		t.Errorf("missing: %v, want *Unknown with a hint", err)
	}
	must(t, s.Remove("a"))
	if _, err := s.Get("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("removed: %v, want ErrNotFound", err)
	}
}

func TestUpdateKeepsUnknownFields(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	plant(t, tree, "state/work/a.json", `{"name":"a","future":{"b":1,"a":[2]},"-":1,"Extra":2,"COUNT":5}`)
	_, err := s.Update(t.Context(), "a", func(v *sample) error { v.Count++; return nil })
	must(t, err)
	want := "{\n  \"-\": 1,\n  \"COUNT\": 5,\n  \"Extra\": 2,\n  \"count\": 1,\n  \"future\": {\n    \"a\": [\n      2\n    ],\n    \"b\": 1\n  },\n  \"name\": \"a\"\n}\n"
	if data, _ := tree.Read("state/work/a.json", MaxFile); string(data) != want {
		t.Errorf("got %s\nwant %s", data, want)
	}
}

func TestUpdateRefusedLeavesTheFile(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	must(t, s.Create("a", sample{Name: "a"}))
	before, _ := os.Stat(tree.Abs(s.Path("a")))
	no := errors.New("no")
	if _, err := s.Update(t.Context(), "a", func(v *sample) error { v.Count = 9; return no }); !errors.Is(err, no) {
		t.Errorf("refused: %v", err)
	}
	if _, err := s.Update(t.Context(), "a", func(v *sample) error { return ErrUnchanged }); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	if _, err := s.UpdateThen(t.Context(), "a", func(v *sample) error { v.Count = 9; return nil }, func() error { return no }); !errors.Is(err, no) {
		t.Errorf("act refused: %v", err)
	}
	if after, _ := os.Stat(tree.Abs(s.Path("a"))); !os.SameFile(before, after) {
		t.Error("the file was replaced")
	}
}

func TestUpdatesOfManyCountUp(t *testing.T) {
	tree := newTree(t)
	must(t, sampleStore(tree).Create("a", sample{Name: "a"}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s := sampleStore(tree)
			for range 10 {
				if _, err := s.Update(t.Context(), "a", func(v *sample) error { v.Count++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if v, err := sampleStore(tree).Get("a"); err != nil || v.Count != 80 {
		t.Errorf("count %d, %v; want 80", v.Count, err)
	}
}

func TestUpsert(t *testing.T) {
	s := sampleStore(newTree(t))
	for want := range 2 {
		v, err := s.Upsert(t.Context(), "a", func(v *sample, found bool) error {
			if found != (want > 0) {
				t.Errorf("found %v at round %d", found, want)
			}
			v.Name = "a"
			v.Count++
			return nil
		})
		if err != nil || v.Count != want+1 {
			t.Errorf("round %d: %+v, %v", want, v, err)
		}
	}
}

func TestAllReportsWhatIsBadAndGoesOn(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	for _, name := range []string{"a", "b", "c"} {
		must(t, s.Create(name, sample{Name: name}))
	}
	plant(t, tree, "state/work/b.json", "{")
	plant(t, tree, "state/work/UPPER.json", "{}")
	plant(t, tree, "state/work/notes.txt", "hello")
	must(t, os.Symlink(tree.Abs("state/work/a.json"), tree.Abs("state/work/link.json")))
	all, bad, err := s.All()
	must(t, err)
	if len(all) != 2 || all[0].Name != "a" || all[1].Name != "c" {
		t.Errorf("all = %+v", all)
	}
	if len(bad) != 4 {
		t.Errorf("bad = %v, want 4", bad)
	}
	for _, err := range bad {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v is no ErrCorrupt", err)
		}
	}
}

// The cache of All must never show an old version, however fast the writes.
func TestAllSeesEveryWrite(t *testing.T) {
	tree := newTree(t)
	reader, writer := sampleStore(tree), sampleStore(tree)
	must(t, writer.Create("a", sample{Name: "a"}))
	for i := range 200 {
		if i%2 == 0 {
			must(t, writer.Put("a", sample{Name: "a", Count: i + 100}))
		} else { // in place, with the same length, as an editor may do
			plant(t, tree, "state/work/a.json", `{"name":"a","count":`+strconv.Itoa(i+100)+`}`)
		}
		all, _, err := reader.All()
		if err != nil || len(all) != 1 || all[0].Count != i+100 {
			t.Fatalf("round %d: %+v, %v", i, all, err)
		}
	}
}

// A file that was refused for its second name is read once that name is gone.
func TestCacheForgetsRefusals(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	plant(t, tree, "state/work/a.json", `{"name":"a"}`)
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(tree.Abs("state/work/a.json"), old, old))
	second := t.TempDir() + "/second"
	must(t, os.Link(tree.Abs("state/work/a.json"), second))
	if _, bad, _ := s.All(); len(bad) != 1 {
		t.Fatalf("bad = %v, want the second name refused", bad)
	}
	must(t, os.Remove(second))
	if all, bad, _ := s.All(); len(all) != 1 || len(bad) != 0 {
		t.Errorf("after the second name is gone: %v, %v", all, bad)
	}
	must(t, os.Link(tree.Abs("state/work/a.json"), second))
	if _, bad, _ := s.All(); len(bad) != 1 {
		t.Errorf("a new second name is not noticed: %v", bad)
	}
}

func TestLockExcludes(t *testing.T) {
	tree := newTree(t)
	l, err := tree.TryLock(LockBead, "a")
	must(t, err)
	if _, err := tree.TryLock(LockBead, "a"); !errors.Is(err, ErrLockTimeout) {
		t.Errorf("second holder: %v, want ErrLockTimeout", err)
	}
	if !tree.IsLocked(LockBead, "a") || tree.IsLocked(LockBead, "b") {
		t.Error("Held is wrong")
	}
	other, err := tree.TryLock(LockHook, "a")
	must(t, err)
	other.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := tree.Lock(ctx, LockBead, "a"); !errors.Is(err, ErrLockTimeout) {
		t.Errorf("deadline: %v, want ErrLockTimeout", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := tree.Lock(ended, LockBead, "a"); !errors.Is(err, ErrLockTimeout) || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v, want ErrLockTimeout and Canceled", err)
	}
	l.Unlock()
	l.Unlock()
	if tree.IsLocked(LockBead, "a") {
		t.Error("still held after Unlock")
	}
	again, err := tree.Lock(t.Context(), LockBead, "a", "state/work", "state/none")
	must(t, err)
	again.Unlock()
}

// Emptying run/ while a lock is held must not let two holders in for one file.
// A lock file that is taken away from under its holder protects nothing, and
// the holder can know.
func TestLostLock(t *testing.T) {
	tree := newTree(t)
	l, err := tree.TryLock(LockBead, "a")
	must(t, err)
	defer l.Unlock()
	if l.Lost(tree) {
		t.Error("lost, though nobody touched it")
	}
	must(t, os.RemoveAll(tree.Abs(RunDir)))
	if !l.Lost(tree) {
		t.Error("its file is gone")
	}
	other, err := tree.TryLock(LockBead, "a")
	must(t, err)
	defer other.Unlock()
	if !l.Lost(tree) {
		t.Error("another file has its name")
	}
}

// A lock ends with its holder, also when a child of the holder lives on.
func TestLockIsNotInherited(t *testing.T) {
	tree := newTree(t)
	l, err := tree.TryLock(LockBead, "a")
	must(t, err)
	child := exec.Command("sleep", "60")
	must(t, child.Start())
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	must(t, l.f.Close()) // as the end of the process does
	if tree.IsLocked(LockBead, "a") {
		t.Error("the child holds it")
	}
}

// TestUnlockOfAForkedProcess: between fork and exec a child has every descriptor.
func TestUnlockOfAForkedProcess(t *testing.T) {
	tree := newTree(t)
	l, err := tree.TryLock(LockBead, "a")
	must(t, err)
	forked, err := unix.Dup(int(l.f.Fd()))
	must(t, err)
	defer unix.Close(forked)
	l.Unlock()
	if tree.IsLocked(LockBead, "a") {
		t.Error("the child holds it")
	}
}

func TestLockOnADeletedFileIsTakenAnew(t *testing.T) {
	tree := newTree(t)
	old, err := tree.TryLock(LockBead, "a")
	must(t, err)
	must(t, os.RemoveAll(tree.Abs(RunDir)))
	fresh, err := tree.TryLock(LockBead, "a")
	must(t, err)
	defer fresh.Unlock()
	old.Unlock()
	if !tree.IsLocked(LockBead, "a") {
		t.Error("the new lock was lost with the old one")
	}
}

func TestWatcherSignals(t *testing.T) {
	tree := newTree(t)
	w, err := NewWatcher(tree)
	if err != nil {
		t.Skip(err)
	}
	defer w.Close()
	work, err := w.Subscribe("state/work")
	must(t, err)
	both, err := w.Subscribe("state/work", "state/hooks")
	must(t, err)
	must(t, tree.WriteNew("state/work/a.json", []byte("{}")))
	await(t, work, "work after WriteNew")
	await(t, both, "both after WriteNew")
	must(t, tree.Replace("state/hooks/a.json", []byte("{}")))
	await(t, both, "both after Replace")
	must(t, tree.MkdirAll("state/quarantine"))
	must(t, tree.Move("state/work/a.json", "state/quarantine/a.json"))
	await(t, work, "work after Move")
}

func await(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(5 * time.Second):
		t.Fatalf("no signal: %s", what)
	}
}

func TestQuarantineOfAnObject(t *testing.T) {
	tree := newTree(t)
	s := sampleStore(tree)
	must(t, s.Create("whole", sample{Name: "whole"}))
	must(t, os.WriteFile(tree.Abs(s.Path("torn")), []byte("{"), 0o644))
	for _, name := range []string{"whole", "torn", "gone"} {
		must(t, s.Quarantine(t.Context(), name, At(time.Now())))
	}
	if _, err := s.Get("whole"); err != nil {
		t.Errorf("a whole object: %v", err)
	}
	kept, err := tree.Quarantined()
	if err != nil || len(kept) != 1 || kept[0].Path != string(s.Path("torn")) {
		t.Errorf("kept %+v, %v", kept, err)
	}
	if _, err := s.Get("torn"); !errors.Is(err, ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}
