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

// Rules are the rig's settings for pauses.
type Rules struct {
	// Wait returns the time until the next probe after a number of failed tries.
	Wait func(k fault.Kind, tries int) time.Duration
	// Longest bounds how far in the future a reset time that a service names may be.
	Longest time.Duration
	// Most is how many beads the rig runs concurrently.
	Most int
}

// Fail records an attempt that ended with a fault. The first one begins the pause, and a
// failed probe extends it. An attempt that began before the pause only updates the reset
// time. Errors: state.ErrUnchanged.
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

// Find records a fault that a check has found before anything was started. Waiting beads go on waiting: there is no
// probe before the check passes or the person resumes.
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

// Exceed records that a budget is used up. Except for the beads in out, nothing of the scope runs until the person
// resumes it, or it is lifted because the budget is not used up any more. A pause that admits beads may become one
// that admits none. Granted stays. began is false if the scope was paused before: only the usage is updated then.
// Errors: state.ErrUnchanged.
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

// confirms reports whether an unexplained failure is that of a second bead, with the same
// reason as the first.
func (p *Pause) confirms(t Try, f fault.Fault) bool {
	return p.Status == Suspected && p.Kind == f.Kind && p.Reason == f.Reason &&
		slices.ContainsFunc(p.Tried, func(o Try) bool { return o.BeadID != t.BeadID && o.Reason == f.Reason })
}

func (p *Pause) note(t Try) {
	p.Tried = append(slices.Clone(p.Tried), t)
	p.Tried = p.Tried[max(0, len(p.Tried)-MaxTried):]
}

// reset returns the reset time that the service has named, at most r.Longest from now.
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

// Succeed records an attempt that ended without a fault of the scope. For a pause in
// force, only admitted beads count. Errors: state.ErrUnchanged.
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
// for a pause that is no longer in force.
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

// Wait records a bead that is on a hook and must not start. Errors: state.ErrUnchanged.
func (p *Pause) Wait(b state.BeadID, now state.Time) error {
	if !p.Holds(b) || slices.Contains(p.Waiting, b) {
		return state.ErrUnchanged
	}
	p.Waiting, p.UpdatedAt = append(slices.Clone(p.Waiting), b), now
	return nil
}

// Resume ends the pause before it is due: one bead is admitted first, then two at a time,
// and so on. For a budget, the pause is over at once, and the usage so far is granted.
// Errors: state.ErrConflict for a scope that is not paused.
func (p *Pause) Resume(now state.Time) error {
	if p.Status != Paused {
		return state.Conflictf("the pause of "+string(p.Scope), "is %s", p.Status)
	}
	if p.Kind == fault.Budget {
		p.Granted = p.Used // the budget counts from here
		p.end(now)
		return nil
	}
	p.Status, p.Width, p.Until, p.UpdatedAt = Ramping, 1, now, now
	p.Check, p.Mend = "", ""
	return nil
}

// Lift ends the pause. It returns state.ErrUnchanged if the pause is not in force.
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

// Ended describes an attempt that has ended.
type Ended struct {
	Try
	// Fault is zero if the end is the work's own.
	Fault fault.Fault
	// Client is the scope of the client.
	Client Scope
}

// Note calls change for each scope that the end of an attempt says something about, in
// the order of Path, with the transition of its pause: the scopes before the one that
// failed have worked.
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

// Note updates the pauses after the end of an attempt, and returns the pause that this
// begins, or nil. It is idempotent. Durable when the error is nil.
func (s Store) Note(ctx context.Context, e Ended, r Rules) (began *Pause, err error) {
	err = e.Note(r, func(scope Scope, transition func(p *Pause) error) error {
		p, err := s.GetCached(scope.File())
		if (err == nil || errors.Is(err, state.ErrNotFound)) && errors.Is(transition(&p), state.ErrUnchanged) {
			return nil // the usual case, without a lock
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

// Change makes a transition of a scope's pause. After state.ErrUnchanged it writes nothing
// and returns nil. Durable when it returns nil.
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

// Holding returns the first pause in force that holds a bead back, which is to run with a
// client, or nil.
func Holding(inForce []Pause, client Scope, b *bead.Bead) *Pause {
	needs := Needs(client, b)
	for i := range inForce {
		if p := &inForce[i]; slices.Contains(needs, p.Scope) && p.Holds(b.ID) {
			return p
		}
	}
	return nil
}

// InForce lists the pauses in force, by scope. It skips damaged records, which doctor
// reports.
func (s Store) InForce() ([]Pause, error) {
	all, _, err := s.All()
	return slices.DeleteFunc(all, func(p Pause) bool { return !p.InForce() }), err
}
