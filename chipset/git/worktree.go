package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// Worktree is one checkout of a Repo. It holds only the path, so it may be made before the
// worktree exists; its methods return ErrNotWorktree if there is none at the path.
type Worktree struct {
	repo *Repo
	path string
}

// In returns the worktree with its root at path: the main one or a linked one.
func (r *Repo) In(path string) *Worktree { return &Worktree{repo: r, path: path} }

// Path returns the path that In was called with.
func (w *Worktree) Path() string { return w.path }

// Run is [Repo.Run] in the worktree.
func (w *Worktree) Run(ctx context.Context, c Command) ([]byte, error) {
	p, err := w.place()
	if err != nil {
		return nil, err
	}
	return w.repo.run(ctx, p, c)
}

// GitDir returns the worktree's git directory: the common one for the main worktree, a folder below its "worktrees" for a
// linked one.
func (w *Worktree) GitDir() (string, error) { return w.repo.gitDirOf(w.path) }

// Registration is one entry of git's list of worktrees.
type Registration struct {
	Path     string
	Head     Hash   // empty if there is no commit yet
	Branch   Branch // empty if detached
	Detached bool
	Bare     bool
	Locked   bool
	Prunable bool // its directory is gone and nothing protects the entry
}

// ListWorktrees lists all registered worktrees, the main one first.
func (r *Repo) ListWorktrees(ctx context.Context) ([]Registration, error) {
	out, err := r.read(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, err
	}
	var list []Registration
	for record := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00\x00"), "\x00\x00") {
		entry, err := parseRegistration(record)
		if err != nil {
			return nil, fmt.Errorf("list worktrees: %w", err)
		}
		list = append(list, entry)
	}
	// git derives the main path from the git directory, which is wrong if that is elsewhere.
	if len(list) > 0 && !list[0].Bare {
		list[0].Path = r.top
	}
	return list, nil
}

func parseRegistration(record string) (Registration, error) {
	var entry Registration
	for attribute := range strings.SplitSeq(record, "\x00") {
		key, value, _ := strings.Cut(attribute, " ")
		switch key {
		case "worktree":
			entry.Path = value
		case "HEAD":
			h, err := ParseHash(value)
			if err != nil {
				return entry, err
			}
			if !h.IsZero() {
				entry.Head = h
			}
		case "branch":
			entry.Branch = Branch(strings.TrimPrefix(value, "refs/heads/"))
		case "detached":
			entry.Detached = true
		case "bare":
			entry.Bare = true
		case "locked":
			entry.Locked = true
		case "prunable":
			entry.Prunable = true
		}
	}
	return entry, nil
}

// CheckedOutAt returns the root of the worktree that has the branch checked out. A worktree below Own does not count; neither does one
// whose directory is gone, unless it is locked (it may be on a disk that is not mounted).
func (r *Repo) CheckedOutAt(ctx context.Context, b Branch) (path string, found bool, err error) {
	if err := b.check(); err != nil {
		return "", false, err
	}
	paths, err := r.checkouts(ctx, b, false)
	if err != nil || len(paths) == 0 {
		return "", false, err
	}
	return paths[0], true, nil
}

// registeredLink returns the path of the .git file that a linked worktree's registration names.
func registeredLink(admin string) (string, error) {
	data, err := gitfile.ReadSmall(filepath.Join(admin, "gitdir"))
	if err != nil {
		return "", err
	}
	link := strings.TrimSuffix(string(data), "\n")
	if !filepath.IsAbs(link) {
		link = filepath.Join(admin, link)
	}
	return link, nil
}

// gitDirOf returns the git directory of the worktree at path. It goes by git's own registry, never by
// the .git file in the worktree, which a worker may have removed or changed. A worker can also have its own
// registration name the worktree of somebody else: one that git has named after the path comes first.
func (r *Repo) gitDirOf(path string) (string, error) {
	real, err := gitfile.RealPath(path)
	if err != nil {
		return "", fmt.Errorf("worktree: %w", err)
	}
	if real == r.top {
		return r.common, nil
	}
	registry := filepath.Join(r.common, "worktrees")
	entries, err := os.ReadDir(registry)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("worktree: %w", err)
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int {
		return cmp.Compare(named(b, real), named(a, real))
	})
	for _, entry := range entries {
		admin := filepath.Join(registry, entry.Name())
		link, err := registeredLink(admin)
		if err == nil {
			link, err = gitfile.RealPath(filepath.Dir(link))
		}
		switch {
		case errors.Is(err, syscall.EIO): // it may be the one at path
			return "", fmt.Errorf("worktree: %w", err)
		case err == nil && link == real:
			return admin, nil
		}
	}
	return "", fmt.Errorf("%s: %w", path, ErrNotWorktree)
}

// named returns 1 for a registration with the name of a worktree's folder, else 0.
func named(registration os.DirEntry, real string) int {
	if registration.Name() == filepath.Base(real) {
		return 1
	}
	return 0
}

// place returns where the worktree's commands run.
func (w *Worktree) place() (place, error) {
	gitDir, err := w.repo.gitDirOf(w.path)
	if err != nil {
		return place{}, err
	}
	real, err := gitfile.RealPath(w.path)
	if err != nil {
		return place{}, err
	}
	return place{dir: real, gitDir: gitDir, workTree: real}, nil
}

// linked reports whether p is a linked worktree, which only the rig uses.
func (r *Repo) linked(p place) bool { return p.gitDir != r.common }

// PrepareWorktree makes the linked worktree at path ready for a worker: at base, on branch (made or reset to
// base), without untracked files. Ignored files stay, because they are mostly build caches.
// Whatever an earlier worker left there is thrown away, so salvage first.
//
// It copes with what a killed git leaves: a registration without files, a broken .git file, locks, an operation in
// progress, an unreadable index. A worktree with files whose registration is torn is for repair.Worktree. It returns ErrForeignDirectory
// if something else is at path, and ErrBranchInUse. No other process may prepare
// worktrees of the same repository at the same time.
func (r *Repo) PrepareWorktree(ctx context.Context, path string, b Branch, base Hash) error {
	if err := errors.Join(b.check(), checkCommits(base)); err != nil {
		return fmt.Errorf("prepare worktree %s: %w", path, err)
	}
	r.worktrees.Lock()
	defer r.worktrees.Unlock()
	if err := r.prepare(ctx, path, b, base); err != nil {
		return fmt.Errorf("prepare worktree %s: %w", path, err)
	}
	return nil
}

// PrepareDetached is PrepareWorktree without a branch, for the refinery.
func (r *Repo) PrepareDetached(ctx context.Context, path string, base Hash) error {
	r.worktrees.Lock()
	defer r.worktrees.Unlock()
	err := checkCommits(base)
	if err == nil {
		err = r.prepare(ctx, path, "", base)
	}
	if err != nil {
		return fmt.Errorf("prepare worktree %s: %w", path, err)
	}
	return nil
}

// elsewhere reports whether the last component of a path exists and is not a folder: the target of a link
// was never made as a worktree, and is somebody's own.
func elsewhere(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}

func (r *Repo) prepare(ctx context.Context, path string, b Branch, base Hash) error {
	if elsewhere(path) {
		return fmt.Errorf("%w: it is a link or a file", ErrForeignDirectory)
	}
	real, err := gitfile.RealPath(path)
	if err != nil {
		return err
	}
	if real == r.top {
		return fmt.Errorf("%w: it is the main worktree", ErrForeignDirectory)
	}
	if err := r.mendCommondirs(); err != nil {
		return err
	}
	if b != "" {
		if err := errors.Join(r.checkUnused(ctx, b, real), r.FreeBranch(ctx, b)); err != nil {
			return err
		}
	}
	there, err := r.registered(real)
	if err != nil {
		return err
	}
	if !there {
		return r.addWorktree(ctx, real, b, base)
	}
	w := r.In(real)
	p, err := w.place()
	if err != nil {
		return err
	}
	if err := w.heal(ctx, p); err != nil {
		return err
	}
	target := []string{"--detach", string(base)}
	if b != "" {
		target = onBranch(b, base)
	}
	return w.forceCheckout(ctx, p, target...)
}

func onBranch(b Branch, base Hash) []string {
	return []string{"--no-track", "-B", string(b), string(base)}
}

// addWorktree makes a new worktree in the state in which prepare leaves one.
func (r *Repo) addWorktree(ctx context.Context, real string, b Branch, base Hash) error {
	args := []string{"worktree", "add", "--quiet", "--detach", real, string(base)}
	if b != "" {
		args = []string{"worktree", "add", "--quiet", "--no-track", "-B", string(b), real, string(base)}
	}
	_, err := r.run(ctx, r.plain(), Command{Args: args})
	return err
}

// PrepareIdle is PrepareWorktree for the usual case that the worktree is as ReleaseWorktree left it, with
// half the processes. It needs no salvage before it: if anything could be lost, needs healing or
// fails, it returns false, and the caller salvages and calls PrepareWorktree.
func (r *Repo) PrepareIdle(ctx context.Context, path string, b Branch, base Hash) (ready bool) {
	if errors.Join(b.check(), checkCommits(base)) != nil {
		return false
	}
	r.worktrees.Lock()
	defer r.worktrees.Unlock()
	p, err := r.In(path).ours()
	if err != nil || !gitfile.LinksTo(p.workTree, p.gitDir) {
		return false
	}
	w := r.In(p.workTree)
	if r.clearLocks(ctx, p.gitDir) != nil || r.checkUnused(ctx, b, p.workTree) != nil || r.FreeBranch(ctx, b) != nil || !w.idle(ctx, p, b, base) {
		return false
	}
	return w.checkout(ctx, p, onBranch(b, base)...) == nil
}

func (r *Repo) checkUnused(ctx context.Context, b Branch, except string) error {
	paths, err := r.checkouts(ctx, b, true)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if at, err := gitfile.RealPath(path); err == nil && at != except {
			return fmt.Errorf("%w: %s at %s", ErrBranchInUse, b, path)
		}
	}
	return nil
}

// registered reports whether there is a usable worktree at path. If it returns false and no error, nothing is in the way
// of making one.
func (r *Repo) registered(real string) (bool, error) {
	entries, err := os.ReadDir(real)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	work := false
	for _, e := range entries {
		if e.Name() == ".git" && !e.Type().IsRegular() {
			return false, fmt.Errorf("%w: it is a repository of its own", ErrForeignDirectory)
		}
		work = work || e.Name() != ".git"
	}
	admin, err := r.gitDirOf(real)
	known := err == nil
	switch {
	case err != nil && !errors.Is(err, ErrNotWorktree):
		return false, err
	case !work:
		return false, r.forget(real, admin)
	case !known:
		return false, ErrForeignDirectory
	case gitfile.LinksTo(real, admin):
		return true, nil
	}
	return true, gitfile.Write(filepath.Join(real, ".git"), "gitdir: "+admin+"\n")
}

// forget sets aside the registration, which may be "", of a folder that is gone or holds only a file
// .git.
func (r *Repo) forget(real, admin string) error {
	if _, err := os.Lstat(real); err == nil {
		if err := gitfile.Remove(filepath.Join(real, ".git")); err != nil {
			return err
		}
	}
	if admin == "" {
		return nil
	}
	_, err := gitfile.SetAside(r.common, admin)
	return err
}

// mendCommondirs restores commondir files that a power cut tore: one torn registration keeps git from making any other
// worktree.
func (r *Repo) mendCommondirs() error {
	dirs, err := r.gitDirs()
	if err != nil {
		return err
	}
	for _, admin := range dirs[1:] {
		if _, err := os.Lstat(filepath.Join(admin, "gitdir")); err != nil {
			continue // not a registration, or one that is being removed
		}
		text, err := gitfile.ReadLine(filepath.Join(admin, "commondir"))
		if !filepath.IsAbs(text) {
			text = filepath.Join(admin, text)
		}
		if real, realErr := gitfile.RealPath(text); err == nil && realErr == nil && real == r.common {
			continue
		}
		if err := gitfile.Write(filepath.Join(admin, "commondir"), "../..\n"); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseWorktree leaves the linked worktree at path clean, on no branch, for the next assignment: at the commit at if
// it can be checked out, which saves the next preparation most of its work; else, or if at is "", at its HEAD. Uncommitted
// work is lost, so salvage first. ErrNotWorktree is returned if there is none.
func (r *Repo) ReleaseWorktree(ctx context.Context, path string, at Hash) error {
	r.worktrees.Lock()
	defer r.worktrees.Unlock()
	w := r.In(path)
	p, err := w.place()
	if err == nil && !r.linked(p) {
		err = fmt.Errorf("%w: it is the main worktree", ErrNotWorktree)
	}
	if err == nil {
		err = w.heal(ctx, p)
	}
	if err == nil {
		err = w.detach(ctx, p, at)
	}
	if err != nil {
		return fmt.Errorf("release worktree %s: %w", path, err)
	}
	return nil
}

// LeaveWorktree is ReleaseWorktree without a git process, for a linked worktree whose content was just committed: it
// detaches HEAD and changes no file. It does nothing and returns false if more is needed. PrepareIdle detects files
// added afterwards.
func (r *Repo) LeaveWorktree(ctx context.Context, path string) (left bool) {
	r.worktrees.Lock()
	defer r.worktrees.Unlock()
	p, err := r.In(path).ours()
	if err != nil || operation(p.gitDir) != NoOperation {
		return false
	}
	b, _, known := readHead(p.gitDir)
	if !known || b == "" {
		return false
	}
	h, known := r.looseRef(b.Ref())
	if !known || gitfile.Write(filepath.Join(p.gitDir, "HEAD"), string(h)+"\n") != nil {
		return false
	}
	r.left[p.gitDir] = leftAt{b, h}
	return true
}

// leftAt is the commit at which a worktree was left, and the branch that held it.
type leftAt struct {
	branch Branch
	head   Hash
}

func (w *Worktree) detach(ctx context.Context, p place, at Hash) error {
	if at.check() == nil && w.checkout(ctx, p, "--detach", string(at)) == nil {
		return w.clean(ctx, p)
	}
	return w.forceCheckout(ctx, p, "--detach")
}

// ForgetWorktree removes the registration of the linked worktree at path, whose folder is gone or holds only a file .git.
// ErrForeignDirectory is returned for any other folder. A worktree that is not registered is not an error.
func (r *Repo) ForgetWorktree(path string) error {
	r.worktrees.Lock()
	defer r.worktrees.Unlock()
	real, err := gitfile.RealPath(path)
	if err == nil && real == r.top {
		err = fmt.Errorf("%w: it is the main worktree", ErrNotWorktree)
	}
	known := false
	if err == nil {
		known, err = r.registered(real)
	}
	if err == nil && known {
		err = ErrForeignDirectory
	}
	if err != nil {
		return fmt.Errorf("forget worktree %s: %w", path, err)
	}
	return nil
}
