package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/git/internal/gitfile"
	"github.com/gastown-chipset/chipset/state/wording"
)

// A worktree and its git directory are written by workers. A pipe where git expects a file makes git wait forever, and
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

// maxHoles bounds what the files of a worktree claim beyond what they take on the disk, in bytes: git reads holes like
// everything else, and a file of 1 TB that takes nothing would hold it for an hour.
const maxHoles = 2 << 30

// obstacles lists special files that git would open wherever they stand, because their path has a component of git's own
// (.gitignore, .gitattributes, .git), links in the place of .gitmodules, and folders too deep to be opened. Special files
// elsewhere git leaves out of every list. holes are what files claim beyond what they take on the disk, in bytes.
func obstacles(root string) (found []obstacle, holes map[string]int64, err error) {
	holes = map[string]int64{}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(path, root), string(filepath.Separator))
		switch {
		case err == nil && e.IsDir():
			_ = allow(path, 0o700) // else git says what it can't read
		case errors.Is(err, syscall.ENAMETOOLONG):
			found = append(found, obstacle{rel, "is too deep"})
			return fs.SkipDir
		case err != nil:
			return nil // git says what it can't read
		case e.Type().IsRegular():
			if n := hole(e); n > 0 {
				holes[rel] = n
			}
		case isSpecial(e.Type()) && gitsOwn(rel):
			found = append(found, obstacle{rel, "is a " + describeMode(e.Type())})
		case e.Type()&fs.ModeSymlink != 0 && strings.EqualFold(e.Name(), ".gitmodules"):
			found = append(found, obstacle{rel, "is a symbolic link"})
		}
		return nil
	})
	return found, holes, err
}

// hole is how many bytes a file claims beyond what it takes on the disk.
func hole(e fs.DirEntry) int64 {
	const block = 512
	info, err := e.Info()
	if err != nil {
		return 0 // gone
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return info.Size() - int64(stat.Blocks)*block //nolint:unconvert // the type differs between systems
	}
	return 0
}

// obstacles lists what git can't get past, or read in time. Ignored files are not read.
func (w *Worktree) obstacles(ctx context.Context, p place) ([]obstacle, error) {
	found, holes, err := obstacles(p.workTree)
	if err != nil || len(found) > 0 || sum(holes) <= maxHoles {
		return found, err
	}
	out, err := w.repo.run(ctx, p, Command{Read: true, Args: []string{"ls-files", "--cached", "--others", "--exclude-standard", "-z"}})
	if err != nil && !exited(err, 128) { // an index that git can't read: every file may be in the next one
		return nil, err
	}
	listed := map[string]bool{}
	for _, path := range fields(out) {
		listed[strings.TrimSuffix(path, "/")] = true
	}
	maps.DeleteFunc(holes, func(path string, _ int64) bool {
		for at := path; err == nil && at != "."; at = filepath.Dir(at) { // a folder is a repository inside this one
			if listed[at] {
				return false
			}
		}
		return err == nil
	})
	if sum(holes) > maxHoles {
		for _, path := range slices.Sorted(maps.Keys(holes)) {
			found = append(found, obstacle{path, fmt.Sprintf("claims %d MiB more than it takes on the disk", holes[path]>>20)})
		}
		slices.SortStableFunc(found, func(a, b obstacle) int { return cmp.Compare(holes[b.path], holes[a.path]) })
	}
	return found, nil
}

// sum adds up, and stops at what would be too much in any case.
func sum(holes map[string]int64) (all int64) {
	for _, n := range holes {
		all = min(all+min(n, maxHoles+1), maxHoles+1)
	}
	return all
}

// gitsOwn reports whether git gives a component of the path a meaning of its own.
func gitsOwn(path string) bool {
	return slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), func(part string) bool {
		return len(part) >= 4 && strings.EqualFold(part[:4], ".git")
	})
}

// passable returns an *UnfitError for the first obstacle in the worktree.
func (w *Worktree) passable(ctx context.Context, p place) error {
	found, err := w.obstacles(ctx, p)
	if err == nil && len(found) > 0 {
		err = unfit("%s %s, which git can't get past", wording.Clip(found[0].path, 200), found[0].why)
	}
	return err
}

// removeObstacles takes them out of a linked worktree, in which nobody works any more. They hold no work.
func (w *Worktree) removeObstacles(ctx context.Context, p place) error {
	for range 3 { // what can't be read in time is known once git gets past the rest
		found, err := w.obstacles(ctx, p)
		for _, o := range found {
			top := o.path
			if strings.HasSuffix(o.why, "deep") { // a folder that was tracked is checked out again
				top, _, _ = strings.Cut(top, string(filepath.Separator))
			}
			err = errors.Join(err, os.RemoveAll(filepath.Join(p.workTree, top))) //nolint:forbidigo // a worker's leavings
		}
		if err != nil || len(found) == 0 {
			return err
		}
	}
	return nil
}
