package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
	"github.com/gastown-chipset/chipset/state/wording"
)

// A worktree and its git directory are written by workers. A pipe where git expects a file makes git wait for ever, and
// a configuration of the worktree names programs that git runs. Both are taken out of the way before git comes.

// UnfitError is returned for work that no rig can land, whatever its tests say: the reason is for who made it.
type UnfitError struct {
	Reason string
	// Unreadable is true for a commit that git itself can't read: nothing may keep it.
	Unreadable bool
}

func (e *UnfitError) Error() string { return e.Reason }

func unfit(format string, args ...any) error {
	return &UnfitError{Reason: fmt.Sprintf(format, args...)}
}

// clearWay makes sure before each command that the files which git opens at p are plain ones. In a linked worktree what is
// not is removed, as is a configuration of its own; in the common directory it is an error, because that is the person's.
func (r *Repo) clearWay(p place) error {
	if p.gitDir == "" {
		return nil
	}
	for _, name := range []string{"config", "packed-refs", "shallow", "info/exclude", "info/attributes", "objects/info/alternates"} {
		path := filepath.Join(r.common, filepath.FromSlash(name))
		if info, err := os.Stat(path); err == nil && isSpecial(info.Mode()) {
			return fmt.Errorf("%s is a %s: remove it", path, describeMode(info.Mode()))
		}
	}
	if !r.linked(p) {
		return nil
	}
	for _, name := range []string{"HEAD", "index", "config.worktree"} {
		path := filepath.Join(p.gitDir, name)
		info, err := os.Stat(path)
		if err != nil || !isSpecial(info.Mode()) && (name != "config.worktree" || sparseOnly(path)) {
			continue
		}
		if err := gitfile.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// sparseOnly reports whether a worktree's own configuration holds nothing but what a sparse checkout of the person's hands
// on to new worktrees.
func sparseOnly(path string) bool {
	plain := regexp.MustCompile(`(?i)^(\s*(\[core\]|\[index\]|(sparsecheckout|sparsecheckoutcone|sparse)\s*=\s*[a-z0-9]*)\s*\n)*$`)
	config, err := os.ReadFile(path)
	return err == nil && plain.Match(config)
}

// isSpecial reports whether opening such a file may wait for another process, or do more than read.
func isSpecial(mode fs.FileMode) bool {
	return mode&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) != 0
}

func describeMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// obstacle is a path of a worktree, relative to its root, that git can't get past.
type obstacle struct{ path, why string }

// obstacles lists special files that git would open wherever they stand, because their path has a component of git's own
// (.gitignore, .gitattributes, .git), links in the place of .gitmodules, and folders too deep to be opened. Special files
// elsewhere git leaves out of every list.
func obstacles(root string) (found []obstacle, err error) {
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(path, root), string(filepath.Separator))
		switch {
		case errors.Is(err, syscall.ENAMETOOLONG):
			found = append(found, obstacle{rel, "is too deep"})
			return fs.SkipDir
		case err != nil:
			return nil // git says what it can't read
		case isSpecial(e.Type()) && gitsOwn(rel):
			found = append(found, obstacle{rel, "is a " + describeMode(e.Type())})
		case e.Type()&fs.ModeSymlink != 0 && strings.EqualFold(e.Name(), ".gitmodules"):
			found = append(found, obstacle{rel, "is a symbolic link"})
		}
		return nil
	})
	return found, err
}

// gitsOwn reports whether git gives a component of the path a meaning of its own.
func gitsOwn(path string) bool {
	return slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), func(part string) bool {
		return len(part) >= 4 && strings.EqualFold(part[:4], ".git")
	})
}

// passable returns an *UnfitError for the first obstacle in the worktree.
func (p place) passable() error {
	found, err := obstacles(p.workTree)
	if err == nil && len(found) > 0 {
		err = unfit("%s %s, which git can't get past", wording.Clip(found[0].path, 200), found[0].why)
	}
	return err
}

// removeObstacles takes them out of a linked worktree, in which nobody works any more. They hold no work.
func (p place) removeObstacles() error {
	found, err := obstacles(p.workTree)
	for _, o := range found {
		top := o.path
		if strings.HasSuffix(o.why, "deep") { // a folder that was tracked is checked out again
			top, _, _ = strings.Cut(top, string(filepath.Separator))
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.workTree, top))) //nolint:forbidigo // a worker's leavings
	}
	return err
}
