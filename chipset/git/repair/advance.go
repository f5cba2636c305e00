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

// Advanced is the result of Advance. Paths are relative to the checkout's root.
type Advanced struct {
	Checkout string   // empty if the branch is checked out nowhere; then an advance is atomic
	Restored []string // reset to old
	Left     []string // left alone, because they hold a person's changes
}

// Advance mends the checkout of a branch after a [git.Repo.Advance] was killed: it resets the
// files that the fast-forward had already written to old, so that the advance can be tried
// again, with the same or another new. It looks only at paths that differ between old and new,
// and only if the index shows no staged change of a person's. A file is reset if it has
// new's content or a prefix of it (the kill may come in mid-write), or is missing; any other
// content is a person's and stays, so no byte is lost that is not in old or new. It may be repeated.
//
// If the branch already holds new, the advance was finished and there is nothing to do. git.ErrMoved
// is returned if it holds neither; git.ErrLocked if the checkout is locked, unless removeLocks says
// that the killed git left the locks.
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

// checkout is a checkout in which an advance from old to new was killed.
type checkout struct {
	*git.Worktree
	old, new         git.Hash
	fromOld, fromNew map[string]bool // paths whose entries in the index are not those of old, and of new
}

// takeBack resets half-written paths to old, in the checkout and the index. After a kill in between it can be
// repeated.
func (c *checkout) takeBack(ctx context.Context, changes []git.Change, result *Advanced) (err error) {
	if c.fromOld, err = c.Staged(ctx, c.old); err != nil {
		return err
	}
	if c.fromNew, err = c.Staged(ctx, c.new); err != nil {
		return err
	}
	// Remove what new added first: it may be where old has a folder or a file. What is in the way after that is a person's.
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

// remove removes the file at a path that new added, and folders that become empty. A path that is only in the index has
// no file of new's.
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

// onPaths runs a git command that reads paths from standard input, unless there are none.
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

// halfWay returns the paths that the fast-forward left half-written: those that new added, or the others. Paths that a person
// changed are appended to result.Left. Paths that are still at old are in neither list, nor are submodules, of which a
// fast-forward changes only the index.
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

// contentState says whose content a file in the checkout has.
type contentState int

const (
	untouched contentState = iota // old's: nothing to do
	halfWay                       // new's or a prefix of it, or missing
	foreign                       // a person's
)

// state judges a path by its file. A folder in the place of a file that new adds is old's: its files are separate
// paths.
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
	// A kill truncates the file that is being written.
	isNew, err := c.holds(ctx, c.new, d.Path, d.New, mode, func(whole []byte) bool {
		return bytes.Equal(whole, have) || mode != git.ModeSymlink && bytes.HasPrefix(whole, have)
	})
	if err != nil || !isNew {
		return foreign, err
	}
	return halfWay, nil
}

// holds reports whether the file at a path, of which read returned the mode, is the same as a commit's entry.
func (c *checkout) holds(ctx context.Context, commit git.Hash, path string, e git.Entry, mode string, same func(whole []byte) bool) (bool, error) {
	if e == (git.Entry{}) || (e.Mode == git.ModeSymlink) != (mode == git.ModeSymlink) {
		return false, nil
	}
	whole, err := c.Run(ctx, git.Command{Args: []string{"cat-file", "--filters", string(commit) + ":" + path}, Read: true})
	return err == nil && same(whole), err
}

// read returns these instead of a mode.
const (
	missing    = "missing"
	obstructed = "obstructed" // the path is a folder, or below something that is not a folder
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
