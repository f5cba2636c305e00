package bd

import (
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// Export makes issues from beads, in order.
func Export(beads []bead.Bead) ([]Issue, error) {
	names := make(map[state.BeadID]string)
	for i := range beads {
		if name := beads[i].Metadata[bead.MetaImported]; name != "" {
			names[beads[i].ID] = name
		}
	}
	issues := make([]Issue, len(beads))
	for i := range beads {
		var err error
		if issues[i], err = export(&beads[i], names); err != nil {
			return nil, err
		}
	}
	return issues, nil
}

// export makes an issue from a bead. names are the issues' IDs of the beads with
// another ID.
func export(b *bead.Bead, names map[state.BeadID]string) (Issue, error) {
	s, imported := sourceOf(b)
	i := s.Issue
	i.ID = nameOf(b.ID, names)
	i.Title, i.Acceptance, i.Labels, i.Type = b.Title, b.Acceptance, b.Labels, b.Type
	if own, found := strings.CutSuffix(b.Description, i.appendix()); found {
		i.Description = own
	} else {
		i.Description, i.Design, i.Notes = b.Description, "", ""
	}
	if i.Type == "" && !imported {
		i.Type = "task"
	}
	if !imported || priorityOf(i.Priority) != b.Priority {
		i.Priority = b.Priority.Rank()
	}
	if !imported {
		i.CreatedBy = string(b.CreatedBy)
	}
	if i.CreatedAt == nil && !imported {
		i.CreatedAt = &b.CreatedAt
	}
	if !imported || b.Gen != s.Gen {
		i.UpdatedAt = &b.UpdatedAt
	}
	o := exportStatus(&i, b, imported && b.Status == s.As)
	o.Worker = b.Worker
	if !imported || b.AllowEmpty != s.AllowEmpty || i.ours().AllowEmpty {
		o.AllowEmpty = b.AllowEmpty
	}
	i.Dependencies = exportDependencies(&i, b, s.Implied, names)
	return i, i.setOurs(o)
}

func nameOf(id state.BeadID, names map[state.BeadID]string) string {
	if name := names[id]; name != "" {
		return name
	}
	return string(id)
}

// exportStatus sets the status and the fields that depend on it, and returns what bd has no
// field for. asImported means that the bead still has the status that the import gave it.
func exportStatus(i *Issue, b *bead.Bead, asImported bool) ours {
	if asImported {
		return ours{Status: i.ours().Status, Reason: i.ours().Reason}
	}
	var o ours
	i.ClosedAt, i.CloseReason = nil, ""
	switch b.Status {
	case bead.Open:
		i.Status, i.Assignee = statusOpen, ""
	case bead.Failed:
		i.Status, o = statusOpen, ours{Status: b.Status, Reason: b.CloseReason}
	case bead.Hooked, bead.InProgress, bead.Done:
		i.Status, i.Assignee, o.Status = statusInProgress, string(b.Assignee), b.Status
	case bead.Blocked:
		i.Status, o = statusBlocked, ours{Status: b.Status, Reason: b.CloseReason}
	case bead.Merged, bead.Closed, bead.Cancelled:
		i.Status, i.ClosedAt, i.CloseReason = statusClosed, b.ClosedAt, b.CloseReason
		if i.ClosedAt == nil {
			i.ClosedAt = &b.UpdatedAt
		}
		if b.Status != bead.Closed {
			o.Status = b.Status
		}
	}
	return o
}

// exportDependencies keeps the issue's dependencies that hold nothing back, and of the
// others those that the bead still has.
func exportDependencies(i *Issue, b *bead.Bead, implied []state.BeadID, names map[state.BeadID]string) []Dependency {
	wanted := map[string]bool{}
	for _, id := range b.BlockedBy {
		if !slices.Contains(implied, id) {
			wanted[nameOf(id, names)] = true
		}
	}
	var all []Dependency
	for _, d := range i.Dependencies {
		if d.holdsBack() && !wanted[d.DependsOnID] {
			continue
		}
		if d.holdsBack() {
			delete(wanted, d.DependsOnID)
		}
		all = append(all, d)
	}
	for _, id := range b.BlockedBy {
		if name := nameOf(id, names); wanted[name] {
			all = append(all, Dependency{IssueID: i.ID, DependsOnID: name, Type: depBlocks})
		}
	}
	return all
}
