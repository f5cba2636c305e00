package carry

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/disk"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// lossy is a disk on which one folder can't be synced.
type lossy struct {
	disk.OS
	folder string
}

// SyncDir implements disk.Disk.
func (d lossy) SyncDir(path string) error {
	if path == d.folder {
		return unix.EIO
	}
	return d.OS.SyncDir(path)
}

// lossyRig is a rig on such a disk. What its stores write is not meant, but what was found there.
func lossyRig(t *testing.T, r *rig.Rig, dir state.Path) *rig.Rig {
	t.Helper()
	tree, err := state.OpenOn(lossy{folder: r.Tree.Abs(dir)}, r.Tree.Root())
	if err != nil {
		t.Fatal(err)
	}
	another, err := rig.Open(t.Context(), r.Dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	another.Tree = tree
	return another
}

// What another process has left may be visible and not durable: nobody goes on from it, or is told of it, before it is.
func TestWhatIsFoundIsMadeDurable(t *testing.T) {
	for _, dir := range []state.Path{bead.Dir, hook.Dir} {
		y := newYard(t, "")
		id, half := y.add(), y.add()
		_, err := Sling(t.Context(), y.Rig, id, alpha, "mayor")
		y.must(err)
		if _, err := Sling(t.Context(), lossyRig(t, y.Rig, dir), id, alpha, "mayor"); !errors.Is(err, unix.EIO) {
			t.Errorf("slung already, although %s can't be synced: %v", dir, err)
		}
		_, err = (&carrier{Rig: y.Rig, step: stopAt(1, new([]string))}).sling(t.Context(), half, bravo, "mayor")
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if _, err := HealDispatch(t.Context(), lossyRig(t, y.Rig, dir), half); !errors.Is(err, unix.EIO) {
			t.Errorf("healed, although %s can't be synced: %v", dir, err)
		}
		if rec, err := y.Dispatch.Get(string(half)); err != nil || rec.Stage == dispatch.Confirmed || y.bead(half).Status != bead.Open {
			t.Errorf("it went on to %+v, %v; the bead is %s", rec, err, y.bead(half).Status)
		}
	}
	for _, dir := range []state.Path{convoy.Dir, bead.Dir} {
		y := newYard(t, "")
		id := y.add()
		_, err := MakeConvoy(t.Context(), y.Rig, "human", "c", []state.BeadID{id})
		y.must(err)
		if c, err := MakeConvoy(t.Context(), lossyRig(t, y.Rig, dir), "human", "c", []state.BeadID{id}); !errors.Is(err, unix.EIO) {
			t.Errorf("convoy %s is there already, although %s can't be synced: %v", c.ID, dir, err)
		}
	}
	for _, dir := range []state.Path{retire.Dir, bead.Dir, mergequeue.Dir, hook.Dir} {
		a := newAttempt(t, nil)
		a.write("one.txt", "one\n")
		rec := a.publish(retire.Done, "")
		if dir != retire.Dir { // what they hold is asked for once something was done
			_, err := Finish(t.Context(), RetireDeps{Rig: a.rig, Step: func(string) (err error) {
				if rec, err = a.rig.Retire.Get(string(a.as)); err == nil && rec.Stage != retire.Published {
					err = errKilled
				}
				return err
			}}, rec)
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
		}
		after, err := Finish(t.Context(), RetireDeps{Rig: lossyRig(t, a.rig, dir)}, rec)
		if !errors.Is(err, unix.EIO) || after.Stage != rec.Stage {
			t.Errorf("finished to %s, although %s can't be synced: %v", after.Stage, dir, err)
		}
	}
}

// The commits of a worktree whose folder is gone are saved for good, or not at all.
func TestBranchIsSavedForGood(t *testing.T) {
	a := newAttempt(t, nil)
	a.write("one.txt", "one\n")
	a.git(a.worktree(), "add", "-A")
	a.git(a.worktree(), "commit", "-qm", "one")
	head := a.git(a.worktree(), "rev-parse", "HEAD")
	a.must(os.RemoveAll(a.worktree()))
	ref, err := SaveWork(t.Context(), a.rig, alpha, "m")
	if err != nil || ref == "" || a.git(a.dir, "rev-parse", ref) != head {
		t.Errorf("saved on %q, %v", ref, err)
	}
}
