package rig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
)

// TestPrepareClearsTheWay: a file in place of any folder of the rig is in the
// quarantine after a start, and the folder can be used.
func TestPrepareClearsTheWay(t *testing.T) {
	r := initRig(t, newRepo(t), 2)
	ways := append([]state.Path{"state/mail/polecat-alpha", "state/mail/polecat-alpha/archive", "state/nudge/polecat-alpha",
		"state/nudge/polecat-alpha/from", "state/handoff/polecat-alpha", "run/locks/record"}, folders()...)
	for _, p := range ways {
		if p == "state/hooks" {
			continue // a hook that is gone is for the doctor to rebuild
		}
		at := r.Tree.Abs(p)
		must(t, os.RemoveAll(at))
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte("of "+p), 0o644))
		must(t, r.Prepare(t.Context(), r.Def))
		must(t, r.Tree.MkdirAll(p))
		kept, err := r.Tree.Quarantined()
		must(t, err)
		if len(kept) == 0 {
			t.Fatalf("%s: nothing is in the quarantine", p)
		}
		if last := kept[len(kept)-1]; read(t, r.Tree.Abs(state.QuarantineDir.Join(last.File))) != "of "+string(p) {
			t.Errorf("%s: the quarantine ends with %+v", p, last)
		}
	}
}

// TestManyClearOneWay: no folder that the first has made is taken away by another
// who saw a file there.
func TestManyClearOneWay(t *testing.T) {
	r := initRig(t, newRepo(t), 2)
	for range 20 {
		p := state.Path("run/locks")
		must(t, os.RemoveAll(r.Tree.Abs(p)))
		must(t, os.WriteFile(r.Tree.Abs(p), []byte("x"), 0o644))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := errors.Join(r.ClearWay(t.Context(), p), r.Tree.MkdirAll(p.Join("bead"))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := os.Lstat(r.Tree.Abs(p.Join("bead"))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinksStayInTheWay: a link was made by somebody on purpose.
func TestLinksStayInTheWay(t *testing.T) {
	r := initRig(t, newRepo(t), 2)
	must(t, os.Symlink(t.TempDir(), r.Tree.Abs("state/handoff")))
	if found, err := r.InTheWay(); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestAWayThatIsClear: a folder is not moved away, also when it was a file a moment
// ago, and nobody clears a way while another does.
func TestAWayThatIsClear(t *testing.T) {
	r := initRig(t, newRepo(t), 2)
	p := state.Path("state/agents")
	must(t, r.ClearWay(t.Context(), p))
	must(t, r.ClearWay(t.Context(), "state/none"))
	if found, err := r.Tree.List(p); err != nil || len(found) == 0 {
		t.Errorf("%v, %v", found, err)
	}
	root, err := os.Open(r.Tree.Root())
	must(t, err)
	defer root.Close()
	must(t, unix.Flock(int(root.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.ClearWay(ctx, p); !errors.Is(err, state.ErrLockTimeout) {
		t.Errorf("while another clears: %v", err)
	}
}

// TestNoAgentWithoutItsHook: a registered agent without a hook counts as corrupt,
// so the hook comes first.
func TestNoAgentWithoutItsHook(t *testing.T) {
	r := initRig(t, newRepo(t), 2)
	must(t, os.Remove(r.Tree.Abs(r.Agents.Path("polecat-bravo"))))
	must(t, os.Rename(r.Tree.Abs("state/hooks"), filepath.Join(t.TempDir(), "elsewhere")))
	must(t, os.Symlink(t.TempDir(), r.Tree.Abs("state/hooks")))
	if err := r.RegisterNamed(t.Context(), "polecat-bravo"); err == nil {
		t.Error("a hook was made through a link")
	}
	if _, err := r.Agents.Get("polecat-bravo"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("registered without a hook: %v", err)
	}
}
