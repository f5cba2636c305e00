package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
)

// AddBead stores a new bead of the actor. Durable when it returns nil.
// Errors: ErrInvalid, those of bead.Store.Add, state.ErrConflict over a limit.
func (a *Actor) AddBead(ctx context.Context, b bead.Bead) (bead.Bead, error) {
	if err := CheckBead(&b); err != nil {
		return b, err
	}
	if b.Worker != "" { // it is a command that the rig runs
		if err := a.Authority("the worker of a bead"); err != nil {
			return b, err
		}
	}
	b.CreatedBy = a.ID
	if err := a.placeFound(ctx, &b); err != nil {
		return b, err
	}
	return a.Beads.Add(b, a.Def.Rig.BeadPrefix, a.Clock.Now())
}

// maxWord bounds a label, and the word for the kind of a bead, in bytes.
const maxWord = 64

// CheckBead checks the texts of a bead. Errors: ErrInvalid, state.ErrTooLarge.
func CheckBead(b *bead.Bead) error {
	if err := OneLine("the title", b.Title, bead.MaxTitle); err != nil {
		return err
	}
	for _, text := range []struct{ what, value string }{{"the description", b.Description}, {"the acceptance", b.Acceptance}} {
		if _, err := Text(text.what, text.value, bead.MaxText); err != nil {
			return err
		}
	}
	if size := len(b.Description) + len(b.Acceptance); size > bead.MaxText {
		return fmt.Errorf("description and acceptance: %w: %d bytes, at most %d", state.ErrTooLarge, size, bead.MaxText)
	}
	if b.Type != "" {
		if err := OneLine("the type", b.Type, maxWord); err != nil {
			return err
		}
	}
	for _, label := range b.Labels {
		if err := OneLine("a label", label, maxWord); err != nil {
			return err
		}
	}
	return nil
}

// BeadIDs parses words as bead IDs, without duplicates. Errors: ErrInvalid.
func BeadIDs(words []string) ([]state.BeadID, error) {
	var ids []state.BeadID
	for _, word := range Words(words) {
		id, err := state.ParseBeadID(word)
		if err != nil {
			return nil, Invalidf("%v", err)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// HoldBead keeps an open bead from being slung before until. A bead that is not open stays
// as it is. Durable when it returns nil.
func (a *Actor) HoldBead(ctx context.Context, id state.BeadID, until state.Time, why string) error {
	_, err := a.Beads.By(a.ID, why).Edit(ctx, id, func(b *bead.Bead) error {
		if b.Status != bead.Open {
			return state.ErrUnchanged
		}
		b.ReadyAt, b.UpdatedAt = &until, a.Clock.Now()
		b.Gen++
		return nil
	})
	return err
}

// BeadFilter selects beads; the zero value selects all.
type BeadFilter struct {
	Statuses []bead.Status
	// Labels selects beads that have all of them.
	Labels []string
	// Ready selects beads that could be slung now, Blocked those that wait for a
	// person or for other beads.
	Ready, Blocked bool
}

// ListBeads returns the beads that a filter selects, oldest first, or with Ready in the
// order in which they would be slung; all beads by ID; and the errors of those that
// could not be read.
func ListBeads(r *rig.Rig, f BeadFilter) ([]bead.Bead, map[state.BeadID]*bead.Bead, []error, error) {
	all, bad, err := r.Beads.All()
	if err != nil {
		return nil, nil, bad, err
	}
	byID := bead.Index(all)
	chosen := slices.DeleteFunc(slices.Clone(all), func(b bead.Bead) bool { return !f.match(r, &b, byID) })
	slices.SortStableFunc(chosen, func(a, b bead.Bead) int {
		if f.Ready && a.Priority != b.Priority {
			return a.Priority.Rank() - b.Priority.Rank()
		}
		return a.CreatedAt.Compare(b.CreatedAt.Time)
	})
	return chosen, byID, bad, nil
}

func (f *BeadFilter) match(r *rig.Rig, b *bead.Bead, byID map[state.BeadID]*bead.Bead) bool {
	if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, b.Status) {
		return false
	}
	if slices.ContainsFunc(f.Labels, func(l string) bool { return !slices.Contains(b.Labels, l) }) {
		return false
	}
	waits := len(bead.Blockers(b, byID)) > 0
	if f.Ready && !ready(b, waits, r) {
		return false
	}
	return !f.Blocked || b.Status == bead.Blocked || b.Status == bead.Open && waits
}

func ready(b *bead.Bead, waits bool, r *rig.Rig) bool {
	if b.Status != bead.Open || waits || b.Cooling(r.Clock.Now()) {
		return false
	}
	return r.Def == nil || b.Attempts < r.Def.GUPP.Limits.MaxAttempts
}

// Claim puts a ready bead on the actor's own empty hook, in the same steps as the mayor
// slings; id "" is the next one. A person's own session may claim in every rig. Errors:
// state.ErrConflict for a polecat of a rig whose mayor assigns work, for an agent that
// executes no beads, and if another agent was faster; state.ErrNotFound if no bead is
// ready.
func (a *Actor) Claim(ctx context.Context, id state.BeadID) (dispatch.Record, error) {
	beads, _, err := a.Beads.All()
	if err == nil {
		err = a.mayClaim(beads)
	}
	if err != nil {
		return dispatch.Record{}, err
	}
	if id != "" {
		return a.sling(ctx, id, a.ID)
	}
	for _, next := range backlog.Ready(beads, a.Clock.Now()) {
		rec, err := carry.Sling(ctx, a.Rig, next.ID, a.ID, a.ID)
		var slung *carry.AlreadySlung
		if !errors.As(err, &slung) { // another was faster with that one
			return rec, err
		}
	}
	return dispatch.Record{}, state.Absent("claim: no bead is ready")
}

// mayClaim returns an ErrConflict if the actor may not take work by itself. A person's own session may: it acts for the person.
func (a *Actor) mayClaim(beads []bead.Bead) error {
	if me, err := a.Agents.Get(string(a.ID)); err == nil && me.IsSession() {
		return nil
	}
	if a.Def == nil || a.Def.Dispatch.Strategy != definition.StrategyAutoClaim {
		return WithHint(state.Conflictf("claim", "in this rig the mayor assigns work (dispatch.strategy is not %s)", definition.StrategyAutoClaim),
			fmt.Sprintf("chipset mail send %s asks for work", a.Mayor()))
	}
	out, err := Out(a.Rig, beads)
	if limit := a.Def.Dispatch.MaxParallel; err == nil && out >= limit {
		return state.Conflictf("claim", "%d beads are assigned, and dispatch.max_parallel is %d", out, limit)
	}
	return err
}

// Out counts the beads that count towards dispatch.max_parallel: those that are hooked or in progress, except for those of
// the person's own sessions.
func Out(r *rig.Rig, beads []bead.Bead) (int, error) {
	agents, _, err := r.Agents.All()
	sessions := map[state.AgentID]bool{}
	for i := range agents {
		sessions[agents[i].ID] = agents[i].IsSession()
	}
	out := 0
	for i := range beads {
		if b := &beads[i]; (b.Status == bead.Hooked || b.Status == bead.InProgress) && !sessions[b.Assignee] {
			out++
		}
	}
	return out, err
}

// MaxConvoyName bounds a convoy's name, in bytes.
const MaxConvoyName = 200

// CreateConvoy makes a convoy of the named beads. Errors: ErrInvalid, those of
// carry.MakeConvoy.
func (a *Actor) CreateConvoy(ctx context.Context, name string, beads []string) (convoy.Convoy, error) {
	if err := OneLine("the name", name, MaxConvoyName); err != nil {
		return convoy.Convoy{}, err
	}
	if len(beads) == 0 {
		return convoy.Convoy{}, Invalidf("a convoy has at least one bead")
	}
	ids := make([]state.BeadID, 0, len(beads))
	for _, b := range beads {
		ids = append(ids, state.BeadID(b)) // checked when it is read
	}
	return carry.MakeConvoy(ctx, a.Rig, a.ID, name, ids)
}
