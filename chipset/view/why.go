package view

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// BeadHistory is everything that a rig knows about one bead. Lists are never null in JSON.
type BeadHistory struct {
	// Now says in one sentence where the bead stands and what it waits for.
	Now  string    `json:"now"`
	Bead bead.Bead `json:"bead"`
	// Needs are the decisions of the person that concern the bead.
	Needs []Need `json:"needs"`
	// Hook is the hook that names the bead, if one does.
	Hook *hook.Hook `json:"hook,omitempty"`
	// Progress is what the worker's client says it has done so far.
	Progress *agentcli.Progress   `json:"progress,omitempty"`
	Dispatch *dispatch.Record     `json:"dispatch,omitempty"`
	Attempts []retire.Record      `json:"attempts"`
	Requests []mergequeue.Request `json:"merge_requests"`
	Handoffs []handoff.Handoff    `json:"handoffs"`
	Mail     []BeadMail           `json:"mail"`
	// Refs are the bead's branches and the salvage refs of its attempts.
	Refs   []BeadRef     `json:"refs"`
	Events []event.Event `json:"events"`
	// Timeline is all of it in order of time.
	Timeline []Line `json:"timeline"`
	// Problems are the errors met on the way.
	Problems []string `json:"problems"`
}

// BeadMail is a message that refers to the bead.
type BeadMail struct {
	Name     mail.Name    `json:"name"`
	Archived bool         `json:"archived"`
	Message  mail.Message `json:"message"`
}

// BeadRef is a branch or a salvage ref.
type BeadRef struct {
	Ref  git.Ref  `json:"ref"`
	Hash git.Hash `json:"hash"`
	// Landed is true if the target contains the commit.
	Landed bool `json:"landed"`
}

// Line is one moment of the history.
type Line struct {
	At state.Time `json:"at"`
	// Kind is event, mail, attempt, merge_request or handoff.
	Kind string        `json:"kind"`
	Who  state.AgentID `json:"who,omitempty"`
	What string        `json:"what"`
	Text string        `json:"text,omitempty"`
}

// Why returns what a bead waits for, and its whole history. Errors: *state.Unknown, *state.Corruption.
func Why(ctx context.Context, r *rig.Rig, id state.BeadID) (*BeadHistory, error) {
	b, err := r.Beads.Get(string(id))
	if err != nil {
		return nil, err
	}
	snap, err := r.ReadAll(ctx)
	if err != nil {
		return nil, err
	}
	s := &BeadHistory{Bead: b, Needs: []Need{}, Attempts: []retire.Record{}, Requests: []mergequeue.Request{}, Handoffs: []handoff.Handoff{},
		Mail: []BeadMail{}, Refs: []BeadRef{}, Events: []event.Event{}, Timeline: []Line{}, Problems: []string{}}
	s.addRecords(r.Tree, snap)
	if err := s.addHandoffs(r, snap); err != nil {
		return nil, err
	}
	if err := s.addMail(r, snap); err != nil {
		return nil, err
	}
	if err := s.addEvents(r); err != nil {
		return nil, err
	}
	s.addRefs(ctx, r)
	s.addTimeline()
	var needs []Need
	if s.Now, needs, err = now(ctx, r, snap, &b); err != nil {
		s.problem(err)
	}
	for i := range needs {
		if needs[i].BeadID == id || slices.Contains(needs[i].Behind, id) {
			s.Needs = append(s.Needs, needs[i])
		}
	}
	return s, nil
}

func (s *BeadHistory) problem(errs ...error) {
	for _, err := range errs {
		s.Problems = append(s.Problems, err.Error())
	}
}

func (s *BeadHistory) addRecords(tree *state.Tree, snap *rig.Records) {
	for _, id := range slices.Sorted(maps.Keys(snap.Hooks)) {
		if h := snap.Hooks[id]; h.WorkItem != nil && h.WorkItem.BeadID == s.Bead.ID {
			s.Hook = h
		}
	}
	if s.Hook != nil {
		s.Progress = agentcli.ReadProgress(tree, s.Hook.WorkItem.Session)
	}
	s.Dispatch = snap.DispatchOf(s.Bead.ID)
	for _, a := range slices.Sorted(maps.Keys(snap.Retire)) {
		if snap.Retire[a].BeadID == s.Bead.ID {
			s.Attempts = append(s.Attempts, *snap.Retire[a])
		}
	}
	slices.SortStableFunc(s.Attempts, func(a, b retire.Record) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	for _, q := range snap.Queue {
		if q.BeadID == s.Bead.ID {
			s.Requests = append(s.Requests, q)
		}
	}
}

// assignments are all that the records and the bead itself name.
func (s *BeadHistory) assignments() map[state.AssignmentID]bool {
	known := map[state.AssignmentID]bool{}
	add := func(a state.AssignmentID) {
		if a != "" {
			known[a] = true
		}
	}
	add(s.Bead.AssignmentID)
	if s.Dispatch != nil {
		add(s.Dispatch.AssignmentID)
	}
	for _, a := range s.Attempts {
		add(a.AssignmentID)
	}
	for _, q := range s.Requests {
		add(q.AssignmentID)
	}
	return known
}

func (s *BeadHistory) addHandoffs(r *rig.Rig, snap *rig.Records) error {
	for _, a := range snap.Agents {
		all, bad, err := r.Handoffs.List(a.ID)
		if err != nil {
			return err
		}
		s.problem(bad...)
		for _, h := range all {
			if h.BeadID == s.Bead.ID {
				s.Handoffs = append(s.Handoffs, h)
			}
		}
	}
	return nil
}

func (s *BeadHistory) addMail(r *rig.Rig, snap *rig.Records) error {
	known := s.assignments()
	owners := []state.AgentID{state.Human}
	for _, a := range snap.Agents {
		if a.ID != state.Human {
			owners = append(owners, a.ID)
		}
	}
	for _, owner := range owners {
		for _, list := range []func() ([]mail.Entry, []*state.Corruption, error){r.Mailbox(owner).List, r.Mailbox(owner).Archive} {
			all, _, err := list() // damaged messages are left to the doctor
			if err != nil {
				return err
			}
			for _, e := range all {
				if e.Ref != nil && (e.Ref.BeadID == s.Bead.ID || e.Ref.BeadID == "" && known[e.Ref.AssignmentID]) {
					s.Mail = append(s.Mail, BeadMail{e.Name, e.Archived, e.Message})
				}
			}
		}
	}
	slices.SortStableFunc(s.Mail, func(a, b BeadMail) int { return a.Message.Timestamp.Compare(b.Message.Timestamp.Time) })
	return nil
}

func (s *BeadHistory) addEvents(r *rig.Rig) error {
	all, bad, _, err := r.Events.Read(event.Position{}, time.Time{})
	if err != nil {
		return err
	}
	s.problem(bad...)
	known := s.assignments()
	for _, e := range all { // events may name assignments that no record names any more
		if e.Bead == s.Bead.ID && e.Assignment != "" {
			known[e.Assignment] = true
		}
	}
	requests := map[string]bool{string(s.Bead.ID): true}
	for _, q := range s.Requests {
		requests[string(q.ID)] = true
	}
	for _, e := range all {
		other := e.Bead != "" && e.Bead != s.Bead.ID
		if !other && (e.Bead == s.Bead.ID || known[e.Assignment] || requests[e.Subject]) {
			s.Events = append(s.Events, e)
		}
	}
	slices.SortStableFunc(s.Events, func(a, b event.Event) int { return a.Time.Compare(b.Time.Time) })
	return nil
}

func (s *BeadHistory) addRefs(ctx context.Context, r *rig.Rig) {
	if r.Git == nil {
		return
	}
	var tip git.Hash
	if r.Def != nil {
		if target, err := r.Target(ctx); err == nil {
			tip, _, _ = r.Git.ResolveRef(ctx, target.Ref())
		}
	}
	refs, err := r.Git.ListRefs(ctx, "refs/heads/polecat/", "refs/chipset/salvage/")
	if err != nil {
		s.problem(err)
		return
	}
	known := s.assignments()
	for _, named := range refs {
		if !s.owns(named.Ref, known) {
			continue
		}
		ref := BeadRef{Ref: named.Ref, Hash: named.Hash}
		if tip != "" {
			ref.Landed, err = r.Git.IsAncestor(ctx, ref.Hash, tip)
			if err != nil {
				s.problem(err)
			}
		}
		s.Refs = append(s.Refs, ref)
	}
}

// owns reports whether a branch or salvage ref belongs to this bead. A second salvage ref
// of an assignment has a number behind it.
func (s *BeadHistory) owns(ref git.Ref, known map[state.AssignmentID]bool) bool {
	if branch, ok := strings.CutPrefix(string(ref), "refs/heads/"); ok {
		for n := 1; n <= max(1, s.Bead.Assignments); n++ {
			if branch == bead.BranchFor(s.Bead.ID, n) {
				return true
			}
		}
		return branch == s.Bead.Branch
	}
	name := strings.TrimPrefix(string(ref), "refs/chipset/salvage/")
	for a := range known {
		if name == string(a) || strings.HasPrefix(name, string(a)+"-") {
			return true
		}
	}
	return false
}
