package state

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/disk"
)

func moveKinds() map[string]disk.Features {
	return map[string]disk.Features{"journal": {Journal: true}, "no journal": {}}
}

// A move that a crash interrupted left both names, of which the new one may not be durable. The old one stays until it is.
func TestAnInterruptedMoveSyncsBeforeItRemoves(t *testing.T) {
	for name, features := range moveKinds() {
		t.Run(name, func(t *testing.T) {
			d := &featured{features: features}
			tree := treeOn(t, d)
			plant(t, tree, "state/work/a", "a")
			plant(t, tree, "state/done/a", "a")
			d.fail = func(op, path string) error {
				if op == "sync-dir" && path == tree.Abs("state/done") {
					return unix.EIO
				}
				return nil
			}
			if err := tree.Move("state/work/a", "state/done/a"); !errors.Is(err, unix.EIO) {
				t.Errorf("%v, want %v", err, unix.EIO)
			}
			d.fail = nil
			if data, err := tree.Read("state/work/a", MaxFile); err != nil || string(data) != "a" {
				t.Errorf("the old name: %q, %v", data, err)
			}
			must(t, tree.Move("state/work/a", "state/done/a"))
			if there, err := tree.Exists("state/work/a"); there || err != nil {
				t.Errorf("the old name stays: %v", err)
			}
		})
	}
}

func TestMoveAll(t *testing.T) {
	for name, features := range moveKinds() {
		t.Run(name, func(t *testing.T) {
			tree := treeOn(t, &featured{features: features})
			for _, f := range []string{"a", "b", "other", "half"} {
				plant(t, tree, Path("state/work/"+f), f)
			}
			plant(t, tree, "state/done/other", "somebody else's")
			plant(t, tree, "state/done/half", "half")
			var moves []FileMove
			for _, f := range []string{"a", "missing", "other", "half", "b"} {
				moves = append(moves, FileMove{From: Path("state/work/" + f), To: Path("state/done/" + f)})
			}
			errs := tree.MoveAll(moves)
			for i, want := range []error{nil, ErrNotFound, ErrExists, nil, nil} {
				if !errors.Is(errs[i], want) {
					t.Errorf("%s: %v, want %v", moves[i].From, errs[i], want)
				}
			}
			for path, want := range map[Path]string{"state/done/a": "a", "state/done/b": "b", "state/done/half": "half",
				"state/done/other": "somebody else's", "state/work/other": "other"} {
				if data, err := tree.Read(path, MaxFile); err != nil || string(data) != want {
					t.Errorf("%s: %q, %v", path, data, err)
				}
			}
			if entries, _ := tree.List("state/work"); len(entries) != 1 {
				t.Errorf("work/ holds %v, want the one that could not be moved", entries)
			}
		})
	}
}

func TestAFailedMoveLosesNothing(t *testing.T) {
	failure := errors.New("input/output error")
	for name, features := range moveKinds() {
		for _, folder := range []string{"/done", "/work"} {
			t.Run(name+folder, func(t *testing.T) {
				d := &featured{features: features}
				tree := treeOn(t, d)
				plant(t, tree, "state/work/a", "a")
				must(t, tree.MkdirAll("state/done"))
				d.fail = func(op, path string) error {
					if op == "sync-dir" && strings.HasSuffix(path, folder) {
						return failure
					}
					return nil
				}
				if err := tree.Move("state/work/a", "state/done/a"); !errors.Is(err, failure) {
					t.Fatalf("Move: %v", err)
				}
				d.fail = nil
				if folder == "/done" {
					if data, err := tree.Read("state/work/a", MaxFile); err != nil || string(data) != "a" {
						t.Errorf("not put back: %q, %v", data, err)
					}
					must(t, tree.Move("state/work/a", "state/done/a"))
				}
				if data, err := tree.Read("state/done/a", MaxFile); err != nil || string(data) != "a" {
					t.Errorf("%q, %v", data, err)
				}
			})
		}
	}
}

func TestOneOfManyGetsWhatIsMovedBelowRun(t *testing.T) {
	tree := treeOn(t, &featured{})
	plant(t, tree, "run/pending/a", "a")
	const takers = 8
	errs := make([]error, takers)
	var wg sync.WaitGroup
	for i := range takers {
		wg.Go(func() { errs[i] = tree.Move("run/pending/a", Path(fmt.Sprintf("run/claimed/%d", i))) })
	}
	wg.Wait()
	got := 0
	for _, err := range errs {
		if err == nil {
			got++
		} else if !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	}
	if entries, _ := tree.List("run/claimed"); got != 1 || len(entries) != 1 {
		t.Errorf("%d got it, %d files", got, len(entries))
	}
}

func TestRemoveAllIsForRunAlone(t *testing.T) {
	tree := treeOn(t, &featured{})
	plant(t, tree, "run/clients/a/b/c.json", "c")
	plant(t, tree, "state/work/a.json", "a")
	must(t, os.Symlink(tree.Abs("state/work"), tree.Abs("run/clients/a/link")))
	must(t, tree.RemoveAll("run/clients/a"))
	must(t, tree.RemoveAll("run/clients/missing"))
	for _, dir := range []Path{"state/work", "run", "run/../state/work"} {
		if err := tree.RemoveAll(dir); err == nil {
			t.Errorf("%s was removed", dir)
		}
	}
	if ok, err := tree.Exists("run/clients/a"); ok || err != nil {
		t.Errorf("still there: %t, %v", ok, err)
	}
	if data, err := tree.Read("state/work/a.json", MaxFile); err != nil || string(data) != "a" {
		t.Errorf("behind the link: %q, %v", data, err)
	}
}
