package repair

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	pathpkg "path"
	"path/filepath"
	"strings"
	"syscall"

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
	if c.gitDir, err = c.GitDir(); err == nil {
		err = c.sort(ctx, &result)
	}
	if err == nil {
		err = c.takeBack(ctx)
	}
	if err != nil {
		return result, fmt.Errorf("repair %s: %w", at, err)
	}
	for _, change := range c.restore {
		result.Restored = append(result.Restored, change.path)
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
	gitDir   string
	old, new git.Hash
	restore  []change
}

// entry is a path's content in a tree or an index; the zero entry means that it is not there.
type entry struct{ mode, hash string }

func newEntry(mode, hash string) entry {
	if git.Hash(hash).IsZero() {
		return entry{}
	}
	return entry{mode, hash}
}

// change is one path that differs between the two commits.
type change struct {
	path     string
	old, new entry
	staged   bool // the index already says new
}

func (c *checkout) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	return c.Run(ctx, git.Command{Args: args, Stdin: stdin})
}

func records(out []byte) []string {
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func (c *checkout) changes(ctx context.Context) (list []change, err error) {
	out, err := c.run(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", string(c.old), string(c.new), "--")
	all := records(out)
	for i := 0; i+1 < len(all); i += 2 {
		parts := strings.Fields(strings.TrimPrefix(all[i], ":"))
		if len(parts) != 5 {
			return nil, fmt.Errorf("diff-tree: unexpected record %q", all[i])
		}
		list = append(list, change{path: all[i+1], old: newEntry(parts[0], parts[2]), new: newEntry(parts[1], parts[3])})
	}
	return list, err
}

// index reads the index; a path in conflict has no content that anybody compares with.
func (c *checkout) index(ctx context.Context) (map[string]entry, error) {
	out, err := c.run(ctx, nil, "ls-files", "--stage", "-z", "--full-name")
	entries := map[string]entry{}
	for _, record := range records(out) {
		meta, path, _ := strings.Cut(record, "\t")
		if parts := strings.Fields(meta); len(parts) == 3 {
			entries[path] = newEntry(parts[0], parts[1])
			if parts[2] != "0" {
				entries[path] = entry{mode: "unmerged"}
			}
		}
	}
	return entries, err
}

// sort divides the paths between old and new into those that the fast-forward left half-way and those that a person
// changed. Paths that are still at old are in neither.
func (c *checkout) sort(ctx context.Context, result *Advanced) error {
	list, err := c.changes(ctx)
	if err != nil {
		return err
	}
	index, err := c.index(ctx)
	if err != nil {
		return err
	}
	fromOld, err := c.compare(ctx, list, func(d change) entry { return d.old })
	if err != nil {
		return err
	}
	fromNew, err := c.compare(ctx, list, func(d change) entry { return d.new })
	if err != nil {
		return err
	}
	for _, d := range list {
		d.staged = index[d.path] == d.new
		state := foreign
		if d.staged || index[d.path] == d.old {
			if state, err = c.state(ctx, d, fromOld[d.path], fromNew[d.path]); err != nil {
				return err
			}
		}
		switch {
		case state == foreign:
			result.Left = append(result.Left, d.path)
		case state == halfWay || d.staged:
			c.restore = append(c.restore, d)
		}
	}
	obstructed, err := c.dropObstructed()
	result.Left = append(result.Left, obstructed...)
	return err
}

// The modes of a submodule's entry and of files.
const (
	gitlink    = "160000"
	regular    = "100644"
	executable = "100755"
)

// compare says what differs between the checkout and one side of the changes: "D" for what is not there, another letter
// for what has other content. The executable bit does not count: a person who changed only that has the same bytes.
func (c *checkout) compare(ctx context.Context, list []change, side func(change) entry) (status map[string]string, err error) {
	var info bytes.Buffer
	for _, d := range list {
		if e := side(d); e != (entry{}) && e.mode != gitlink {
			fmt.Fprintf(&info, "%s %s\t%s\x00", e.mode, e.hash, d.path)
		}
	}
	if info.Len() == 0 {
		return nil, nil
	}
	file := filepath.Join(c.gitDir, "chipset-repair-"+rand.Text())
	defer func() { err = errors.Join(err, gitfile.Remove(file), gitfile.Remove(file+".lock")) }()
	env := []string{"GIT_INDEX_FILE=" + file}
	if _, err := c.Run(ctx, git.Command{Args: []string{"update-index", "-z", "--index-info"}, Stdin: info.Bytes(), Env: env}); err != nil {
		return nil, err
	}
	out, err := c.Run(ctx, git.Command{Env: env, Args: []string{"-c", "core.fileMode=false", "diff", "-z", "--name-status",
		"--no-renames", "--no-ext-diff", "--no-textconv"}})
	status = map[string]string{}
	all := records(out)
	for i := 0; i+1 < len(all); i += 2 {
		status[all[i+1]] = all[i]
	}
	return status, err
}

// contentState says whose content a file of the checkout has.
type contentState int

const (
	untouched contentState = iota // old's; nothing to do
	halfWay                       // new's, a beginning of it, or gone
	foreign                       // a person's
)

// state judges a path by how it differs from old and from new. The fast-forward touches nothing but the index where a
// submodule is or was. Where old has a file and new has files below its name, those are changes of their own.
func (c *checkout) state(ctx context.Context, d change, fromOld, fromNew string) (contentState, error) {
	added, removed := d.old == entry{}, d.new == entry{}
	switch {
	case d.old.mode == gitlink || d.new.mode == gitlink:
		return untouched, nil
	case d.old.hash == d.new.hash && fromOld == "": // only the mode is new
		info, err := os.Lstat(filepath.Join(c.Path(), filepath.FromSlash(d.path)))
		if err == nil && (info.Mode()&0o100 != 0) == (d.new.mode == executable) {
			return halfWay, nil
		}
		return untouched, err
	case added && fromNew == "D", !added && fromOld == "":
		return untouched, nil
	case !added && fromOld == "D", !removed && fromNew == "":
		return halfWay, nil
	case removed || d.new.mode != regular && d.new.mode != executable:
		return foreign, nil
	}
	full := filepath.Join(c.Path(), filepath.FromSlash(d.path))
	if info, err := os.Lstat(full); err != nil || !info.Mode().IsRegular() {
		return foreign, err
	}
	whole, err := c.run(ctx, nil, "cat-file", "--filters", string(c.new)+":"+d.path)
	if err != nil {
		return foreign, err
	}
	have, err := os.ReadFile(full)
	if err == nil && bytes.HasPrefix(whole, have) {
		return halfWay, nil // cut off by the kill
	}
	return foreign, err
}

// dropObstructed takes out the paths that git could only restore by removing something else: a directory with a
// person's files where old has a file, or a person's file where old has a directory. It repeats until
// nothing changes, because what is taken out may be what another path relied on.
func (c *checkout) dropObstructed() (obstructed []string, err error) {
	for {
		ours := map[string]bool{}
		for _, d := range c.restore {
			ours[d.path] = true
		}
		var safe []change
		for _, d := range c.restore {
			free, err := c.restorable(d.path, ours)
			if err != nil {
				return nil, err
			}
			if free {
				safe = append(safe, d)
			} else {
				obstructed = append(obstructed, d.path)
			}
		}
		done := len(safe) == len(c.restore)
		if c.restore = safe; done {
			return obstructed, nil
		}
	}
}

// restorable reports whether everything above and below path that is in its way is in ours.
func (c *checkout) restorable(path string, ours map[string]bool) (bool, error) {
	for parent := pathpkg.Dir(path); parent != "."; parent = pathpkg.Dir(parent) {
		info, err := os.Lstat(filepath.Join(c.Path(), filepath.FromSlash(parent)))
		if err == nil && !info.IsDir() && !ours[parent] {
			return false, nil
		}
	}
	free := true
	err := filepath.WalkDir(filepath.Join(c.Path(), filepath.FromSlash(path)), func(found string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(c.Path(), found)
		if err == nil && !ours[filepath.ToSlash(relative)] {
			free = false
			err = fs.SkipAll
		}
		return err
	})
	return free, err
}

// takeBack restores the paths to old in index and checkout. It first tells the index that they are at new, as the
// fast-forward would have: then git itself removes what old does not have, with the directories
// that become empty. A kill in between leaves a state that this repair knows.
func (c *checkout) takeBack(ctx context.Context) error {
	var info, added, others bytes.Buffer
	for _, d := range c.restore {
		paths := &others
		if d.old == (entry{}) {
			paths = &added
			if !d.staged {
				fmt.Fprintf(&info, "%s %s\t%s\x00", d.new.mode, d.new.hash, d.path)
			}
		}
		fmt.Fprintf(paths, ":(top,literal)%s\x00", d.path)
	}
	if info.Len() > 0 {
		if _, err := c.run(ctx, info.Bytes(), "update-index", "-z", "--index-info"); err != nil {
			return err
		}
	}
	// What new added goes first: it may stand where old has a directory or a file, and an index holds only one of them.
	for _, paths := range []*bytes.Buffer{&added, &others} {
		if paths.Len() == 0 {
			continue
		}
		_, err := c.run(ctx, paths.Bytes(), "restore", "--quiet", "--no-overlay", "--no-recurse-submodules", "--source="+string(c.old),
			"--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul")
		if err != nil {
			return err
		}
	}
	return nil
}
