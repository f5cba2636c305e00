package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/run"

	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/preflight"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/pause"
)

const (
	// recheckEvery is how often it is looked whether what a check has found is mended.
	recheckEvery = 5 * time.Second
	// retestEvery is the least time between two runs of a setup or test that failed, retestShare how much longer than
	// the run itself the time after it is.
	retestEvery, retestShare = time.Minute, 5
)

// preflight looks whether the rig can work, before anything is started. What fails pauses its scope.
func (p *Process) preflight(outer context.Context, opts UpOptions) error {
	ctx, cancel := context.WithCancel(outer)
	if opts.Timeout > 0 {
		ctx, cancel = context.WithTimeout(outer, opts.Timeout)
	}
	defer cancel()
	go func() {
		select {
		case <-opts.Drain: // nothing runs yet that could come to its end
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

// addRecheck looks again at what checks have found, and ends the pauses of what is mended.
func addRecheck(g *run.Group, ctx context.Context, p *Process) {
	ctx, cancel := context.WithCancel(ctx)
	g.Add(func() error {
		ticker := time.NewTicker(recheckEvery)
		defer ticker.Stop()
		tested := time.Now().Add(retestEvery) //nolint:forbidigo // paces real work, decides nothing
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-ticker.C:
			}
			all, err := p.Rig.Pauses.InForce()
			for i := range all {
				switch {
				case all[i].Check == "":
				case all[i].Check != environment.CheckTest:
					err = errors.Join(err, p.recheck(ctx, &all[i]))
				case time.Now().After(tested): //nolint:forbidigo // as above
					began := time.Now() //nolint:forbidigo // as above
					err = errors.Join(err, p.retest(ctx))
					tested = time.Now().Add(max(retestEvery, retestShare*time.Since(began))) //nolint:forbidigo // as above
				}
			}
			if err != nil && ctx.Err() == nil {
				p.Say("warning: preflight: %s", flat(err))
			}
		}
	}, func(error) { cancel() })
}

func (p *Process) recheck(ctx context.Context, found *pause.Pause) error {
	if !environment.Passes(ctx, p.Rig, found) {
		return nil
	}
	p.Say("%s goes on: the check of the %s passes", found.Scope, found.Check)
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
		p.Say("the rig goes on: %s: %s", c.Subject, c.Found)
	}
	_, err = preflight.Note(ctx, p.Rig, []environment.Check{c})
	return err
}
