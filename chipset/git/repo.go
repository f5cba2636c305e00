package git

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

const (
	// defaultLockGrace is the LockGrace of a repository that was just opened.
	defaultLockGrace = 5 * time.Second
	// defaultDeadline is far more than a checkout of a large repository takes.
	defaultDeadline = 10 * time.Minute
)

// Repo is one repository with a main worktree. Its methods are safe for concurrent use.
type Repo struct {
	git    string   // the binary
	env    []string // of every command
	top    string
	common string
	// LockGrace is how long a lock file must stand unchanged before it counts as left behind. It
	// is set before the repository is shared.
	LockGrace time.Duration
	// Deadline is how long one command may take before its process group is killed. 0 means ten minutes. It is set before
	// the repository is shared.
	Deadline time.Duration
	// Steering holds patterns (* and ?) of files and folders that change what an agent or a test does. Untracked ones are
	// removed when a worktree is prepared for the next assignment, even if git ignores them, but not inside
	// ignored folders. It is set before the repository is shared.
	Steering []string
	// Own is the folder of the workers' worktrees, or "". A worker can write what git reads there about branches that are checked out or
	// being rebased, so it does not count for the person's branches. It is set before the repository is shared.
	Own       string
	worktrees sync.Mutex // held while worktrees are made, reset or removed
	// left records where this process left worktrees, by git directory.
	left     map[string]leftAt
	commits  memo
	objects  coprocess
	trees    coprocess
	identity configMemo[person]
	lfs      configMemo[bool]
}

// Open finds the repository that dir is in. dir may be any directory inside the main worktree or a
// linked one. It returns ErrNotRepo, ErrBare, or an *Error when git refuses the repository
// (another owner, a broken config). It changes nothing.
func Open(ctx context.Context, dir string) (*Repo, error) {
	binary, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	dir, err = gitfile.RealPath(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	r := &Repo{git: binary, env: Environment(os.Environ()), LockGrace: defaultLockGrace, left: map[string]leftAt{},
		objects: newObjects(), trees: newTrees()}
	gitDir, common, top, err := r.locate(ctx, dir)
	if err != nil {
		if exited(err, 128) && !insideRepository(dir) {
			return nil, fmt.Errorf("open %s: %w", dir, ErrNotRepo)
		}
		return nil, err
	}
	r.common = common
	if !filepath.IsAbs(r.common) {
		r.common = filepath.Join(dir, r.common)
	}
	if r.common, err = gitfile.RealPath(r.common); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if gitDir, err = gitfile.RealPath(gitDir); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if top != "" && gitDir == r.common {
		r.top, err = gitfile.RealPath(top)
	} else {
		err = r.findTop(ctx, dir, gitDir)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// locate finds the git directories of dir, with one git process at most in the usual cases. For a path with a newline, and for a dir
// outside every work tree, it runs one process for each answer and leaves top empty.
func (r *Repo) locate(ctx context.Context, dir string) (gitDir, common, top string, err error) {
	if gitDir, ok := locateWithoutGit(dir); ok {
		return gitDir, gitDir, dir, nil
	}
	out, err := r.run(ctx, place{dir: dir}, Command{Args: []string{"rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel"}, Read: true})
	if answers := strings.Split(line(out), "\n"); err == nil && len(answers) == 3 {
		return answers[0], answers[1], answers[2], nil
	}
	if gitDir, err = r.discover(ctx, dir, "--absolute-git-dir"); err != nil {
		return "", "", "", err
	}
	common, err = r.discover(ctx, dir, "--git-common-dir")
	return gitDir, common, "", err
}

// Init makes a repository in dir, which must exist, with the branch as its first one, and opens it.
// Git's templates (sample hooks and the like) are left out.
func Init(ctx context.Context, dir string, b Branch) (*Repo, error) {
	binary, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("init repository: %w", err)
	}
	r := &Repo{git: binary, env: Environment(os.Environ())}
	if _, err := r.run(ctx, place{dir: dir}, Command{Args: []string{"init", "-q", "--template=", "--initial-branch=" + string(b), "--", dir}}); err != nil {
		return nil, err
	}
	return Open(ctx, dir)
}

// discover asks git for one value, because a path may hold a newline.
func (r *Repo) discover(ctx context.Context, dir, what string) (string, error) {
	out, err := r.run(ctx, place{dir: dir}, Command{Args: []string{"rev-parse", what}, Read: true})
	return line(out), err
}

// findTop sets the root of the main worktree, also when dir is in a linked one or in the git directory.
func (r *Repo) findTop(ctx context.Context, dir, gitDir string) error {
	if gitDir == r.common {
		if inside, err := r.discover(ctx, dir, "--is-inside-work-tree"); err != nil {
			return err
		} else if inside == "true" {
			top, err := r.discover(ctx, dir, "--show-toplevel")
			if err != nil {
				return err
			}
			r.top, err = gitfile.RealPath(top)
			return err
		}
	}
	configured, found, err := r.config(ctx, "core.worktree")
	if err != nil {
		return err
	}
	if found {
		if !filepath.IsAbs(configured) {
			configured = filepath.Join(r.common, configured)
		}
		r.top, err = gitfile.RealPath(configured)
		return err
	}
	bare, _, err := r.config(ctx, "core.bare")
	if err != nil {
		return err
	}
	if bare == "true" || filepath.Base(r.common) != ".git" {
		return fmt.Errorf("open %s: %w", dir, ErrBare)
	}
	r.top = filepath.Dir(r.common)
	return nil
}

// insideRepository reports whether dir or a parent looks like a repository. It distinguishes a repository that git
// refuses from a directory without one.
func insideRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		_, head := os.Lstat(filepath.Join(dir, "HEAD"))
		_, objects := os.Lstat(filepath.Join(dir, "objects"))
		if head == nil && objects == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// TopLevel is the root of the main worktree, absolute and without symlinks.
func (r *Repo) TopLevel() string { return r.top }

// CommonDir is the git directory that all worktrees share, absolute and without symlinks.
func (r *Repo) CommonDir() string { return r.common }

// ExcludePath is the file with the ignore rules of this clone alone. It need not exist.
func (r *Repo) ExcludePath() string { return filepath.Join(r.common, "info", "exclude") }

// Check returns ErrNoCommits when HEAD of the main worktree names no commit. A shallow clone will do.
func (r *Repo) Check(ctx context.Context) error {
	_, found, err := r.ResolveCommit(ctx, "HEAD")
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", r.top, ErrNoCommits)
	}
	return err
}

// plain is the place of commands that touch no work tree.
func (r *Repo) plain() place { return place{dir: r.common, gitDir: r.common} }

// outward is plain for commands that reach a remote. Git resolves a relative URL, such as ../origin.git,
// from the working directory.
func (r *Repo) outward() place { return place{dir: r.top, gitDir: r.common} }

func (r *Repo) read(ctx context.Context, args ...string) ([]byte, error) {
	return r.run(ctx, r.plain(), Command{Args: args, Read: true})
}

// config reads one value; exit status 1 is git's "not set".
func (r *Repo) config(ctx context.Context, key string) (value string, found bool, err error) {
	out, err := r.read(ctx, "config", "--get", key)
	if exited(err, 1) {
		return "", false, nil
	}
	return line(out), err == nil, err
}
