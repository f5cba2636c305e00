package mergequeue

import (
	"fmt"
	"slices"

	"github.com/gastown-chipset/chipset/state/audit"
)

// History returns the audit rule of merge requests.
func History() audit.Rule {
	return audit.Rule{Patterns: []string{"merge-queue/*.json"}, CheckChange: audit.Typed(check, CheckChange), CheckNew: true}
}

// CheckChange returns an error unless after can be reached from before by legal steps. A
// nil before means that the request is new.
func CheckChange(before, after *Request) error {
	if before == nil {
		first := *after
		first.Status, first.Attempts, first.MergedSHA = Pending, 0, ""
		before = &first
	}
	if err := audit.Fixed("seq", before.Seq, after.Seq, "bead_id", before.BeadID, after.BeadID,
		"assignment_id", before.AssignmentID, after.AssignmentID, "agent_id", before.AgentID, after.AgentID,
		"source_branch", before.SourceBranch, after.SourceBranch, "target_branch", before.TargetBranch, after.TargetBranch,
		"head", before.Head, after.Head, "base", before.Base, after.Base,
		"submitted_at", before.SubmittedAt.String(), after.SubmittedAt.String()); err != nil {
		return err
	}
	tries := after.Attempts - before.Attempts
	switch {
	case tries < 0:
		return fmt.Errorf("attempts fell from %d to %d", before.Attempts, after.Attempts)
	case after.Status == Merged && !after.HeldBefore() && (after.MergedSHA == "" || after.MergedSHA != after.Candidate):
		return fmt.Errorf("merged, but merged_sha %q is not the candidate %q", after.MergedSHA, after.Candidate)
	case before.Status == Merged && before.MergedSHA != after.MergedSHA:
		return fmt.Errorf("merged_sha changed from %s to %s", before.MergedSHA, after.MergedSHA)
	case after.Status != Merged && after.MergedSHA != "":
		return fmt.Errorf("%s, but with a merged_sha", after.Status)
	case !reachable(before.Status, after.Status, tries):
		return fmt.Errorf("%s can't become %s in %d tries", before.Status, after.Status, tries)
	}
	return nil
}

// reachable reports whether one status can lead to another with exactly that many tries.
func reachable(from, to Status, tries int) bool {
	at := closure([]Status{from})
	for range min(tries, 4) { // from the second try on, one more changes nothing
		if !slices.Contains(at, Pending) {
			return false
		}
		at = closure([]Status{Merging})
	}
	return slices.Contains(at, to)
}

// closure returns the statuses that can be reached without another try.
func closure(at []Status) []Status {
	for i := 0; i < len(at); i++ {
		for _, s := range at[i].next() {
			if s != Merging && !slices.Contains(at, s) {
				at = append(at, s)
			}
		}
	}
	return at
}
