package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/state"
)

// idName is the file in git's common folder that records whose tree is the live
// one, so that the tree of another rig in its place is noticed.
const idName = "chipset-rig-id"

// remember records where the rig is, and its ID.
func remember(repo *git.Repo, dir string, id state.RigID) error {
	if err := state.ReplaceOutside(filepath.Join(repo.CommonDir(), pointerName), []byte(dir+"\n")); err != nil {
		return err
	}
	return rememberID(repo, id)
}

// rememberID records the ID of the repository's rig.
func rememberID(repo *git.Repo, id state.RigID) error {
	return state.ReplaceOutside(filepath.Join(repo.CommonDir(), idName), []byte(string(id)+"\n"))
}

// pointerName is the file in git's common folder that records a rig's root.
const pointerName = "chipset"

// maxPointer bounds a file that holds one path, and maxGitFile one that people
// write for git, in bytes.
const (
	maxPointer = 64 << 10
	maxGitFile = 4 << 20
)

// Find returns the folder that holds .chipset: flag (--dir), else env ($CHIPSET_DIR),
// else the root recorded in the git repository around cwd, else that repository's main
// worktree, else the nearest parent of cwd with a .chipset. Errors: ErrNoRig.
func Find(ctx context.Context, flag, env, cwd string) (string, error) {
	for _, given := range []string{flag, env} {
		if given == "" {
			continue
		}
		dir, err := filepath.Abs(given)
		if err != nil {
			return "", err
		}
		if filepath.Base(dir) == DirName { // the folder itself was named
			dir = filepath.Dir(dir)
		}
		if !holdsRig(dir) {
			return "", fmt.Errorf("%s: %w", dir, ErrNoRig)
		}
		return dir, nil
	}
	if dir := recordedAround(cwd); dir != "" {
		return dir, nil
	}
	if repo, err := git.Open(ctx, cwd); err == nil {
		if dir := recorded(repo); dir != "" && holdsRig(dir) {
			return dir, nil
		}
		if holdsRig(repo.TopLevel()) {
			return repo.TopLevel(), nil
		}
	} else if !errors.Is(err, git.ErrNotRepo) && ctx.Err() != nil {
		return "", err
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if holdsRig(dir) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s: %w", cwd, ErrNoRig)
		}
	}
}

func holdsRig(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, DirName))
	return err == nil && info.IsDir()
}

// recordedAround is recorded for the usual case that cwd is in a checkout whose git
// folder is in the rig's root. It starts no process; "" means that the case is another.
func recordedAround(cwd string) string {
	dir := cwd
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
	common := commonDir(dir)
	data, err := state.ReadOutside(filepath.Join(common, pointerName), maxPointer)
	root := strings.TrimSuffix(string(data), "\n")
	if err != nil || !filepath.IsAbs(root) || !holdsRig(root) {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(common, "HEAD")); err != nil {
		return ""
	}
	here, err := os.Stat(common)
	if err != nil {
		return ""
	}
	there, err := os.Stat(filepath.Join(root, ".git"))
	if err != nil || !os.SameFile(here, there) {
		return ""
	}
	return root
}

// recorded returns the root that init recorded, or "". A root of another repository
// does not count: this repository is a copy of that one.
func recorded(repo *git.Repo) string {
	data, err := state.ReadOutside(filepath.Join(repo.CommonDir(), pointerName), maxPointer)
	dir := strings.TrimSuffix(string(data), "\n")
	if err != nil || !filepath.IsAbs(dir) || dir != repo.TopLevel() && !checkoutOf(repo, dir) {
		return ""
	}
	return dir
}

// checkoutOf reports whether a folder is a worktree of the repository.
func checkoutOf(repo *git.Repo, dir string) bool {
	there, err := os.Stat(commonDir(dir))
	if err != nil {
		return false
	}
	common, err := os.Stat(repo.CommonDir())
	return err == nil && os.SameFile(there, common)
}

// commonDir returns the git folder that the .git of a checkout leads to.
func commonDir(dir string) string {
	link := filepath.Join(dir, ".git")
	data, err := state.ReadOutside(link, maxPointer)
	if err != nil {
		return link
	}
	// A file that says where.
	link = strings.TrimSpace(strings.TrimPrefix(string(data), "gitdir:"))
	if !filepath.IsAbs(link) {
		link = filepath.Join(dir, link)
	}
	if filepath.Base(filepath.Dir(link)) == "worktrees" {
		link = filepath.Dir(filepath.Dir(link))
	}
	return link
}
