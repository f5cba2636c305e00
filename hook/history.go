package hook

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of hooks.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"hooks/*.json"}, CheckChange: audit.Typed(check, CheckChange), CheckNew: true,
		CheckRepair: audit.Typed(check, rebuilt)}
}

// rebuilt checks a hook that was rebuilt from the beads. Only its gen is checked, so that
// the compare-and-swap of an earlier reader still fails.
func rebuilt(before, after *Hook) error {
	if before != nil && after.Gen < before.Gen {
		return fmt.Errorf("rebuilt with gen %d, below the %d it had", after.Gen, before.Gen)
	}
	return nil
}

// CheckChange returns an error unless after can be reached from before by legal steps. A
// nil before means that the hook is new.
func CheckChange(before, after *Hook) error {
	if before == nil {
		before = &Hook{AgentID: after.AgentID, Status: Empty}
		if after.Gen == 0 && after.Status == Empty {
			return nil
		}
	}
	if before.Bare() || after.Bare() {
		return nil // a step of another program, or TakeBare
	}
	switch {
	case after.Gen < before.Gen:
		return fmt.Errorf("gen fell from %d to %d", before.Gen, after.Gen)
	case after.Gen == before.Gen:
		return fmt.Errorf("changed without a new gen (%d)", after.Gen)
	}
	goal := place{after.Status, false}
	if same := after.Assignment() == before.Assignment(); same && after.Assignment() != "" {
		goal.old = true
		b, a := before.WorkItem, after.WorkItem
		if err := audit.Fixed("bead_id", b.BeadID, a.BeadID, "title", b.Title, a.Title,
			"assigned_at", b.AssignedAt.String(), a.AssignedAt.String()); err != nil {
			return fmt.Errorf("under assignment %s %w", a.AssignmentID, err)
		}
	}
	if after.Status == Pending && after.WorkItem.Session != "" {
		return fmt.Errorf("pending, but with session %s", after.WorkItem.Session)
	}
	if !reachable(place{before.Status, before.Assignment() != ""}, goal, after.Gen-before.Gen) {
		return fmt.Errorf("%s can't become %s in %d transitions (gen %d to %d)", before.standing(), after.standing(),
			after.Gen-before.Gen, before.Gen, after.Gen)
	}
	return nil
}

func (h *Hook) standing() string {
	if h.Assignment() == "" {
		return string(h.Status)
	}
	return fmt.Sprintf("%s under %s", h.Status, h.Assignment())
}

// place is the part of a hook that decides which transitions are legal.
type place struct {
	status Status
	// old is true while the hook has the assignment of the earlier version.
	old bool
}

// next returns the places that one transition leads to. A touch and a new session leave
// an active hook active.
func (p place) next() []place {
	switch p.status {
	case Empty:
		return []place{{Pending, false}}
	case Pending:
		return []place{{Active, p.old}, {Empty, false}}
	case Active:
		return []place{{Active, p.old}, {Completed, p.old}, {Empty, false}}
	case Completed:
		return []place{{Empty, false}}
	}
	return nil
}

// settles is the number of transitions after which one more does not change which places
// can be reached, because an active hook may be touched any number of times.
const settles = 12

// reachable reports whether exactly n transitions can lead from one place to another.
func reachable(from, to place, n int64) bool {
	at := map[place]bool{from: true}
	for range min(n, settles) {
		next := map[place]bool{}
		for p := range at {
			for _, q := range p.next() {
				next[q] = true
			}
		}
		at = next
	}
	return at[to]
}
