package roles

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-multierror"

	"github.com/gastown-chipset/chipset/state"
)

// Outcome is how the groups of a decision ended.
type Outcome struct {
	// Worked: all of the Work was carried out, and the next state counts.
	Worked bool
	// Conflicts, Damages and Failures are what ended groups.
	Conflicts, Damages, Failures *multierror.Error
}

// CarryOut carries a decision out through do, until ctx ends. It is the one rule for
// what fails.
//
// Groups go in their order, the Work last, and the actions of a group in theirs.
// An action that fails ends its group: what comes after it in the group, above
// all what retires the cause, is not done, and the next decision comes to the
// same. The other groups go on. What a failure means for the role is in Outcome:
//
//	state.ErrConflict  the world moved on after it was fetched. The next decision is
//	                   made on what it is now. It is not a failure, and is made soon;
//	                   a conflict that lasts is looked at ever less often.
//	state.ErrCorrupt   one file is damaged. It is reported once, and does not slow the
//	                   role down for everything else.
//	anything else      a failure: the role waits longer after each one in a row.
//
// When ctx ends, all groups end, and no state counts.
func CarryOut[S any](ctx context.Context, d *Decision[S], do func(context.Context, Action) error) (out Outcome) {
	for _, g := range append(slices.Clip(d.Groups), d.Work) {
		out.Worked = true // of the last group, the Work
		for _, a := range g {
			err := do(ctx, a)
			if ctx.Err() != nil {
				out.Worked = false
				return out
			}
			if err != nil {
				out.note(fmt.Errorf("%T: %w", a, err))
				out.Worked = false
				break
			}
		}
	}
	return out
}

// note records what ended a group.
func (o *Outcome) note(err error) {
	switch {
	case errors.Is(err, state.ErrConflict):
		o.Conflicts = multierror.Append(o.Conflicts, err)
	case errors.Is(err, state.ErrCorrupt):
		o.Damages = multierror.Append(o.Damages, err)
	default:
		o.Failures = multierror.Append(o.Failures, err)
	}
}
