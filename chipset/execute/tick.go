package execute

import (
	"context"
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
)

// role is what differs between the runners. S is its state, F are its facts.
type role[S, F any] interface {
	// fetch reads what the decision depends on.
	fetch(ctx context.Context) (F, error)
	// decide is the role's pure decision.
	decide(facts F) roles.Decision[S]
	// do carries one action out, and is durable when it returns nil. The actions
	// that roles share go to base.do.
	do(ctx context.Context, a roles.Action) error
	// adopt takes over the state of a decision whose work is carried out.
	adopt(next S)
	// after is the time until something is due that no file tells, or 0.
	after() time.Duration
}

// base is what every runner has.
type base struct {
	Agent
	inbox *inbox
	// finished is true once the process is to end.
	finished bool
}

func newBase(a Agent) base { return base{Agent: a, inbox: newInbox(a)} }

// Wake is nil where nothing runs on the agent's behalf.
func (b *base) Wake() <-chan struct{} { return nil }

// Close has nothing to end.
func (b *base) Close() {}

// maxRounds bounds one tick: decisions that do not settle are a defect, and must
// not keep the process from its signals.
const maxRounds = 500

var errUnsettled = errors.New("the decisions do not settle")

// tick is the one loop of all roles: fetch, decide, carry out, retire, until there
// is nothing to do but to wait. What fails is judged by roles.CarryOut; the last
// round counts, because it has come upon everything that still fails.
func tick[S, F any](ctx context.Context, b *base, r role[S, F]) (Next, error) {
	for range maxRounds {
		facts, err := r.fetch(ctx)
		if err != nil {
			return Next{}, err
		}
		d := r.decide(facts)
		out := roles.CarryOut(ctx, &d, r.do)
		if ctx.Err() != nil {
			return Next{}, ctx.Err()
		}
		if out.Worked {
			r.adopt(d.Next)
		}
		if out.Worked && d.Again {
			continue
		}
		next := Next{After: r.after(), Conflict: out.Conflicts.ErrorOrNil(), Finished: b.finished}
		if out.Damages != nil {
			b.sayDamages(out.Damages.Errors)
		}
		return next, out.Failures.ErrorOrNil()
	}
	return Next{Conflict: errUnsettled}, nil
}

// sayDamages says once of each damaged file that it keeps something from being
// done.
func (b *base) sayDamages(damages []error) {
	for _, err := range damages {
		var c *state.Corruption
		if !errors.As(err, &c) {
			c = &state.Corruption{Path: err.Error(), Reason: "damaged"}
		}
		b.inbox.damaged(c)
	}
}
