package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/preflight"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/pause"
)

const (
	// recheckEvery is the least time between two repetitions of a failed check, retestEvery that for setup and test.
	// recheckShare is how many times as long as the check itself the pause after it is at least.
	recheckEvery, retestEvery, recheckShare = 5 * time.Second, time.Minute, 5
)

// preflight checks whether the rig can work, before anything is started. A failed check pauses its scope.
func (p *Process) preflight(outer context.Context, opts UpOptions) error {
	ctx, cancel := context.WithCancel(outer)
	if opts.Timeout > 0 {
		ctx, cancel = context.WithTimeout(outer, opts.Timeout)
	}
	defer cancel()
	go func() {
		select {
		case <-opts.Drain: // nothing runs yet that could finish
			cancel()
		case <-ctx.Done():
		}
	}()
	checks, err := preflight.Run(ctx, p.Rig, p.preflightOptions())
	switch {
	case outer.Err() != nil:
		return outer.Err()
	case isClosed(opts.Drain):
		return ErrDrained
	case ctx.Err() != nil:
		return fmt.Errorf("after %s: %w", opts.Timeout, ErrTimeout)
	case err != nil:
		p.Say("warning: preflight: %s", flat(err))
	}
	for i := range checks {
		if c := &checks[i]; c.Name == environment.CheckTest && c.OK() && c.Subject != "" {
			p.Say("test: %s: %s", c.Subject, c.Found)
		}
	}
	paused, err := preflight.Note(outer, p.Rig, checks)
	if err == nil && len(paused) > 0 {
		err = p.announce(outer) // a rig without anything to do may end before it is looked at again
	}
	return err
}

func (p *Process) preflightOptions() preflight.Options {
	return preflight.Options{Self: p.Self, Say: p.Say}
}

// recheckPauses repeats failed checks, and ends the pauses of those that now pass.
func (p *Process) recheckPauses(ctx context.Context) error {
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	r := rechecks{p: p, next: map[string]time.Time{environment.CheckTest: time.Now().Add(retestEvery)}, explained: map[pause.Scope]state.Time{}} //nolint:forbidigo // paces real work, decides nothing
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		all, err := p.Rig.Pauses.InForce()
		for i := range all {
			err = errors.Join(err, r.look(ctx, &all[i]))
		}
		if err != nil && ctx.Err() == nil {
			p.Say("warning: preflight: %s", flat(err))
		}
	}
}

// rechecks paces the repetition of failed checks.
type rechecks struct {
	p *Process
	// next is when a check may be repeated, by its name.
	next map[string]time.Time
	// explained are the scopes whose client was checked, with the beginning of the pause.
	explained map[pause.Scope]state.Time
}

func (r *rechecks) look(ctx context.Context, found *pause.Pause) (err error) {
	began := time.Now() //nolint:forbidigo // paces real work, decides nothing
	switch {
	case found.Check == "" && (!found.Kind.NeedsPerson() || r.explained[found.Scope] == found.Since), began.Before(r.next[found.Check]):
		return nil
	case found.Check == "":
		r.explained[found.Scope] = found.Since
		return r.p.explain(ctx, found)
	case found.Check == environment.CheckTest:
		err = r.p.retest(ctx)
	default:
		err = r.p.recheck(ctx, found)
	}
	least := recheckEvery
	if found.Check == environment.CheckTest {
		least = retestEvery
	}
	now := time.Now() //nolint:forbidigo // as above
	r.next[found.Check] = now.Add(max(least, recheckShare*now.Sub(began)))
	return err
}

// explain looks for a check that fails for the same cause that ended an attempt, so that the check, and not another attempt,
// finds out when it is fixed.
func (p *Process) explain(ctx context.Context, ended *pause.Pause) error {
	for _, c := range environment.Client(ctx, p.Rig, ended.Scope) {
		if c.OK() || ctx.Err() != nil {
			continue
		}
		return p.Rig.Pauses.Change(ctx, ended.Scope, func(now *pause.Pause) error {
			if now.Status != pause.Paused || now.Check != "" {
				return state.ErrUnchanged
			}
			now.Find(c.Name, c.Mend, c.Fault, p.Rig.Clock.Now())
			return nil
		})
	}
	return nil
}

func (p *Process) recheck(ctx context.Context, found *pause.Pause) error {
	if !environment.Passes(ctx, p.Rig, found) {
		return nil
	}
	p.Say("%s resumes: the check of the %s passes", found.Scope, found.Check)
	return p.Rig.Pauses.Change(ctx, found.Scope, func(now *pause.Pause) error {
		if now.Check != found.Check {
			return state.ErrUnchanged
		}
		return now.Lift(p.Rig.Clock.Now())
	})
}

func (p *Process) retest(ctx context.Context) error {
	c, err := preflight.Test(ctx, p.Rig, p.preflightOptions())
	if err != nil {
		return err
	}
	if c.OK() {
		p.Say("the rig resumes: %s: %s", c.Subject, c.Found)
	}
	_, err = preflight.Note(ctx, p.Rig, []environment.Check{c})
	return err
}
