package roles

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"

	"github.com/gastown-chipset/chipset/state"
)

// Progress is how far a decision is carried out. It is the one rule for what
// fails, and does nothing itself: Next names the action to try, and Report says
// what became of it, until Next has no more.
//
// Groups go in their order, the Work last, and the actions of a group in theirs.
// An action that fails ends its group: what comes after it in the group, above
// all what retires the cause, is not done, and the next decision comes to the
// same. The other groups go on. What a failure means for the role is in Outcome:
//
//	state.ErrConflict  the world moved on after it was fetched. The next decision is
//	                   made on what it is now. It is no failure, and is made soon;
//	                   a conflict that lasts is looked at ever less often.
//	state.ErrCorrupt   one file is damaged. It is said once, and does not slow the
//	                   role down for everything else.
//	anything else      a failure: the role waits longer after each one in a row.
//
// A context that has ended ends all groups (see Cancel), and nothing of it counts.
type Progress struct {
	Outcome
	groups []Group
	// group and action are where the carrying out stands.
	group, action int
	cancelled     bool
}

// Outcome is how the groups of a decision ended.
type Outcome struct {
	// Worked: all of the Work was carried out, and the next state counts.
	Worked bool
	// Conflicts, Damages and Failures are what ended groups.
	Conflicts, Damages, Failures *multierror.Error
}

// Begin begins to carry a decision out.
func Begin[S any](d *Decision[S]) *Progress {
	p := &Progress{groups: append(d.Groups[:len(d.Groups):len(d.Groups)], d.Work)}
	p.skipEnded()
	return p
}

// Next returns the action to carry out now, or false when there is none left.
func (p *Progress) Next() (Action, bool) {
	if p.cancelled || p.group == len(p.groups) {
		return nil, false
	}
	return p.groups[p.group][p.action], true
}

// Report says how the action of Next ended.
func (p *Progress) Report(err error) {
	a, ok := p.Next()
	if !ok {
		return
	}
	p.action++
	if err != nil {
		p.action = -1
		err = fmt.Errorf("%T: %w", a, err)
	}
	switch {
	case err == nil:
	case errors.Is(err, state.ErrConflict):
		p.Conflicts = multierror.Append(p.Conflicts, err)
	case errors.Is(err, state.ErrCorrupt):
		p.Damages = multierror.Append(p.Damages, err)
	default:
		p.Failures = multierror.Append(p.Failures, err)
	}
	p.skipEnded()
}

// skipEnded moves on to the next group when the present one has ended.
func (p *Progress) skipEnded() {
	for p.group < len(p.groups) && (p.action < 0 || p.action == len(p.groups[p.group])) {
		p.Worked = p.group == len(p.groups)-1 && p.action >= 0
		p.group, p.action = p.group+1, 0
	}
}

// Cancel ends all groups where they stand. No state counts.
func (p *Progress) Cancel() { p.cancelled, p.Worked = true, false }

// CarryOut carries a decision out through do, until ctx ends.
func CarryOut[S any](ctx context.Context, d *Decision[S], do func(context.Context, Action) error) Outcome {
	p := Begin(d)
	for a, ok := p.Next(); ok; a, ok = p.Next() {
		err := do(ctx, a)
		if ctx.Err() != nil {
			p.Cancel()
			break
		}
		p.Report(err)
	}
	return p.Outcome
}
