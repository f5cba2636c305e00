package pause

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
)

// Rules are what a rig says about pauses.
type Rules struct {
	// Wait is the time to the next probe after a number of tries that failed of a kind of fault.
	Wait func(k fault.Kind, tries int) time.Duration
	// Longest bounds how far away a reset that a service names may be.
	Longest time.Duration
	// Most is how many beads the rig has out at most.
	Most int
}

// Fail takes note of an attempt that a fault ended. The first one begins the pause, a
// probe that fails lengthens it. Attempts that began before the pause did change only
// the reset that is known. Errors: state.ErrUnchanged.
func (p *Pause) Fail(t Try, f fault.Fault, r Rules) error {
	known := func(o Try) bool { return o.Assignment == t.Assignment && o.At.Equal(t.At.Time) }
	if slices.ContainsFunc(p.Tried, known) {
		return state.ErrUnchanged
	}
	t.Reason = f.Reason
	probe := slices.Contains(p.Admitted, t.BeadID)
	p.Admitted, p.UpdatedAt = without(p.Admitted, t.BeadID), t.At
	switch {
	case p.InForce() && !probe:
		p.note(t)
		p.Until = latest(p.Until, p.reset(t.At, f, r))
		return nil
	case p.InForce():
		p.Tries++
	default:
		next := Paused
		if f.Class == fault.Unknown && !p.confirms(t, f) {
			next = Suspected
		}
		tried := p.Tried
		if p.Status != Suspected {
			tried = nil
		}
		*p = Pause{Scope: p.Scope, Status: next, Since: t.At, Tries: 1, Tried: tried, UpdatedAt: t.At, Extra: p.Extra}
	}
	p.note(t)
	p.Class, p.Kind, p.Reason, p.Width = f.Class, f.Kind, f.Reason, 0
	p.Check, p.Mend = "", ""
	p.Until = latest(state.At(t.At.Add(r.Wait(f.Kind, p.Tries))), p.reset(t.At, f, r))
	if p.Status == Ramping {
		p.Status = Paused
	}
	return nil
}

// Find takes note of a fault that a check has found before anything was started. What waits goes on waiting: no probe is
// made before the check passes, or the person resumes.
func (p *Pause) Find(check, mend string, f fault.Fault, now state.Time) {
	since := now
	if p.Status == Paused && p.Kind == f.Kind {
		since = p.Since
	}
	*p = Pause{Scope: p.Scope, Status: Paused, Class: f.Class, Kind: f.Kind, Reason: f.Reason, Since: since, Until: now, Check: check, Mend: mend,
		Tries: 1, Tried: []Try{{At: now, Reason: f.Reason}}, Waiting: p.Waiting, UpdatedAt: now, Extra: p.Extra}
}

// CheckBudget is the Check of a pause for a budget.
const CheckBudget = "budget"

// Exceed takes note of a budget that is used up. Nothing of the scope goes on, but for the beads of out, before the
// person resumes it, or it is lifted because the budget is not used up any more. A pause that let beads go on may
// become one that lets none. What the person has granted stays. began is false where the pause stood already: what is used
// in a last turn is only counted. Errors: state.ErrUnchanged.
func (p *Pause) Exceed(used Used, reason string, out []state.BeadID, until, now state.Time) (began bool, err error) {
	if p.Status == Paused && (len(out) > 0 || len(p.Admitted) == 0) {
		if p.Kind != fault.Budget || p.Used != nil && *p.Used == used {
			return false, state.ErrUnchanged
		}
		p.Used, p.UpdatedAt = &used, now
		return false, nil
	}
	granted := p.Granted
	p.Find(CheckBudget, "", fault.New(fault.Budget, reason), now)
	p.Until, p.Used, p.Granted, p.Admitted = until, &used, granted, out
	return true, nil
}

// confirms reports whether a failure that nothing explains is that of a second bead,
// and like the first.
func (p *Pause) confirms(t Try, f fault.Fault) bool {
	return p.Status == Suspected && p.Kind == f.Kind && p.Reason == f.Reason &&
		slices.ContainsFunc(p.Tried, func(o Try) bool { return o.BeadID != t.BeadID && o.Reason == f.Reason })
}

func (p *Pause) note(t Try) {
	p.Tried = append(slices.Clone(p.Tried), t)
	p.Tried = p.Tried[max(0, len(p.Tried)-MaxTried):]
}

// reset is when the service said that the fault ends, as far as that is believed.
func (p *Pause) reset(now state.Time, f fault.Fault, r Rules) state.Time {
	if most := now.Add(r.Longest); f.Until.After(most) {
		return state.At(most)
	}
	return f.Until
}

func latest(a, b state.Time) state.Time {
	if b.After(a.Time) {
		return b
	}
	return a
}

// Succeed takes note of an attempt that ended without a fault of the scope. Only what
// was admitted proves anything about a pause in force. Errors: state.ErrUnchanged.
func (p *Pause) Succeed(b state.BeadID, now state.Time, r Rules) error {
	if p.Status != Suspected && (!p.InForce() || !slices.Contains(p.Admitted, b)) {
		return state.ErrUnchanged
	}
	p.Admitted, p.UpdatedAt = without(p.Admitted, b), now
	if p.Width = max(p.Width, 1) + 1; p.Status == Suspected || p.Width >= r.Most {
		p.end(now)
		return nil
	}
	p.Status = Ramping
	return nil
}

// Admit sets the beads that may start. Errors: state.ErrUnchanged, state.ErrConflict
// for a pause that is not in force any more.
func (p *Pause) Admit(beads []state.BeadID, now state.Time) error {
	switch {
	case !p.InForce():
		return state.Conflictf("the pause of "+string(p.Scope), "is %s", p.Status)
	case slices.Equal(p.Admitted, beads):
		return state.ErrUnchanged
	}
	p.Admitted, p.Waiting, p.UpdatedAt = slices.Clone(beads), without(p.Waiting, beads...), now
	return nil
}

// Wait takes note of a bead that is on a hook and must not start. Errors:
// state.ErrUnchanged.
func (p *Pause) Wait(b state.BeadID, now state.Time) error {
	if !p.Holds(b) || slices.Contains(p.Waiting, b) {
		return state.ErrUnchanged
	}
	p.Waiting, p.UpdatedAt = append(slices.Clone(p.Waiting), b), now
	return nil
}

// Resume ends the pause before it is due: one bead is admitted first, then two, four
// and so on. A budget counts again from what was used by then, for all at once. Errors: state.ErrConflict for a scope that is not paused.
func (p *Pause) Resume(now state.Time) error {
	if p.Status != Paused {
		return state.Conflictf("the pause of "+string(p.Scope), "is %s", p.Status)
	}
	if p.Kind == fault.Budget {
		p.Granted = p.Used // as much again may be used
		p.end(now)
		return nil
	}
	p.Status, p.Width, p.Until, p.UpdatedAt = Ramping, 1, now, now
	p.Check, p.Mend = "", ""
	return nil
}

// Lift ends a pause that holds nothing back. Errors: state.ErrUnchanged.
func (p *Pause) Lift(now state.Time) error {
	if !p.InForce() {
		return state.ErrUnchanged
	}
	p.end(now)
	return nil
}

func (p *Pause) end(now state.Time) {
	p.Status, p.Width, p.Admitted, p.Waiting, p.EndedAt, p.UpdatedAt = Over, 0, nil, nil, &now, now
}

func without(all []state.BeadID, gone ...state.BeadID) []state.BeadID {
	return slices.DeleteFunc(slices.Clone(all), func(b state.BeadID) bool { return slices.Contains(gone, b) })
}

// Ended is an attempt that is over, as far as pauses go by it.
type Ended struct {
	Try
	// Fault is zero for an end of the work's own.
	Fault fault.Fault
	// Client is the scope of the client that worked.
	Client Scope
}

// Note returns what an end means for each scope of the attempt: those that it needed
// before the one that failed were there. change is called for each in its order, with
// the transition of its pause.
func (e *Ended) Note(r Rules, change func(s Scope, transition func(p *Pause) error) error) error {
	failed := Of(e.Fault.Kind, e.Client)
	for _, s := range Path(e.Client) {
		if s == failed && !e.Fault.IsZero() && e.Fault.Class != fault.Work {
			return change(s, func(p *Pause) error { return p.Fail(e.Try, e.Fault, r) })
		}
		if err := change(s, func(p *Pause) error { return p.Succeed(e.BeadID, e.At, r) }); err != nil {
			return err
		}
	}
	return nil
}

// Note stores what an end means for the pauses, and returns the one that it begins, or
// nil. Durable when the error is nil. It may be repeated.
func (s Store) Note(ctx context.Context, e Ended, r Rules) (began *Pause, err error) {
	err = e.Note(r, func(scope Scope, transition func(p *Pause) error) error {
		p, err := s.GetCached(scope.File())
		if (err == nil || errors.Is(err, state.ErrNotFound)) && errors.Is(transition(&p), state.ErrUnchanged) {
			return nil // mostly; no lock is needed
		}
		return s.Change(ctx, scope, func(p *Pause) error {
			before := p.Status
			err := transition(p)
			if err == nil && p.Status == Paused && before != Paused {
				begun := *p
				began = &begun
			}
			return err
		})
	})
	return began, err
}

// Change carries a transition of a scope's pause out. One that comes to nothing leaves
// no record. Durable when it returns nil.
func (s Store) Change(ctx context.Context, scope Scope, transition func(p *Pause) error) error {
	_, err := s.Upsert(ctx, scope.File(), func(p *Pause, _ bool) error {
		p.Scope = scope
		return transition(p)
	})
	if errors.Is(err, state.ErrUnchanged) {
		return nil
	}
	return err
}

// Holding is the first of the pauses in force for which a bead that needs a client has
// to wait, or nil.
func Holding(inForce []Pause, client Scope, b *bead.Bead) *Pause {
	needs := Needs(client, b)
	for i := range inForce {
		if p := &inForce[i]; slices.Contains(needs, p.Scope) && p.Holds(b.ID) {
			return p
		}
	}
	return nil
}

// InForce lists the pauses that hold anything back, by scope. What can't be read holds
// nothing back; doctor names it.
func (s Store) InForce() ([]Pause, error) {
	all, _, err := s.All()
	return slices.DeleteFunc(all, func(p Pause) bool { return !p.InForce() }), err
}
