package git

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state/wording"
)

// ownDirectory is the folder of a worktree that never counts as work.
const ownDirectory = ".chipset"

// Head returns the commit that is checked out; found is false on a branch without commits.
func (w *Worktree) Head(ctx context.Context) (h Hash, found bool, err error) {
	p, err := w.place()
	if err != nil {
		return "", false, err
	}
	return w.repo.resolve(ctx, p, "HEAD")
}

// HeadBranch returns the branch that is checked out; found is false if HEAD is detached.
func (w *Worktree) HeadBranch(ctx context.Context) (b Branch, found bool, err error) {
	p, err := w.place()
	if err != nil {
		return "", false, err
	}
	return w.repo.headBranch(ctx, p)
}

// Status compares the worktree with its index and HEAD. It takes no locks. It returns *UnfitError for a worktree with
// an obstacle that git can't read.
func (w *Worktree) Status(ctx context.Context) (Status, error) {
	p, err := w.place()
	if err != nil {
		return Status{}, err
	}
	return w.status(ctx, p)
}

// rawStatus does not enter repositories inside the worktree: git would run there with their configuration.
func (w *Worktree) rawStatus(ctx context.Context, p place) ([]byte, error) {
	if w.repo.linked(p) {
		if err := w.passable(ctx, p); err != nil {
			return nil, err
		}
	}
	return w.repo.run(ctx, p, Command{Read: true, Args: []string{"status", "--porcelain=v2", "-z",
		"--untracked-files=all", "--ignore-submodules=dirty", "--no-renames", "--no-show-stash"}})
}

// untouched reports whether git sees no difference to HEAD, including .chipset, and no operation is in
// progress. A worktree that git can't compare is not untouched.
func (w *Worktree) untouched(ctx context.Context, p place) (bool, error) {
	if operation(p.gitDir) != NoOperation {
		return false, nil
	}
	out, err := w.rawStatus(ctx, p)
	var unfit *UnfitError
	if exited(err, 128) || errors.As(err, &unfit) {
		return false, nil
	}
	return err == nil && len(out) == 0, err
}

// idle reports whether nothing would be lost if the worktree is checked out at base and the branch b is reset: HEAD is detached
// at a commit that base, another branch or a ref below refs/chipset/ reaches, or that was on a branch when
// this process left it, no file differs from it, and base ignores the same files. It may report false for an idle worktree.
func (w *Worktree) idle(ctx context.Context, p place, b Branch, base Hash) bool {
	_, head, known := readHead(p.gitDir)
	if !known || head == "" {
		return false
	}
	if untouched, err := w.untouched(ctx, p); err != nil || !untouched {
		return false
	}
	if w.mayHide(p) {
		return false
	}
	if w.steered(ctx, p, head) || w.repo.ignoresOtherwise(ctx, head, base) {
		return false
	}
	if left := w.repo.left[p.gitDir]; left.head == head && left.branch != b {
		return true
	}
	if c, known := w.repo.walkRange(ctx, head, base); known && c.fork == head {
		return true
	}
	out, err := w.repo.read(ctx, "for-each-ref", "--count=2", "--format=%(refname)", "--contains", string(head), "refs/heads/", "refs/chipset/")
	for name := range strings.Lines(string(out)) {
		if strings.TrimSuffix(name, "\n") != string(b.Ref()) {
			return err == nil
		}
	}
	return false
}

// ignoresOtherwise reports whether two commits may ignore different files: a file that one ignores would be work in the
// other.
func (r *Repo) ignoresOtherwise(ctx context.Context, before, after Hash) bool {
	if before == after {
		return false
	}
	changed, err := r.Changes(ctx, before, after)
	return err != nil || slices.ContainsFunc(changed, func(c Change) bool { return path.Base(c.Path) == ".gitignore" })
}

func (w *Worktree) status(ctx context.Context, p place) (Status, error) {
	out, err := w.rawStatus(ctx, p)
	if err != nil {
		return Status{}, err
	}
	status := Status{Operation: operation(p.gitDir)}
	for _, record := range fields(out) {
		kind, path, err := parseStatus(record)
		if err != nil {
			return Status{}, err
		}
		switch {
		case isOwn(path):
			status.ownStaged = status.ownStaged || staged(record)
		case kind == 'u':
			status.Unmerged = append(status.Unmerged, path)
		case kind == '?' && strings.HasSuffix(path, "/"):
			status.Embedded = append(status.Embedded, strings.TrimSuffix(path, "/"))
		default:
			status.Dirty = append(status.Dirty, path)
		}
	}
	return status, nil
}

// parseStatus reads one record of porcelain v2: its kind, a fixed number of fields, and the path.
func parseStatus(record string) (kind byte, path string, err error) {
	columns := map[byte]int{'1': 9, 'u': 11, '?': 2}
	if record == "" || columns[record[0]] == 0 {
		return 0, "", fmt.Errorf("status: unexpected record %q", wording.Clip(record, 80))
	}
	n := columns[record[0]]
	parts := strings.SplitN(record, " ", n)
	if len(parts) != n {
		return 0, "", fmt.Errorf("status: unexpected record %q", wording.Clip(record, 80))
	}
	return record[0], parts[n-1], nil
}

// staged reports whether a tracked path differs between index and HEAD, or is unmerged.
func staged(record string) bool { return record[0] == 'u' || record[0] == '1' && record[2] != '.' }

// isOwn reports whether path is the top-level .chipset or below it.
func isOwn(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return first == ownDirectory
}
