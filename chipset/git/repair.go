package git

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
	"syscall"
)

// Repaired is the outcome of RepairInterruptedAdvance. Paths are relative to the checkout's root.
type Repaired struct {
	Checkout string   // empty: the branch is checked out nowhere, so an advance is all or nothing
	Restored []string // taken back to old
	Left     []string // hold something else: a person's changes
}

// RepairInterruptedAdvance puts right what an Advance that was killed left in the checkout of the branch: it takes
// files that the fast-forward had already written back to old, after which Advance can be tried
// again, with the same or another new. Only paths that differ between old and new are looked at,
// and only while index and HEAD say that nobody else changed them. A file is taken back when it has
// new's content or a beginning of it (the kill may come in mid-write), or is gone; every other
// is a person's and stays, so no byte is lost that is not in old or new. It may be repeated.
//
// If the branch already holds new, the advance was finished and there is nothing to do. ErrMoved
// is returned when it holds neither; ErrLocked when the index is locked and the caller does
// not vouch, by removeLock, that the lock is the one the killed git left.
func (r *Repo) RepairInterruptedAdvance(ctx context.Context, b Branch, old, new Hash, removeLock bool) (Repaired, error) {
	if err := errors.Join(b.check(), checkCommits(old, new)); err != nil {
		return Repaired{}, err
	}
	held, found, err := r.ResolveRef(ctx, b.Ref())
	if err != nil {
		return Repaired{}, err
	}
	if !found || held != old && held != new {
		return Repaired{}, r.moved(b, old)
	}
	at, used, err := r.CheckedOutAt(ctx, b)
	if err != nil {
		return Repaired{}, err
	}
	w, result, p := r.In(at), Repaired{}, r.plain()
	if used {
		result.Checkout = at
		if p, err = w.place(); err != nil {
			return result, err
		}
	}
	if err := r.unlockAdvance(p, b, removeLock); err != nil && (held != new || !errors.Is(err, ErrLocked)) {
		return result, fmt.Errorf("repair advance of %s: %w", b, err)
	}
	if held == new || !used {
		return result, nil
	}
	restore, left, err := w.interrupted(ctx, p, old, new)
	if err == nil {
		err = w.takeBack(ctx, p, old, restore)
	}
	if err != nil {
		return result, fmt.Errorf("repair %s: %w", at, err)
	}
	for _, c := range restore {
		result.Restored = append(result.Restored, c.path)
	}
	result.Left = left
	return result, nil
}

// unlockAdvance removes what a killed fast-forward holds: the locks of index, HEAD, ORIG_HEAD and branch.
func (r *Repo) unlockAdvance(p place, b Branch, removeLock bool) error {
	for _, lock := range advanceLocks(p, r.common, b) {
		if _, err := os.Lstat(lock); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if !removeLock {
			return fmt.Errorf("%w: %s", ErrLocked, lock)
		}
		if err := removeGitFile(lock); err != nil {
			return err
		}
	}
	return nil
}

// advanced is one path that differs between two commits.
type advanced struct {
	change
	staged bool // the index already says new
}

// indexEntries reads the index; paths in conflict come back in unmerged.
func (w *Worktree) indexEntries(ctx context.Context, p place) (entries map[string]entry, unmerged map[string]bool, err error) {
	out, err := w.repo.run(ctx, p, Command{Args: []string{"ls-files", "--stage", "-z", "--full-name"}, Read: true})
	if err != nil {
		return nil, nil, err
	}
	entries, unmerged = map[string]entry{}, map[string]bool{}
	for _, record := range fields(out) {
		meta, path, _ := strings.Cut(record, "\t")
		parts := strings.Fields(meta)
		if len(parts) != 3 {
			return nil, nil, fmt.Errorf("ls-files: unexpected record %q", clip(record, 120))
		}
		if parts[2] != "0" {
			unmerged[path] = true
		}
		entries[path] = newEntry(parts[0], parts[1])
	}
	return entries, unmerged, nil
}

// interrupted sorts the paths between old and new into those that the fast-forward left half-way and
// those that a person changed. Paths that are still at old are in neither.
func (w *Worktree) interrupted(ctx context.Context, p place, old, new Hash) (restore []advanced, left []string, err error) {
	before, err := w.repo.treeOf(ctx, old)
	if err != nil {
		return nil, nil, err
	}
	after, err := w.repo.treeOf(ctx, new)
	if err != nil {
		return nil, nil, err
	}
	list, err := w.repo.diffTrees(ctx, before, after)
	if err != nil {
		return nil, nil, err
	}
	index, unmerged, err := w.indexEntries(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range list {
		if d.isFolder() {
			continue
		}
		c := advanced{change: d}
		c.staged = index[c.path] == c.new
		if unmerged[c.path] || !c.staged && index[c.path] != c.old {
			left = append(left, c.path)
			continue
		}
		state, err := w.writtenByAdvance(ctx, p, new, c)
		switch {
		case err != nil:
			return nil, nil, err
		case state == foreign:
			left = append(left, c.path)
		case state == halfWay || c.staged:
			restore = append(restore, c)
		}
	}
	safe, obstructed, err := unobstructed(p.workTree, restore)
	return safe, append(left, obstructed...), err
}

// unobstructed takes out the paths that git could only restore by removing something else: a directory with a
// person's files where old has a file, or a person's file where old has a directory. It repeats until
// nothing changes, because what is taken out may be what another path relied on.
func unobstructed(root string, restore []advanced) (safe []advanced, obstructed []string, err error) {
	for {
		ours := map[string]bool{}
		for _, c := range restore {
			ours[c.path] = true
		}
		safe = nil
		for _, c := range restore {
			free, err := restorable(root, c.path, ours)
			if err != nil {
				return nil, nil, err
			}
			if free {
				safe = append(safe, c)
			} else {
				obstructed = append(obstructed, c.path)
			}
		}
		if len(safe) == len(restore) {
			return safe, obstructed, nil
		}
		restore = safe
	}
}

// restorable reports whether everything above and below path that is in its way is in ours.
func restorable(root, path string, ours map[string]bool) (bool, error) {
	for parent := pathpkg.Dir(path); parent != "."; parent = pathpkg.Dir(parent) {
		info, err := os.Lstat(filepath.Join(root, filepath.FromSlash(parent)))
		if err == nil && !info.IsDir() && !ours[parent] {
			return false, nil
		}
	}
	free := true
	err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(path)), func(found string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, found)
		if err == nil && !ours[filepath.ToSlash(relative)] {
			free = false
			err = fs.SkipAll
		}
		return err
	})
	return free, err
}

// contentState says whose content a file of the checkout has.
type contentState int

const (
	untouched contentState = iota // old's; nothing to do
	halfWay                       // new's, a beginning of it, or gone
	foreign                       // a person's
)

func (w *Worktree) writtenByAdvance(ctx context.Context, p place, new Hash, c advanced) (contentState, error) {
	full := filepath.Join(p.workTree, filepath.FromSlash(c.path))
	info, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if c.old == (entry{}) {
			return untouched, nil
		}
		return halfWay, nil
	}
	if err != nil {
		return foreign, err
	}
	if info.IsDir() {
		return w.directoryState(c), nil
	}
	if beneathLink(p.workTree, c.path) || c.old.mode == gitlink && c.new.mode == gitlink {
		return foreign, nil
	}
	content, err := w.hashFile(ctx, p, full, c.path, info)
	if err != nil {
		return foreign, err
	}
	switch {
	case content.hash == "": // a device, a socket
		return foreign, nil
	case content == c.old:
		return untouched, nil
	case content.hash == c.new.hash && kindOf(content.mode) == kindOf(c.new.mode):
		return halfWay, nil
	case content.hash == c.old.hash && kindOf(content.mode) == kindOf(c.old.mode):
		return untouched, nil
	case !info.Mode().IsRegular() || kindOf(c.new.mode) != regular:
		return foreign, nil
	}
	return w.beginningOfNew(ctx, p, new, c, full, info)
}

// directoryState judges a directory where old or new have a file. Where a submodule is or was, the fast-forward
// touches nothing but the index. Where old has a file and new has files below its name, the files below are
// changes of their own; this path is then simply gone.
func (w *Worktree) directoryState(c advanced) contentState {
	switch {
	case c.old.mode == gitlink || c.new.mode == gitlink:
		return untouched
	case c.old == (entry{}):
		return untouched
	default:
		return halfWay
	}
}

// kindOf drops the executable bit: a person who changed only that has the same bytes.
func kindOf(mode string) string {
	if mode == executable {
		return regular
	}
	return mode
}

// hashFile is the content of a file as "git add" would store it.
func (w *Worktree) hashFile(ctx context.Context, p place, full, path string, info fs.FileInfo) (entry, error) {
	c := Command{Read: true}
	kind := regular
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(full)
		if err != nil {
			return entry{}, err
		}
		c.Args, c.Stdin, kind = []string{"hash-object", "--no-filters", "--stdin"}, []byte(target), symlink
	case info.Mode().IsRegular():
		c.Args = []string{"hash-object", "--path=" + path, "--", full}
		if info.Mode()&0o100 != 0 {
			kind = executable
		}
	default:
		return entry{}, nil
	}
	out, err := w.repo.run(ctx, p, c)
	if err != nil {
		return entry{}, err
	}
	h, err := ParseHash(line(out))
	return entry{mode: kind, hash: h}, err
}

// beginningOfNew recognises a file that was cut off by the kill.
func (w *Worktree) beginningOfNew(ctx context.Context, p place, new Hash, c advanced, full string, info fs.FileInfo) (contentState, error) {
	if info.Size() > maxOutput {
		return foreign, nil
	}
	whole, err := w.repo.run(ctx, p, Command{Args: []string{"cat-file", "--filters", string(new) + ":" + c.path}, Read: true})
	if err != nil {
		return foreign, err
	}
	have, err := os.ReadFile(full)
	if err != nil {
		return foreign, err
	}
	if bytes.HasPrefix(whole, have) {
		return halfWay, nil
	}
	return foreign, nil
}

// beneathLink reports whether path goes through a symlink, to a place that is not the checkout's.
func beneathLink(root, path string) bool {
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		info, err := os.Lstat(filepath.Join(root, filepath.Join(parts[:i]...)))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// takeBack restores the paths to old in index and checkout. It first tells the index that they are at new, as the
// fast-forward would have: then git itself removes what old does not have, with the directories
// that become empty. A kill in between leaves a state that this repair knows.
func (w *Worktree) takeBack(ctx context.Context, p place, old Hash, restore []advanced) error {
	if len(restore) == 0 {
		return nil
	}
	var info, added, others bytes.Buffer
	for _, c := range restore {
		paths := &others
		if c.old == (entry{}) {
			paths = &added
			if !c.staged {
				fmt.Fprintf(&info, "%s %s\t%s\x00", c.new.mode, c.new.hash, c.path)
			}
		}
		fmt.Fprintf(paths, ":(top,literal)%s\x00", c.path)
	}
	if info.Len() > 0 {
		if _, err := w.repo.run(ctx, p, Command{Args: []string{"update-index", "-z", "--index-info"}, Stdin: info.Bytes()}); err != nil {
			return err
		}
	}
	// What new added goes first: it may stand where old has a directory or a file, and an index holds only one of them.
	for _, paths := range []*bytes.Buffer{&added, &others} {
		if paths.Len() == 0 {
			continue
		}
		_, err := w.repo.run(ctx, p, Command{
			Args: []string{"restore", "--quiet", "--no-overlay", "--no-recurse-submodules", "--source=" + string(old), "--staged", "--worktree",
				"--pathspec-from-file=-", "--pathspec-file-nul"},
			Stdin: paths.Bytes(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
