package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state/wording"
)

// ResolveRef returns what a ref holds, by its full name and without peeling tags. found is false for a ref that does
// not exist.
func (r *Repo) ResolveRef(ctx context.Context, ref Ref) (h Hash, found bool, err error) {
	if err := ref.check(); err != nil {
		return "", false, err
	}
	if h, known := r.looseRef(ref); known {
		return h, true, nil
	}
	// cat-file also tries refs/tags/refs/… and the like, so only its "missing" can be believed.
	if _, found, err := r.info(ctx, string(ref)); err == nil && !found && !r.packed(ref) {
		return "", false, nil
	}
	out, err := r.read(ctx, "for-each-ref", "--format=%(objectname) %(refname)", string(ref))
	if err != nil {
		return "", false, err
	}
	for l := range strings.Lines(string(out)) {
		if object, name, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " "); name == string(ref) {
			h, err := ParseHash(object)
			return h, err == nil, err
		}
	}
	return "", false, nil
}

// ResolveCommit returns the commit that a revision of the main worktree names: HEAD, a hash, a full ref, or
// what a person typed. found is false if it names no commit.
func (r *Repo) ResolveCommit(ctx context.Context, revision string) (h Hash, found bool, err error) {
	return r.resolve(ctx, r.plain(), revision)
}

func (r *Repo) resolve(ctx context.Context, p place, revision string) (Hash, bool, error) {
	if revision == "" || strings.ContainsAny(revision, "\x00\n") || strings.HasPrefix(revision, "-") {
		return "", false, nil
	}
	name := revision
	if revision == "HEAD" && r.linked(p) {
		name = "worktrees/" + filepath.Base(p.gitDir) + "/HEAD"
	}
	if o, found, err := r.info(ctx, name+"^{commit}"); err == nil && found {
		return o.hash, true, nil
	}
	// Let git say why it was not found.
	out, err := r.run(ctx, p, Command{
		Args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"}, Read: true})
	if exited(err, 1) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	h, err := ParseHash(line(out))
	return h, err == nil, err
}

// BranchExists reports whether the local branch exists.
func (r *Repo) BranchExists(ctx context.Context, b Branch) (bool, error) {
	if err := b.check(); err != nil {
		return false, err
	}
	_, found, err := r.ResolveRef(ctx, b.Ref())
	return found, err
}

// CurrentBranch returns the branch of the main worktree, which may have no commits; found is false if HEAD
// is detached.
func (r *Repo) CurrentBranch(ctx context.Context) (b Branch, found bool, err error) {
	return r.headBranch(ctx, r.plain())
}

func (r *Repo) headBranch(ctx context.Context, p place) (Branch, bool, error) {
	if b, _, known := readHead(p.gitDir); known {
		return b, b != "", nil
	}
	out, err := r.run(ctx, p, Command{Args: []string{"symbolic-ref", "--quiet", "HEAD"}, Read: true})
	if exited(err, 1) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	name, ok := strings.CutPrefix(line(out), "refs/heads/")
	if !ok {
		return "", false, nil
	}
	b, err := ParseBranch(name)
	return b, err == nil, err
}

// DefaultTarget returns the branch that work lands on by default: main, else master,
// else the current branch. It returns ErrNoCommits if none of them has a commit.
func (r *Repo) DefaultTarget(ctx context.Context) (Branch, error) {
	candidates := []Branch{"main", "master"}
	current, found, err := r.CurrentBranch(ctx)
	if err != nil {
		return "", err
	}
	if found {
		candidates = append(candidates, current)
	}
	for _, b := range candidates {
		exists, err := r.BranchExists(ctx, b)
		if err != nil {
			return "", err
		}
		if exists {
			return b, nil
		}
	}
	if err := r.Check(ctx); err != nil {
		return "", err
	}
	return "", fmt.Errorf("default target of %s: no branch main or master, and HEAD is detached", r.top)
}

// IsAncestor reports whether ancestor is reachable from h. A commit is its own ancestor.
func (r *Repo) IsAncestor(ctx context.Context, ancestor, h Hash) (bool, error) {
	if err := checkCommits(ancestor, h); err != nil {
		return false, err
	}
	if ancestor == h {
		return true, nil
	}
	if c, known := r.walkRange(ctx, ancestor, h); known {
		return c.fork == ancestor, nil
	}
	_, err := r.read(ctx, "merge-base", "--is-ancestor", string(ancestor), string(h))
	if exited(err, 1) {
		return false, nil
	}
	return err == nil, err
}

// MergeBase returns the best common ancestor, or ErrUnrelated.
func (r *Repo) MergeBase(ctx context.Context, a, b Hash) (Hash, error) {
	if err := checkCommits(a, b); err != nil {
		return "", err
	}
	if c, known := r.walkRange(ctx, a, b); known {
		return c.fork, nil
	}
	out, err := r.read(ctx, "merge-base", string(a), string(b))
	if exited(err, 1) {
		return "", fmt.Errorf("merge base of %s and %s: %w", a.Short(), b.Short(), ErrUnrelated)
	}
	if err != nil {
		return "", err
	}
	return ParseHash(line(out))
}

// CountCommits counts the commits that head has and base has not.
func (r *Repo) CountCommits(ctx context.Context, base, head Hash) (int, error) {
	c, err := r.commitRange(ctx, base, head)
	return c.count, err
}

// Log lists at most limit commits that head has and base has not, newest first. An empty base means the
// whole history.
func (r *Repo) Log(ctx context.Context, base, head Hash, limit int) ([]Commit, error) {
	revision := string(head)
	if err := checkCommits(head); err != nil {
		return nil, err
	}
	if base != "" {
		if err := checkCommits(base); err != nil {
			return nil, err
		}
		revision = string(base) + ".." + revision
	}
	out, err := r.read(ctx, "log", "-z", "--no-color", "--no-decorate", "--no-mailmap", "--format=%H%n%an%n%ae%n%at%n%s",
		"--max-count="+strconv.Itoa(max(0, limit)), revision, "--")
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for _, record := range fields(out) {
		parts := strings.SplitN(record, "\n", 5)
		if len(parts) != 5 {
			return nil, fmt.Errorf("log %s: unexpected record %q", revision, wording.Clip(record, 80))
		}
		h, err := ParseHash(parts[0])
		if err != nil {
			return nil, err
		}
		seconds, err := strconv.ParseInt(parts[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("log %s: %w", revision, err)
		}
		commits = append(commits, Commit{Hash: h, Author: parts[1], Email: parts[2], When: time.Unix(seconds, 0).UTC(), Subject: parts[4]})
	}
	return commits, nil
}

// ChangedPaths lists the paths that head has changed since its merge base with base, or all paths if they
// share no history. A rename counts as two paths.
func (r *Repo) ChangedPaths(ctx context.Context, base, head Hash) ([]string, error) {
	c, err := r.commitRange(ctx, base, head)
	if err != nil {
		return nil, err
	}
	from := c.fork
	if from == "" {
		from, err = r.MergeBase(ctx, base, head)
	}
	var start Hash
	if errors.Is(err, ErrUnrelated) {
		start, err = r.emptyTree(ctx)
	} else if err == nil {
		start, err = r.treeOf(ctx, from)
	}
	if err != nil {
		return nil, err
	}
	list, err := r.changesFrom(ctx, start, head)
	var paths []string
	for _, c := range list {
		paths = append(paths, c.Path)
	}
	return paths, err
}

// emptyTree returns the name of the empty tree, which depends on the repository's object format.
func (r *Repo) emptyTree(ctx context.Context) (Hash, error) {
	out, err := r.run(ctx, r.plain(), Command{Args: []string{"hash-object", "-w", "-t", "tree", "--stdin"}})
	return Hash(line(out)), err
}

// TouchesPath reports whether head has changed top or anything below it since its merge base with base. top is one
// component at the root; case is ignored, because on some file systems .Chipset is .chipset.
func (r *Repo) TouchesPath(ctx context.Context, base, head Hash, top string) (bool, error) {
	paths, err := r.ChangedPaths(ctx, base, head)
	for _, path := range paths {
		if first, _, _ := strings.Cut(path, "/"); strings.EqualFold(plainName(first), top) {
			return true, err
		}
	}
	return false, err
}

// UpdateBranch moves or creates a branch by compare-and-swap. old == "" accepts any old value, ZeroHash means that
// the branch must not exist. A mismatch is ErrMoved. A checkout of the branch is not updated and
// then looks modified: for the target of merges use [Repo.Advance].
func (r *Repo) UpdateBranch(ctx context.Context, b Branch, new, old Hash) error {
	if err := b.check(); err != nil {
		return err
	}
	return r.UpdateRef(ctx, b.Ref(), new, old)
}

// UpdateRef is UpdateBranch for any ref.
func (r *Repo) UpdateRef(ctx context.Context, ref Ref, new, old Hash) error {
	if err := errors.Join(ref.check(), checkCommits(new)); err != nil {
		return err
	}
	if held, known := r.looseRef(ref); old == "" && known && held == new {
		return nil // git writes nothing either
	}
	args := []string{"update-ref", "--no-deref", "-m", "chipset", string(ref), string(new)}
	switch {
	case old == "":
	case old.IsZero():
		args = append(args, "") // update-ref's own word for "must not exist", in either hash length
	default:
		if err := old.check(); err != nil {
			return err
		}
		args = append(args, string(old))
	}
	return r.swap(ctx, ref, old, Command{Args: args})
}

// SwapRef moves or creates a ref by compare-and-swap as UpdateRef does (old == "" means that it must not exist), and in the
// same transaction deletes others, whatever they hold.
func (r *Repo) SwapRef(ctx context.Context, ref Ref, new, old Hash, drop ...Ref) error {
	if err := errors.Join(ref.check(), checkCommits(new)); err != nil {
		return err
	}
	var stdin strings.Builder
	if old == "" {
		old = ZeroHash
	}
	if old.IsZero() {
		fmt.Fprintf(&stdin, "create %s\x00%s\x00", ref, new)
	} else {
		if err := old.check(); err != nil {
			return err
		}
		fmt.Fprintf(&stdin, "update %s\x00%s\x00%s\x00", ref, new, old)
	}
	for _, d := range drop {
		if err := d.check(); err != nil {
			return err
		}
		fmt.Fprintf(&stdin, "delete %s\x00\x00", d)
	}
	return r.swap(ctx, ref, old, Command{Args: []string{"update-ref", "--no-deref", "-m", "chipset", "-z", "--stdin"}, Stdin: []byte(stdin.String())})
}

// BranchDeletion is a branch to be deleted.
type BranchDeletion struct {
	Branch Branch
	Holds  Hash // what it must hold
	Keep   Ref  // written to hold the same in the same transaction, or ""
}

// DeleteBranches deletes branches by compare-and-swap, all in one transaction. A ref to keep
// is written even if its branch does not exist any more. It returns ErrMoved, or
// ErrBranchInUse if a worktree has one of them checked out; then nothing has changed. A branch that does not exist
// is not an error.
func (r *Repo) DeleteBranches(ctx context.Context, all ...BranchDeletion) error {
	var stdin strings.Builder
	for _, u := range all {
		if u.Keep != "" {
			if err := u.Keep.check(); err != nil {
				return err
			}
		}
		found, err := r.deletable(ctx, u.Branch, u.Holds)
		if err != nil {
			return err
		}
		if u.Keep != "" {
			fmt.Fprintf(&stdin, "update %s\x00%s\x00\x00", u.Keep, u.Holds)
		}
		if found {
			fmt.Fprintf(&stdin, "delete %s\x00%s\x00", u.Branch.Ref(), u.Holds)
		}
	}
	if stdin.Len() == 0 {
		return nil
	}
	_, err := r.run(ctx, r.plain(), Command{Args: []string{"update-ref", "--no-deref", "-m", "chipset", "-z", "--stdin"}, Stdin: []byte(stdin.String())})
	if err == nil || !exited(err, 1, 128) {
		return err
	}
	// git has one exit status for "moved" and for every other failure, so look.
	for _, u := range all {
		if current, found, lookErr := r.ResolveRef(ctx, u.Branch.Ref()); lookErr == nil && found && current != u.Holds {
			return fmt.Errorf("delete %s: %w", u.Branch, ErrMoved)
		}
	}
	return err
}

// deletable reports whether the branch exists. A branch in use is an ErrBranchInUse.
func (r *Repo) deletable(ctx context.Context, b Branch, old Hash) (bool, error) {
	if err := errors.Join(b.check(), checkCommits(old)); err != nil {
		return false, err
	}
	if _, found, err := r.ResolveRef(ctx, b.Ref()); err != nil || !found {
		return false, err
	}
	path, used, err := r.CheckedOutAt(ctx, b)
	if err == nil && used {
		err = fmt.Errorf("delete %s: %w: %s", b, ErrBranchInUse, path)
	}
	return true, err
}

// swap runs an update-ref that fails unless the ref holds old, and returns ErrMoved then.
func (r *Repo) swap(ctx context.Context, ref Ref, old Hash, c Command) error {
	_, err := r.run(ctx, r.plain(), c)
	if err == nil || old == "" || !exited(err, 1, 128) {
		return err
	}
	// git has one exit status for "moved" and for every other failure, so look.
	current, found, lookErr := r.ResolveRef(ctx, ref)
	if lookErr != nil {
		return err
	}
	if found == old.IsZero() || (found && current != old) {
		return fmt.Errorf("update %s from %s: %w", ref, old.Short(), ErrMoved)
	}
	return err
}

// RefExists reports whether a ref exists, loose or packed, even if it is torn.
func (r *Repo) RefExists(ctx context.Context, ref Ref) (bool, error) {
	if err := ref.check(); err != nil {
		return false, err
	}
	if _, err := os.Lstat(filepath.Join(r.common, filepath.FromSlash(string(ref)))); err == nil {
		return true, nil
	}
	_, found, err := r.ResolveRef(ctx, ref)
	return found, err
}
