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

// Workers can write a worktree and its git directory. A pipe where git expects a file makes git wait forever, and
// a worktree's own configuration can name programs that git runs. Both are removed before git runs.

// UnfitError is returned for work that can't land whatever its tests say. Reason is for the worker who made it.
type UnfitError struct {
	Reason string
	// Unreadable is true for a commit that git itself can't read: it must not be saved on a ref.
	Unreadable bool
}

func (e *UnfitError) Error() string { return e.Reason }

func unfit(format string, args ...any) error {
	return &UnfitError{Reason: fmt.Sprintf(format, args...)}
}

// clearWay runs before each command and makes sure that git opens only regular files at p. In a linked worktree it removes
// others, and the worktree's own configuration; in the common directory, which is the person's, they are an error.
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

// sparseOnly reports whether a worktree's own configuration has only the settings that git copies from a person's sparse checkout
// to new worktrees.
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

// maxHoles bounds the holes in the sparse files of a worktree together, in bytes: git reads holes like
// data, and an empty file of 1 TB would keep it busy for an hour.
const maxHoles = 2 << 30

// obstacles lists special files that git would open because of a component of their path
// (.gitignore, .gitattributes, .git), links in the place of .gitmodules, and folders too deep to be opened. Git ignores special files
// elsewhere. holes maps sparse files to the size of their holes in bytes.
func obstacles(root string) (found []obstacle, holes map[string]int64, err error) {
	holes = map[string]int64{}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(path, root), string(filepath.Separator))
		switch {
		case err == nil && e.IsDir():
			_ = allow(path, 0o700) // if it fails, git reports the folder
		case errors.Is(err, syscall.ENAMETOOLONG):
			found = append(found, obstacle{rel, "is too deep"})
			return fs.SkipDir
		case err != nil:
			return nil // git reports it
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

// hole returns by how many bytes a file's size exceeds its space on the disk.
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

// obstacles lists what stops git, or keeps it busy for too long. Holes of ignored files don't count.
func (w *Worktree) obstacles(ctx context.Context, p place) ([]obstacle, error) {
	found, holes, err := obstacles(p.workTree)
	if err != nil || len(found) > 0 || sum(holes) <= maxHoles {
		return found, err
	}
	out, err := w.repo.run(ctx, p, Command{Read: true, Args: []string{"ls-files", "--cached", "--others", "--exclude-standard", "-z"}})
	if err != nil && !exited(err, 128) { // if git can't read the index, any file may be in the next one
		return nil, err
	}
	listed := map[string]bool{}
	for _, path := range fields(out) {
		listed[strings.TrimSuffix(path, "/")] = true
	}
	maps.DeleteFunc(holes, func(path string, _ int64) bool {
		for at := path; err == nil && at != "."; at = filepath.Dir(at) { // a listed folder is an embedded repository
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

// sum adds up, up to maxHoles+1, so that it can't overflow.
func sum(holes map[string]int64) (all int64) {
	for _, n := range holes {
		all = min(all+min(n, maxHoles+1), maxHoles+1)
	}
	return all
}

// gitsOwn reports whether a component of the path has a meaning for git.
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
	for range 3 { // holes are found once the other obstacles are gone
		found, err := w.obstacles(ctx, p)
		for _, o := range found {
			err = errors.Join(err, os.RemoveAll(filepath.Join(p.workTree, o.path))) //nolint:forbidigo // left by a worker
		}
		if err != nil || len(found) == 0 {
			return err
		}
	}
	return nil
}
