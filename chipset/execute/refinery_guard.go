package execute

import (
	"context"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// landing is the last advance of the target, which is guarded for a while
// against a git of the person that was under way when it happened.
type landing struct {
	bead      state.BeadID
	mr        state.MergeID
	target    git.Branch
	from, to  git.Hash
	at        time.Time
	elsewhere bool // no checkout had the target when it was advanced
}

const (
	// guardTime is how long after a landing the guard stands: longer than any
	// reset or switch takes.
	guardTime = 30 * time.Second
	// guardEvery is how often it looks while nothing else happens, for the
	// first guardBusy; later it looks when the refinery wakes.
	guardEvery = 100 * time.Millisecond
	guardBusy  = time.Second
)

// recallLanding takes up the guard of an earlier process.
func (r *Refinery) recallLanding() error {
	all, _, err := r.Rig.Queue.Queue()
	if err != nil {
		return err
	}
	last := mergequeue.LastLanded(all, "")
	if last == nil {
		return nil
	}
	target, err := git.ParseBranch(last.TargetBranch)
	if err != nil {
		return nil //nolint:nilerr // doctor names it
	}
	r.last = &landing{bead: last.BeadID, mr: last.ID, target: target, from: git.Hash(stackBase(all, last)), to: git.Hash(last.MergedSHA),
		at: last.UpdatedAt.Time, elsewhere: true}
	if last.StackTip != "" {
		r.last.to = git.Hash(last.StackTip)
	}
	return nil
}

// stackBase is what the target held before a request landed, with its stack if
// it was one of several.
func stackBase(all []mergequeue.Request, q *mergequeue.Request) string {
	if len(q.Stack) > 0 {
		for i := range all {
			if all[i].ID == q.Stack[0] && all[i].StackTip == q.StackTip {
				return all[i].Onto
			}
		}
	}
	return q.Onto
}

// guard looks whether the last landing still stands, and restores it when a
// reset of the person's, which meant to move nothing, took it back.
func (r *Refinery) guard(ctx context.Context) error {
	l := r.last
	if l == nil {
		return nil
	}
	if age := r.Now().Sub(l.at); age < 0 || age > guardTime {
		r.last = nil
		return nil
	}
	tip, found, err := r.Rig.Git.ResolveRef(ctx, l.target.Ref())
	switch {
	case err != nil || !found:
		return err
	case tip == l.to:
		return r.catchUp(ctx, l)
	}
	taken, err := r.Rig.Git.TakenBack(ctx, l.target, l.from, l.to)
	if err != nil {
		return err
	}
	if !taken {
		r.last = nil // the target went on, or the person has decided
		return nil
	}
	if err := r.Rig.Git.Advance(ctx, l.target, l.from, l.to); err != nil {
		return err
	}
	if err := r.Rig.Git.Sync(ctx); err != nil {
		return err
	}
	r.tellRestored(l, "a git reset or stash in the checkout had taken "+string(l.target)+" back; it holds "+l.to.Short()+" again")
	return nil
}

func (r *Refinery) catchUp(ctx context.Context, l *landing) error {
	if !l.elsewhere {
		return nil
	}
	caught, err := r.Rig.Git.CatchUp(ctx, l.target, l.from, l.to)
	if r.Now().Sub(l.at) > guardBusy {
		l.elsewhere = false // every switch of that time is over
	}
	if caught {
		l.elsewhere = false
		r.tellRestored(l, "the checkout of "+string(l.target)+" had been left behind by a switch; its files follow "+l.to.Short()+" now")
	}
	return err
}

func (r *Refinery) tellRestored(l *landing, text string) {
	r.Rig.Events.Tell(event.RequestRestored(r.ID, event.Request{ID: l.mr, Bead: l.bead}, text))
	r.Say("%s: %s", l.bead, text)
}
