package repair

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
)

// Advanced is the outcome of Advance. Paths are relative to the checkout's root.
type Advanced struct {
	Checkout string   // empty: the branch is checked out nowhere, so an advance is all or nothing
	Restored []string // taken back to old
	Left     []string // hold something else: a person's changes
}

// Advance puts right what a [git.Repo.Advance] that was killed left in the checkout of the branch: it takes
// files that the fast-forward had already written back to old, after which the advance can be tried
// again, with the same or another new. Only paths that differ between old and new are looked at,
// and only while index and HEAD say that nobody else changed them. A file is taken back when it has
// new's content or a beginning of it (the kill may come in mid-write), or is gone; every other
// is a person's and stays, so no byte is lost that is not in old or new. It may be repeated.
//
// If the branch already holds new, the advance was finished and there is nothing to do. git.ErrMoved
// is returned when it holds neither; git.ErrLocked when the checkout is locked and the caller does
// not vouch, by removeLocks, that the locks are those that the killed git left.
func Advance(ctx context.Context, r *git.Repo, b git.Branch, old, new git.Hash, removeLocks bool) (Advanced, error) {
	held, found, err := r.ResolveRef(ctx, b.Ref())
	if err != nil {
		return Advanced{}, err
	}
	if !found || held != old && held != new {
		return Advanced{}, fmt.Errorf("repair the advance of %s from %s: %w", b, old.Short(), git.ErrMoved)
	}
	at, locks, err := r.AdvanceLocks(ctx, b)
	result := Advanced{Checkout: at}
	if err != nil {
		return result, err
	}
	if err := unlock(locks, removeLocks); err != nil && (held != new || !errors.Is(err, git.ErrLocked)) {
		return result, fmt.Errorf("repair the advance of %s: %w", b, err)
	}
	if held == new || at == "" {
		return result, nil
	}
	c := &checkout{Worktree: r.In(at), old: old, new: new}
	changes, err := r.Changes(ctx, old, new)
	if err == nil {
		err = c.takeBack(ctx, changes, &result)
	}
	if err != nil {
		return result, fmt.Errorf("repair %s: %w", at, err)
	}
	return result, nil
}

func unlock(locks []string, remove bool) error {
	for _, lock := range locks {
		if _, err := os.Lstat(lock); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if !remove {
			return fmt.Errorf("%w: %s", git.ErrLocked, lock)
		}
		if err := gitfile.Remove(lock); err != nil {
			return err
		}
	}
	return nil
}

// checkout is one in which an advance from old to new was killed.
type checkout struct {
	*git.Worktree
	old, new         git.Hash
	fromOld, fromNew map[string]bool // paths whose entries in the index are not those of old, and of new
}

// takeBack restores what the fast-forward left half-way to old, in the checkout and the index. A kill in between leaves a
// state that this repair knows.
func (c *checkout) takeBack(ctx context.Context, changes []git.Change, result *Advanced) (err error) {
	if c.fromOld, err = c.Staged(ctx, c.old); err != nil {
		return err
	}
	if c.fromNew, err = c.Staged(ctx, c.new); err != nil {
		return err
	}
	// What new added goes first: it may stand where old has a folder or a file. What is in the way after that is a person's.
	added, err := c.halfWay(ctx, changes, true, result)
	if err != nil {
		return err
	}
	var unstage []string
	for _, path := range added {
		if err := c.remove(path); err != nil {
			return err
		}
		if c.fromOld[path] {
			unstage = append(unstage, path)
		}
	}
	if err := c.onPaths(ctx, "", unstage, "update-index", "--force-remove", "-z", "--stdin"); err != nil {
		return err
	}
	others, err := c.halfWay(ctx, changes, false, result)
	if err != nil {
		return err
	}
	result.Restored = append(added, others...)
	return c.onPaths(ctx, ":(top,literal)", others, "restore", "--quiet", "--no-recurse-submodules", "--source="+string(c.old),
		"--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
}

// remove removes the file at a path that new added, and the folders that become empty. One that is only in the index has
// nothing of new's at its path.
func (c *checkout) remove(path string) error {
	mode, _, err := c.read(path)
	if err != nil || mode == missing || mode == obstructed {
		return err
	}
	full := c.full(path)
	if err := gitfile.Remove(full); err != nil {
		return err
	}
	for dir := filepath.Dir(full); dir != c.Path() && gitfile.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
	return nil
}

func (c *checkout) full(path string) string {
	return filepath.Join(c.Path(), filepath.FromSlash(path))
}

// onPaths runs a git that reads paths, unless there are none.
func (c *checkout) onPaths(ctx context.Context, prefix string, paths []string, args ...string) error {
	if len(paths) == 0 {
		return nil
	}
	var stdin strings.Builder
	for _, path := range paths {
		stdin.WriteString(prefix + path + "\x00")
	}
	_, err := c.Run(ctx, git.Command{Args: args, Stdin: []byte(stdin.String())})
	return err
}

// halfWay returns those of the paths, added by new or not, that the fast-forward left half-way. Those that a person
// changed go to result.Left. Paths that are still at old are in neither, and so are submodules, of which a
// fast-forward touches nothing but the index.
func (c *checkout) halfWay(ctx context.Context, changes []git.Change, added bool, result *Advanced) (paths []string, err error) {
	for _, d := range changes {
		if (d.Old == git.Entry{}) != added {
			continue
		}
		state := foreign
		if !c.fromOld[d.Path] || !c.fromNew[d.Path] {
			if state, err = c.state(ctx, d); err != nil {
				return nil, err
			}
		}
		switch {
		case state == foreign:
			result.Left = append(result.Left, d.Path)
		case state == halfWay || c.fromOld[d.Path]:
			paths = append(paths, d.Path)
		}
	}
	return paths, nil
}

// contentState says whose content a file of the checkout has.
type contentState int

const (
	untouched contentState = iota // old's; nothing to do
	halfWay                       // new's, a beginning of it, or gone
	foreign                       // a person's
)

// state judges a path by what stands there. A folder in place of a file that new adds is old's: what is in it are paths
// of their own.
func (c *checkout) state(ctx context.Context, d git.Change) (contentState, error) {
	if d.Old.Mode == git.ModeSubmodule || d.New.Mode == git.ModeSubmodule {
		return untouched, nil
	}
	added := d.Old == git.Entry{}
	mode, have, err := c.read(d.Path)
	switch {
	case err != nil:
		return foreign, err
	case added && (mode == missing || mode == obstructed):
		return untouched, nil
	case mode == missing:
		return halfWay, nil
	case mode == obstructed:
		return foreign, nil
	}
	if isOld, err := c.holds(ctx, c.old, d.Path, d.Old, mode, func(whole []byte) bool { return bytes.Equal(whole, have) }); err != nil {
		return foreign, err
	} else if isOld && (d.Old.Hash != d.New.Hash || mode != d.New.Mode) {
		return untouched, nil
	}
	// A kill cuts off the file that is written just then.
	isNew, err := c.holds(ctx, c.new, d.Path, d.New, mode, func(whole []byte) bool {
		return bytes.Equal(whole, have) || mode != git.ModeSymlink && bytes.HasPrefix(whole, have)
	})
	if err != nil || !isNew {
		return foreign, err
	}
	return halfWay, nil
}

// holds reports whether what stands at a path, of which read returned the mode, is the same as a commit's entry.
func (c *checkout) holds(ctx context.Context, commit git.Hash, path string, e git.Entry, mode string, same func(whole []byte) bool) (bool, error) {
	if e == (git.Entry{}) || (e.Mode == git.ModeSymlink) != (mode == git.ModeSymlink) {
		return false, nil
	}
	whole, err := c.Run(ctx, git.Command{Args: []string{"cat-file", "--filters", string(commit) + ":" + path}, Read: true})
	return err == nil && same(whole), err
}

// What read returns in place of a mode.
const (
	missing    = "missing"
	obstructed = "obstructed" // a folder stands there, or something that is not a folder above it
)

// read returns the mode and content of a file as git would see it.
func (c *checkout) read(path string) (mode string, content []byte, err error) {
	for parent := pathpkg.Dir(path); parent != "."; parent = pathpkg.Dir(parent) {
		if info, err := os.Lstat(c.full(parent)); err == nil && !info.IsDir() {
			return obstructed, nil, nil
		}
	}
	full := c.full(path)
	info, err := os.Lstat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing, nil, nil
	case err != nil:
		return "", nil, err
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := os.Readlink(full)
		return git.ModeSymlink, []byte(target), err
	case !info.Mode().IsRegular():
		return obstructed, nil, nil
	}
	mode = "100644"
	if info.Mode()&0o100 != 0 {
		mode = git.ModeExecutable
	}
	content, err = os.ReadFile(full)
	return mode, content, err
}
