package bead

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of beads.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"work/*.json"}, CheckChange: audit.Typed(check, CheckChange), CheckNew: true}
}

// CheckChange returns an error unless after can be reached from before by legal steps. A
// nil before means that the bead is new.
func CheckChange(before, after *Bead) error {
	appears := before == nil
	if appears {
		before = &Bead{ID: after.ID, CreatedAt: after.CreatedAt, CreatedBy: after.CreatedBy, FoundIn: after.FoundIn, Status: Open, Gen: 1}
		before.copyText(after)
		if after.Gen < 1 {
			return fmt.Errorf("gen %d is below that of a new bead", after.Gen)
		}
	}
	if err := audit.Fixed("id", before.ID, after.ID, "created_at", before.CreatedAt.String(), after.CreatedAt.String(),
		"created_by", before.CreatedBy, after.CreatedBy, "found_in", before.FoundIn, after.FoundIn); err != nil {
		return err
	}
	switch {
	case after.Gen < before.Gen:
		return fmt.Errorf("gen fell from %d to %d", before.Gen, after.Gen)
	case after.Gen == before.Gen && !appears:
		return fmt.Errorf("changed without a new gen (%d)", after.Gen)
	case after.Assignments < before.Assignments:
		return fmt.Errorf("assignments fell from %d to %d", before.Assignments, after.Assignments)
	case after.AssignmentID != "" && after.AssignmentID == before.AssignmentID:
		if err := audit.Fixed("assignee", before.Assignee, after.Assignee, "branch", before.Branch, after.Branch,
			"assignments", before.Assignments, after.Assignments); err != nil {
			return fmt.Errorf("under assignment %s %w", after.AssignmentID, err)
		}
	}
	return reachable(before, after)
}

// place is the part of a bead that decides which steps are legal.
type place struct {
	status Status
	// holder says which assignment the bead has: that of the earlier version (old), a
	// later one (fresh), or none.
	holder holder
	// slung counts the assignments since the earlier version.
	slung int
	// edited is true once a person may have edited the text.
	edited bool
}

type holder string

const (
	nobody holder = ""
	old    holder = "old"
	fresh  holder = "new"
)

// reachable searches breadth first over the legal steps, with as many steps as gen has
// counted. A step need not change the status, so fewer steps are enough too.
func reachable(before, after *Bead) error {
	steps, slung := after.Gen-before.Gen, after.Assignments-before.Assignments
	// Each assignment beyond the third takes two steps: hooked, and open again.
	if around := slung - 3; around > 0 {
		steps -= int64(2 * around)
		slung = 3
	}
	goal := place{after.Status, nobody, slung, !before.sameText(after)}
	switch after.AssignmentID {
	case "":
	case before.AssignmentID:
		goal.holder = old
	default:
		goal.holder = fresh
	}
	start := place{status: before.Status}
	if before.AssignmentID != "" {
		start.holder = old
	}
	reached := []place{start}
	seen := map[place]bool{start: true}
	for range max(0, steps) {
		var next []place
		for _, p := range reached {
			for _, q := range p.next(after.finishedElsewhere(before.Gen)) {
				if q.slung <= slung && !seen[q] {
					seen[q] = true
					next = append(next, q)
				}
			}
		}
		if reached = next; len(reached) == 0 || seen[goal] {
			break
		}
	}
	if seen[goal] || !goal.edited && seen[place{goal.status, goal.holder, goal.slung, true}] {
		return nil
	}
	return fmt.Errorf("%s can't become %s in %d steps (gen %d to %d)%s", before.standing(), after.standing(),
		after.Gen-before.Gen, before.Gen, after.Gen, map[bool]string{true: " with its text changed"}[goal.edited])
}

// finishedElsewhere reports whether, according to its metadata, an import closed the bead after a gen.
func (b *Bead) finishedElsewhere(since int64) bool {
	var source struct {
		As  Status `json:"as"`
		Gen int64  `json:"gen"`
	}
	return b.Imported() && json.Unmarshal([]byte(b.Metadata[MetaSource]), &source) == nil &&
		source.As == Closed && source.Gen > since && source.Gen <= b.Gen
}

// next returns the places that one legal step leads to. elsewhere allows CloseImported.
func (p place) next(elsewhere bool) []place {
	var all []place
	if elsewhere && slices.Contains(editable(), p.status) {
		q := p
		q.status = Closed
		all = append(all, q)
	}
	for _, to := range p.status.next() {
		if to == Done && p.holder == nobody {
			continue // there is no submitted work to retry
		}
		q := p
		q.status = to
		switch to {
		case Open:
			q.holder = nobody
		case Hooked:
			q.holder, q.slung = fresh, p.slung+1
		default:
		}
		all = append(all, q)
	}
	if slices.Contains(editable(), p.status) {
		p.edited = true
		all = append(all, p)
	}
	return all
}

func (b *Bead) standing() string {
	s := string(b.Status)
	if b.AssignmentID != "" {
		s += " under " + string(b.AssignmentID)
	}
	return fmt.Sprintf("%s (%d assignments)", s, b.Assignments)
}

// sameText reports whether all fields that only an edit may change are equal.
func (b *Bead) sameText(o *Bead) bool {
	return b.Title == o.Title && b.Description == o.Description && b.Acceptance == o.Acceptance && b.Priority == o.Priority &&
		b.Type == o.Type && b.Worker == o.Worker && b.AllowEmpty == o.AllowEmpty &&
		slices.Equal(b.Labels, o.Labels) && slices.Equal(b.BlockedBy, o.BlockedBy)
}

func (b *Bead) copyText(o *Bead) {
	b.Title, b.Description, b.Acceptance, b.Priority, b.Type, b.Worker = o.Title, o.Description, o.Acceptance, o.Priority, o.Type, o.Worker
	b.AllowEmpty, b.Labels, b.BlockedBy = o.AllowEmpty, o.Labels, o.BlockedBy
}

// CheckUnreferenced is the check of a CheckRemoval for an object that beads may refer to,
// such as a convoy. It returns an error if, according to refers, one of ids still does.
func CheckUnreferenced(ids []state.BeadID, later audit.Snapshot, refers func(b *Bead) bool) error {
	for _, id := range ids {
		f, err := later("work/" + string(id) + ".json")
		if err != nil {
			return err
		}
		var b Bead
		if f.Exists() && state.Decode("work/"+string(id), f.Data, &b) == nil && refers(&b) {
			return fmt.Errorf("it was removed, but bead %s refers to it", id)
		}
	}
	return nil
}
