package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// A check that can't look stops no other: what comes after git is still told of.
func TestDoctorGoesOn(t *testing.T) {
	f := newFixture(t)
	f.Plant("state/mail/mayor/2026-03-05T11-30-00Z-witness.json", "{")
	f.doctor(true)
	must(t, os.Remove(filepath.Join(f.Dir, ".git", "HEAD")))
	found, err := examine(t.Context(), f.Rig, false, 0)
	if err == nil || !strings.Contains(rules(found), "quarantine:warning") {
		t.Errorf("found %q, %v; want the quarantine and an error", rules(found), err)
	}
}

// A check that is kept from going on by what lies in the tree tells of it.
func TestCheckStopsAtACorruption(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		err   error
		found int
		fails bool
	}{
		{nil, 1, false},
		{&state.Corruption{Path: "state/x", Reason: "odd"}, 2, false},
		{os.ErrPermission, 1, true},
	} {
		g := group{func(context.Context, *rig.Rig) ([]finding, error) {
			return []finding{{Finding: Finding{Rule: "r", Path: "p"}}}, c.err
		}, []Rule{{ID: "r"}}}
		found, err := g.run(t.Context(), f.Rig)
		if len(found) != c.found || (err != nil) != c.fails {
			t.Errorf("%v: %d found, %v", c.err, len(found), err)
		}
	}
	g := group{func(context.Context, *rig.Rig) ([]finding, error) {
		return []finding{{Finding: Finding{Rule: "r"}}}, nil
	}, nil}
	if _, err := g.run(t.Context(), f.Rig); err == nil {
		t.Error("a check may report a rule that is not its own")
	}
	if err := once([]error{os.ErrPermission, os.ErrPermission}); err.Error() != os.ErrPermission.Error() {
		t.Errorf("said twice: %v", err)
	}
}

// A repair that the disk failed may be gone with the next power cut: that nothing
// is seen of the damage any more does not make it good, only another repair does.
func TestRepairInDoubt(t *testing.T) {
	cured := func(path string, err error) finding {
		f := finding{Finding: Finding{Rule: "r", Path: path, Severity: Error}, repair: func(context.Context) error { return err }}
		f.runRepair(t.Context())
		return f
	}
	failed := &os.PathError{Op: "fsync", Path: "p", Err: unix.EIO}
	var d diagnosis
	if !d.add([]finding{cured("gone", failed), cured("again", failed), cured("refused", os.ErrPermission), cured("fine", nil)}) {
		t.Error("a repair is no progress")
	}
	if d.add([]finding{cured("other", os.ErrPermission)}) {
		t.Error("progress without a repair")
	}
	d.add([]finding{cured("again", nil)})
	var text []string
	for _, f := range d.findings() {
		text = append(text, fmt.Sprint(f.Path, " ", f.Fixed))
	}
	if got := strings.Join(text, ", "); got != "again true, fine true, gone false" {
		t.Errorf("got %s", got)
	}
}

// A request is made again just as the attempt's end says.
func TestDoctorResubmits(t *testing.T) {
	f := newFixture(t)
	b := f.PutBead("gt-aaaaa", bead.Done, nil)
	must(t, f.Retire.Put(string(b.AssignmentID), retire.Record{AssignmentID: b.AssignmentID, AgentID: alpha, BeadID: b.ID,
		Outcome: retire.Done, Stage: retire.Released, Branch: b.Branch, Head: f.Tip(), Base: f.Tip(), CreatedAt: f.At(), UpdatedAt: f.At()}))
	f.doctor(true)
	all, _, err := f.Queue.Queue()
	must(t, err)
	if len(all) != 1 || all[0].AssignmentID != b.AssignmentID || all[0].Head != f.Tip() || all[0].Base != f.Tip() ||
		all[0].SourceBranch != b.Branch || all[0].TargetBranch != "main" || all[0].AgentID != alpha || all[0].Status != mergequeue.Pending {
		t.Errorf("submitted %+v", all)
	}
}
