package mayor

import (
	"fmt"
	"testing"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// lying is a rig of 10 busy polecats in which n beads lie around: a half landed,
// a half open and not to be begun before another one has landed.
func lying(n int) Facts {
	l := backlog.New()
	for i := range n {
		b := bead.Bead{ID: beadID(i), Status: bead.Merged, CreatedAt: noon, Gen: 1}
		if i%2 == 1 {
			b.Status, b.BlockedBy = bead.Open, []state.BeadID{"gt-out0"}
		}
		l.Put(b)
	}
	f := Facts{Now: noon, Backlog: l, Policy: Policy{MaxParallel: 10, BatchThreshold: 3, MaxAttempts: 3, MaxConflicts: 10, MaxRestarts: 3}}
	for i := range 10 {
		b := bead.Bead{ID: state.BeadID(fmt.Sprintf("gt-out%d", i)), Status: bead.InProgress, Assignee: polecatID(i), AssignmentID: assignmentOf(i), CreatedAt: noon, Gen: 3}
		l.Put(b)
		f.Polecats = append(f.Polecats, Polecat{ID: b.Assignee, Live: true, Hook: hook.Hook{AgentID: b.Assignee, Status: hook.Active,
			WorkItem: &hook.WorkItem{BeadID: b.ID, AssignmentID: b.AssignmentID}}})
	}
	return f
}

// BenchmarkDecideIdle is a decision with nothing to do: the same at every size.
func BenchmarkDecideIdle(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		f := lying(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if actions := decided(Monitoring, f); len(actions) > 0 {
					b.Fatal(actions)
				}
			}
		})
	}
}

// BenchmarkDecideChange is one bead that is added, slung and taken back.
func BenchmarkDecideChange(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		f := lying(n)
		f.Policy.MaxParallel = 11
		f.Polecats = append(f.Polecats, Polecat{ID: "polecat-free", Live: true, Hook: hook.Hook{Status: hook.Empty}})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Backlog.Put(bead.Bead{ID: "gt-new", Status: bead.Open, CreatedAt: noon, Gen: 1})
				if actions := decided(Monitoring, f); len(actions) != 1 {
					b.Fatal(actions)
				}
				f.Backlog.Put(bead.Bead{ID: "gt-new", Status: bead.Blocked, CreatedAt: noon, Gen: 2})
			}
		})
	}
}
