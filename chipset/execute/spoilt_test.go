package execute

import (
	"errors"
	"os"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// spoilt puts a file in the place of a folder of the state while do runs.
func spoilt(t testing.TB, r *rig.Rig, dir state.Path, do func()) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := r.Tree.Abs(dir)
	must(os.MkdirAll(path, 0o700))
	must(os.Rename(path, path+".aside"))
	must(os.WriteFile(path, nil, 0o600))
	do()
	must(os.Remove(path))
	must(os.Rename(path+".aside", path))
}

func (k *kennel) spoilt(dir state.Path, do func()) {
	k.t.Helper()
	spoilt(k.t, k.rig, dir, do)
}

// What a polecat can't read it does not decide without.
func TestPolecatDecidesOnAllOrNothing(t *testing.T) {
	k := newKennel(t, "")
	k.sling("true")
	for _, dir := range []state.Path{hook.Dir, retire.Dir, pause.Dir, k.rig.Mailbox(alpha).Dir()} {
		k.spoilt(dir, func() {
			if f, err := k.p.fetch(t.Context()); err == nil && f.HookProblem == "" {
				t.Errorf("it decides without %s", dir)
			}
		})
	}
	if _, err := k.p.fetch(t.Context()); err != nil {
		t.Error(err)
	}
}

// An attempt that could not be started ends, or is an error: otherwise it would be on the hook for ever.
func TestPolecatThatCannotEndWhatCannotStart(t *testing.T) {
	k := newKennel(t, "")
	k.sling("true")
	item := *k.hook().WorkItem
	_, err := k.rig.Hooks.Activate(t.Context(), alpha, item.AssignmentID, k.p.Session, k.rig.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	item = *k.hook().WorkItem
	why := &startFailure{"worker", errors.New("it is broken"), fault.BadWorker}
	k.spoilt(retire.Dir, func() {
		if err := k.p.publishStartFailure(t.Context(), item, why); err == nil {
			t.Error("it is said to have ended")
		}
	})
	if err := k.p.publishStartFailure(t.Context(), item, why); err != nil || k.record(item.AssignmentID).Outcome != retire.Fail {
		t.Error(err)
	}
}

// Every change of a request that can't be made is an error.
func TestRefineryChangesThatFail(t *testing.T) {
	m := newMill(t, `test: "true"`)
	const none state.MergeID = "mr-gt-none"
	for name, err := range map[string]error{
		"hold":            m.r.hold(m.ctx, refinery.Hold{Request: none}),
		"mark conflicted": m.r.markConflicted(m.ctx, refinery.MarkConflicted{Request: none}),
		"retire":          m.r.retire(m.ctx, none),
		"end":             m.r.end(m.ctx, flow.Ended{MR: none}),
		"merged":          m.r.merged(m.ctx, flow.MarkMerged{MR: none}),
		"only":            m.r.only(m.ctx, flow.Waits{SetWaiting: refinery.SetWaiting{Request: none}}),
	} {
		if !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
