package bd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// entry is an issue that is being imported, with its bead.
type entry struct {
	line  int
	issue Issue
	id    state.BeadID
	hash  string
	there *bead.Bead // nil while there is none
	// same: the bead already matches the issue. frozen: the bead can't be changed.
	same, frozen bool
	// says are the beads that the issue itself waits for, implied those that follow from
	// parents and children.
	says, implied []state.BeadID
	waits         bool
}

// plan is what an import will do.
type plan struct {
	options Options
	byID    map[state.BeadID]*bead.Bead
	entries []*entry
	byIssue map[string]*entry
	byBead  map[state.BeadID]*entry
	// over are issues that hold nothing back, ignored those that are not work items, with the reason.
	over    map[string]bool
	ignored []Result
	waits   bead.Graph
	bad     Problems
	dropped int
}

// makePlan plans an import of lines. The error is a Problems.
func makePlan(lines []Line, beads []bead.Bead, options Options) (*plan, error) {
	p := &plan{options: options, byID: bead.Index(beads), byIssue: map[string]*entry{}, byBead: map[state.BeadID]*entry{},
		over: map[string]bool{}, waits: bead.Graph{}}
	for i := range lines {
		p.enter(&lines[i])
	}
	for _, e := range p.entries {
		p.resolve(e)
	}
	for i := range beads {
		if p.byBead[beads[i].ID] == nil {
			p.waits[beads[i].ID] = beads[i].BlockedBy
		}
	}
	for _, e := range p.entries {
		p.waits[e.id] = e.says
	}
	p.refuseCircles()
	if len(p.bad) > 0 {
		slices.SortStableFunc(p.bad, func(a, b Problem) int { return a.Line - b.Line })
		return nil, p.bad
	}
	p.imply()
	return p, nil
}

func (p *plan) refuse(line int, err error) { p.bad = append(p.bad, Problem{line, err}) }

// enter adds an issue to the plan if it is a work item.
func (p *plan) enter(l *Line) {
	i := &l.Issue
	id := beadID(i.ID)
	if why := i.ignored(); why != "" {
		p.ignored = append(p.ignored, Result{Line: l.Number, Issue: i.ID, Outcome: Skipped, Detail: why})
		p.over[i.ID] = p.over[i.ID] || i.over()
		return
	}
	there := p.byID[id]
	if i.Status == statusTombstone && there == nil {
		p.ignored = append(p.ignored, Result{Line: l.Number, Issue: i.ID, Outcome: Skipped, Detail: "it is deleted in bd"})
		p.over[i.ID] = true
		return
	}
	hash, err := i.hash()
	if err != nil {
		p.refuse(l.Number, err)
		return
	}
	if first := p.byBead[id]; first != nil {
		if first.hash != hash || first.issue.ID != i.ID {
			p.refuse(l.Number, state.Conflictf("issue "+i.ID, "is also in line %d, with other content", first.line))
		}
		return
	}
	e := &entry{line: l.Number, issue: *i, id: id, hash: hash, there: there}
	if there != nil {
		e.compare()
	}
	p.entries = append(p.entries, e)
	p.byIssue[i.ID], p.byBead[id] = e, e
}

// compare determines whether the bead matches the issue, and whether it can be changed.
func (e *entry) compare() {
	s, imported := sourceOf(e.there)
	e.same = imported && s.Hash == e.hash
	if !e.same {
		again, err := export(e.there, map[state.BeadID]string{})
		if err == nil {
			// Use the issue's own names for the others.
			for n := range again.Dependencies {
				for _, d := range e.issue.Dependencies {
					if state.BeadID(again.Dependencies[n].DependsOnID) == beadID(d.DependsOnID) {
						again.Dependencies[n].DependsOnID = d.DependsOnID
					}
				}
			}
			again.ID = e.issue.ID
			hash, err := again.hash()
			e.same = err == nil && hash == e.hash
		}
	}
	e.frozen = !e.there.Editable() && !e.reopens(e.there, s, imported)
}

// reopens reports whether bd has reopened what the import had closed.
func (e *entry) reopens(b *bead.Bead, s source, imported bool) bool {
	return imported && (b.Status == bead.Closed || b.Status == bead.Cancelled) && b.Status == s.As && !e.issue.over() && s.Issue.over()
}

// resolve determines the beads that an issue waits for.
func (p *plan) resolve(e *entry) {
	if e.there != nil && (e.frozen || e.same || e.issue.Status == statusTombstone) {
		s, _ := sourceOf(e.there)
		for _, id := range e.there.BlockedBy {
			if !slices.Contains(s.Implied, id) {
				e.says = append(e.says, id)
			}
		}
		return
	}
	for n := range e.issue.Dependencies {
		d := &e.issue.Dependencies[n]
		if !d.holdsBack() || p.over[d.DependsOnID] {
			continue
		}
		id := beadID(d.DependsOnID)
		other := p.byIssue[d.DependsOnID]
		switch {
		case id == e.id:
			p.refuse(e.line, state.Conflictf("issue "+e.issue.ID, "waits for itself"))
		case other == nil && p.byID[id] == nil:
			if p.options.DropUnknown {
				p.dropped++
				continue
			}
			p.refuse(e.line, fmt.Errorf("issue %s waits for %s, which is neither in the file nor in the rig: %w", e.issue.ID, d.DependsOnID, state.ErrNotFound))
		case !slices.Contains(e.says, id):
			e.says = append(e.says, id)
			open := other != nil && !other.issue.over() || other == nil && !p.byID[id].Status.Landed()
			e.waits = e.waits || open
		}
	}
}

func (p *plan) refuseCircles() {
	for _, way := range p.waits.Cycles() {
		var line int
		names := make([]string, len(way))
		for n, id := range way {
			names[n] = string(id)
			if e := p.byBead[id]; e != nil {
				names[n] = e.issue.ID
				if line == 0 || e.line < line {
					line = e.line
				}
			}
		}
		if line == 0 {
			continue // only existing beads: doctor reports it
		}
		p.refuse(line, state.Conflictf("issue "+p.lineIssue(line), "dependency cycle: %s", strings.Join(names, " → ")))
	}
}

func (p *plan) lineIssue(line int) string {
	for _, e := range p.entries {
		if e.line == line {
			return e.issue.ID
		}
	}
	return ""
}

// imply adds what follows from parents and children: a parent waits for its children,
// and the children wait for what the parent waits for. Dependencies that would close a
// cycle are left out; bd has no such rule.
func (p *plan) imply() {
	parents := map[state.BeadID][]state.BeadID{}
	children := map[state.BeadID][]state.BeadID{}
	for _, e := range p.entries {
		for _, d := range e.issue.Dependencies {
			parent := p.byIssue[d.DependsOnID]
			if d.Type == depParentChild && parent != nil && parent != e && !slices.Contains(parents[e.id], parent.id) {
				parents[e.id] = append(parents[e.id], parent.id)
				children[parent.id] = append(children[parent.id], e.id)
			}
		}
	}
	if len(parents) == 0 {
		p.addImplied(nil)
		return
	}
	more := bead.Graph{}
	for _, e := range p.entries {
		more[e.id] = append(more[e.id], children[e.id]...)
		for _, above := range ancestors(parents, e.id) {
			for _, id := range p.byBead[above].says {
				if id != e.id && !slices.Contains(ancestors(parents, id), above) {
					more[e.id] = append(more[e.id], id)
				}
			}
		}
	}
	p.addImplied(more)
}

// ancestors returns the parents of a bead, their parents, and so on.
func ancestors(parents map[state.BeadID][]state.BeadID, id state.BeadID) []state.BeadID {
	var all []state.BeadID
	todo := slices.Clone(parents[id])
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if next != id && !slices.Contains(all, next) {
			all = append(all, next)
			todo = append(todo, parents[next]...)
		}
	}
	return all
}

// addImplied adds the implied dependencies of each issue that is not over. Every cycle
// lies within a group, and the issues' own dependencies have none, so leaving out the
// implied ones within groups leaves no cycle.
func (p *plan) addImplied(more bead.Graph) {
	both := make(bead.Graph, len(p.waits))
	for id, says := range p.waits {
		both[id] = says
	}
	for id, implied := range more {
		both[id] = append(slices.Clone(both[id]), implied...)
	}
	groupOf := map[state.BeadID]int{}
	for n, group := range both.Groups() {
		for _, id := range group {
			groupOf[id] = n
		}
	}
	for _, e := range p.entries {
		if e.issue.over() {
			continue
		}
		for _, id := range more[e.id] {
			if groupOf[id] != groupOf[e.id] && !slices.Contains(e.says, id) && !slices.Contains(e.implied, id) {
				e.implied = append(e.implied, id)
			}
		}
		slices.Sort(e.implied)
	}
}

// made returns the new bead of an entry.
func (p *plan) made(e *entry, by state.AgentID, now state.Time) (bead.Bead, error) {
	b := bead.Bead{ID: e.id, Status: bead.Open, CreatedAt: now, CreatedBy: by, Gen: 1, Metadata: map[string]string{bead.MetaImported: e.issue.ID}}
	if at := e.issue.CreatedAt; at != nil && at.Before(now.Time) && !at.IsZero() {
		b.CreatedAt = *at
	}
	b.UpdatedAt = now
	if err := p.fill(&b, e); err != nil {
		return b, err
	}
	status, reason := e.issue.standing(e.waits)
	if err := become(&b, status, reason, e.issue.ClosedAt, now); err != nil {
		return b, err
	}
	return b, p.note(&b, e, b.Status)
}

func (p *plan) fill(b *bead.Bead, e *entry) error {
	e.issue.fill(b, p.options.Workers)
	b.BlockedBy = append(slices.Clone(e.says), e.implied...)
	b.AllowEmpty = b.AllowEmpty || len(e.implied) > 0 && p.isParent(e)
	if p.options.CheckWorker != nil && b.Worker != "" {
		return p.options.CheckWorker(b.Worker)
	}
	return nil
}

// isParent reports whether a bead waits for children of its own.
func (p *plan) isParent(e *entry) bool {
	return slices.ContainsFunc(e.implied, func(id state.BeadID) bool {
		child := p.byBead[id]
		return child != nil && slices.ContainsFunc(child.issue.Dependencies, func(d Dependency) bool {
			return d.Type == depParentChild && d.DependsOnID == e.issue.ID
		})
	})
}

// become moves a bead to the status of its issue.
func become(b *bead.Bead, to bead.Status, reason string, at *state.Time, now state.Time) error {
	if b.Status == to {
		return nil
	}
	if to != bead.Closed {
		return b.Become(to, reason, now)
	}
	closed := now
	if at != nil && at.Before(now.Time) && !at.Before(b.CreatedAt.Time) {
		closed = *at
	}
	return b.CloseImported(reason, closed, now)
}

// note stores in the bead what it was made from, and the status that the import gave
// it. It refuses a bead that is too large.
func (p *plan) note(b *bead.Bead, e *entry, as bead.Status) error {
	s := source{Hash: e.hash, As: as, Implied: e.implied, AllowEmpty: b.AllowEmpty}
	if err := s.store(b, &e.issue); err != nil {
		return err
	}
	data, err := state.Encode(b)
	if err != nil {
		return err
	}
	if len(data) > state.MaxFile {
		return fmt.Errorf("issue %s: %w: %d bytes as a bead, at most %d", e.issue.ID, state.ErrTooLarge, len(data), state.MaxFile)
	}
	if b.Title == "" {
		return actor.Invalidf("issue %s: no title", e.issue.ID)
	}
	return nil
}
