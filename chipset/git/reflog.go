package git

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
)

// maxReflog bounds how much of the end of a reflog is read, in bytes, and maxTries how many of its commits are tried.
const (
	maxReflog = 1 << 20
	maxTries  = 50
)

// lastWhole is the newest commit in a reflog that is there, or "". all tells that there is no older one that was not
// tried.
func (r *Repo) lastWhole(ctx context.Context, reflog string) (h Hash, all bool, err error) {
	lines, all, err := lastLines(reflog)
	for i, h := range commitsOf(lines) {
		if i == maxTries {
			return "", false, nil
		}
		if whole, err := r.wholeCommit(ctx, h); err != nil || whole {
			return h, true, err
		}
	}
	return "", all, err
}

// commitsOf are the commits to which the lines of a reflog lead, each once, the newest first.
func commitsOf(lines []string) []Hash {
	var all []Hash
	known := map[Hash]bool{}
	for _, l := range slices.Backward(lines) {
		parts := strings.SplitN(l, " ", 3)
		if len(parts) < 3 {
			continue
		}
		if h := Hash(parts[1]); h.check() == nil && !h.IsZero() && !known[h] {
			known[h] = true
			all = append(all, h)
		}
	}
	return all
}

// lastLines are the last lines of a reflog; none where there is no plain file. all tells that they are all of it.
func lastLines(reflog string) (lines []string, all bool, err error) {
	info, err := os.Lstat(reflog)
	if err != nil || !info.Mode().IsRegular() {
		return nil, true, nil //nolint:nilerr // without a reflog nothing is told
	}
	f, err := os.Open(reflog)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	from := max(0, info.Size()-maxReflog)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxReflog))
	if err != nil {
		return nil, false, err
	}
	lines = strings.Split(string(data), "\n")
	if from > 0 {
		lines = lines[1:] // it may have lost its beginning
	}
	return lines, from == 0, nil
}
