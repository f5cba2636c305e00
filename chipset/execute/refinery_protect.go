package execute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// judge looks at what a rebase made of a request. A rebase follows renames: it may change what the branch did not.
// The result is that of a candidate that may not land, else None.
func (r *Refinery) judge(ctx context.Context, q *mergequeue.Request, onto, candidate git.Hash) (refinery.Result, error) {
	if why, err := carry.RefusedPaths(ctx, r.Rig, onto, candidate); err != nil {
		return refinery.Result{}, err
	} else if why != "" {
		return refinery.Result{Kind: refinery.Refused, Text: "its branch " + why}, nil
	}
	changes, err := r.Rig.Git.Changes(ctx, onto, candidate)
	if err != nil {
		return refinery.Result{}, err
	}
	isProtected := git.MatchPaths(r.protectedPaths()...)
	protected := slices.DeleteFunc(changes, func(c git.Change) bool { return !isProtected(c.Path) })
	if h := holdOf(protected, onto, candidate); h != nil && h.Change != q.Allowed {
		h.Stat, err = r.Rig.Git.DiffStat(ctx, onto, candidate, h.Paths...)
		return refinery.Result{Kind: refinery.Held, Hold: h}, err
	}
	return refinery.Result{}, nil
}

// protectedPaths are the patterns of merge.protect, if there are any, and the folder of the person's own hooks.
func (r *Refinery) protectedPaths() []string {
	paths := r.Rig.Def.Merge.Protect
	if len(paths) == 0 || r.hooks == "" {
		return paths
	}
	return append(slices.Clone(paths), "/"+r.hooks+"/")
}

// holdOf describes a change of protected files; nil for none.
func holdOf(changes []git.Change, onto, candidate git.Hash) *mergequeue.Hold {
	if len(changes) == 0 {
		return nil
	}
	h := &mergequeue.Hold{Onto: string(onto), Candidate: string(candidate), Count: len(changes)}
	sum := sha256.New()
	for _, c := range changes {
		_, _ = fmt.Fprintf(sum, "%s %s %s %s %s\x00", c.Old.Mode, c.Old.Hash, c.New.Mode, c.New.Hash, c.Path) // a hash takes everything
		if len(h.Paths) < mergequeue.MaxHeldPaths {
			h.Paths = append(h.Paths, c.Path)
		}
	}
	h.Change = hex.EncodeToString(sum.Sum(nil))
	return h
}
