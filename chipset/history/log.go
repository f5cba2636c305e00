package history

import (
	"context"
	"math"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// Entry is one commit of the audit branch.
type Entry struct {
	Commit  git.Hash   `json:"commit"`
	When    state.Time `json:"when"`
	Author  string     `json:"author"`
	Subject string     `json:"subject"`
}

// Log lists the commits of a rig's audit branch, newest first, at most limit; 0 means
// all. If the branch does not exist, it returns a *state.Unknown.
func Log(ctx context.Context, r *rig.Rig, limit int) ([]Entry, error) {
	tip, _, err := resolve(ctx, r, "")
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = math.MaxInt32
	}
	commits, err := r.Git.Log(ctx, "", tip, limit)
	entries := make([]Entry, 0, len(commits))
	for _, c := range commits {
		entries = append(entries, entryOf(c))
	}
	return entries, err
}

func entryOf(c git.Commit) Entry { return Entry{c.Hash, state.At(c.When), c.Author, c.Subject} }
