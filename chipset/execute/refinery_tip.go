package execute

import (
	"context"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// tipRecord keeps the last tip of the target of which the person need not be told any more. What the rig landed itself
// since then the queue knows.
const tipRecord = state.RunDir + "/target-tip.json"

// knownTip is the content of tipRecord.
type knownTip struct {
	Target git.Branch `json:"target"`
	Tip    git.Hash   `json:"tip"`
	At     time.Time  `json:"at"`
}

// maxForeign bounds how many commits the person is shown.
const maxForeign = 20

// foreignTip looks whether somebody else moved the target: not the rig, not a checkout of the person's, not a remote. It
// costs no process while the target stands still, and none when it was moved by the rig or a checkout.
func (r *Refinery) foreignTip(ctx context.Context, queue []mergequeue.Request) (f refinery.Foreign, err error) {
	target, err := r.Rig.Target(ctx)
	if err != nil {
		return f, nil //nolint:nilerr // told where work lands
	}
	tip, plain := r.Rig.Git.PlainRef(target.Ref())
	if !plain || tip == r.known.Tip && target == r.known.Target {
		return f, nil
	}
	if r.known.Target != target {
		if r.known, err = recallTip(r.Rig, target); err != nil {
			return f, err
		}
	}
	if r.known.Tip == tip {
		return f, nil
	}
	if r.known.Tip == "" {
		return f, r.knowTip(target, tip)
	}
	if r.landedByUs(tip, queue) {
		r.known.Tip = tip
		return f, nil
	}
	if theirs, err := r.movedByPerson(ctx, tip); err != nil {
		return f, err
	} else if theirs {
		return f, r.knowTip(target, tip)
	}
	f = refinery.Foreign{Target: string(target), Tip: string(tip), Known: string(r.known.Tip)}
	if forward, err := r.Rig.Git.IsAncestor(ctx, r.known.Tip, tip); err == nil {
		f.Back = !forward
	}
	commits, err := r.Rig.Git.Log(ctx, r.known.Tip, tip, maxForeign)
	for _, c := range commits {
		f.Commits = append(f.Commits, fmt.Sprintf("%s %s (%s)", c.Hash.Short(), c.Subject, c.Author))
	}
	return f, err
}

// recallTip finds what is known of a target since an earlier process, or nothing.
func recallTip(r *rig.Rig, target git.Branch) (knownTip, error) {
	var known knownTip
	if r.Tree.ReadJSON(tipRecord, &known) != nil || known.Target != target {
		known = knownTip{Target: target}
	}
	last, err := r.Queue.LastLanded(string(target))
	if err == nil && last != nil && last.UpdatedAt.After(known.At) {
		known.Tip = git.Hash(last.LandingCommit())
	}
	return known, err
}

// knowFirstTip records the tip of a target of which nothing is known yet. Each role that starts workers or lands their
// work begins with it: later a worker could have moved the target.
func knowFirstTip(ctx context.Context, r *rig.Rig, now state.Time) error {
	target, err := r.Target(ctx)
	if err != nil {
		return ctx.Err() // told where work lands
	}
	known, err := recallTip(r, target)
	if err != nil || known.Tip != "" {
		return err
	}
	tip, found, err := r.Git.ResolveRef(ctx, target.Ref())
	if err != nil || !found {
		return err
	}
	return r.Tree.ReplaceJSON(tipRecord, knownTip{Target: target, Tip: tip, At: now.Time})
}

// landedByUs reports whether the rig itself put the tip on the target, or was just about to.
func (r *Refinery) landedByUs(tip git.Hash, queue []mergequeue.Request) bool {
	if r.last != nil && (r.last.to == tip || r.last.from == tip) {
		return true
	}
	for i := range queue {
		if q := &queue[i]; q.LandingCommit() == string(tip) || q.MergedSHA == string(tip) {
			return true
		}
	}
	last, err := r.Rig.Queue.LastLanded(string(r.known.Target))
	return err == nil && last != nil && (last.LandingCommit() == string(tip) || last.MergedSHA == string(tip))
}

// movedByPerson reports whether a checkout of the person's or a remote brought the tip.
func (r *Refinery) movedByPerson(ctx context.Context, tip git.Hash) (bool, error) {
	if made, err := r.Rig.Git.CheckoutMade(tip, r.Rig.Tree.Abs(state.WorktreeDir)); err != nil || made {
		return made, err
	}
	remotes, err := r.Rig.Git.ListRefs(ctx, "refs/remotes/")
	for _, known := range remotes {
		if known.Hash == tip {
			return true, err
		}
	}
	return false, err
}

// knowTip records that nobody needs to be told about a tip.
func (r *Refinery) knowTip(target git.Branch, tip git.Hash) error {
	known := knownTip{Target: target, Tip: tip, At: r.Now().Time}
	err := r.Rig.Tree.ReplaceJSON(tipRecord, known)
	if err == nil {
		r.known = known
	}
	return err
}
