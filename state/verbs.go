package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// tempPrefix begins the names of unfinished files.
const tempPrefix = ".tmp-"

// foreignTemp ends the names of temp files of other programs, such as latest.json.tmp,
// which they rename.
const foreignTemp = ".json.tmp"

// IsTemp reports whether a name is that of a temp file, of this or another program, or
// of any other dot-file. Such files are never listed, read or moved.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, foreignTemp)
}

// Replace creates the file at p or replaces its content. When it returns nil, the new
// content survives a power cut; after an error the file has its old content.
func (t *Tree) Replace(p Path, data []byte) error {
	if err := t.makeRoom(p); err != nil {
		return err
	}
	before, beforeErr := t.Read(p, MaxFile)
	since := t.syncs.failures(p.Dir())
	if err := t.replace(p, data); err != nil {
		return err
	}
	err := t.syncNames(p.Dir(), since)
	switch {
	case err == nil:
	case beforeErr == nil:
		// The next sync of the folder succeeds although the new name may be lost, and a
		// reader would then take the new content for durable.
		_ = t.replace(p, before) // the first error counts, here and below
	case errors.Is(beforeErr, ErrNotFound):
		_ = t.disk.Remove(t.Abs(p))
	}
	return err
}

// ReplaceJSON is Replace with the canonical form of a value (Encode).
func (t *Tree) ReplaceJSON(p Path, v any) error {
	data, err := Encode(v)
	if err != nil {
		return err
	}
	return t.Replace(p, data)
}

// ReadJSON reads the file at p, of at most MaxFile bytes, into v. Errors: those of Read and Decode.
func (t *Tree) ReadJSON(p Path, v any) error {
	data, err := t.Read(p, MaxFile)
	if err != nil {
		return err
	}
	return Decode(string(p), data, v)
}

// replace is Replace without its last step: the name is not durable.
func (t *Tree) replace(p Path, data []byte) error {
	f, err := t.disk.Pending(t.Abs(p))
	if err != nil {
		return wrapPath(p, err)
	}
	defer f.Cleanup() //nolint:errcheck // after success a no-op, after an error the first error counts
	if _, err := f.Write(data); err != nil {
		return wrapPath(p, err)
	}
	return wrapPath(p, f.Replace())
}

// Append adds data (whole lines) to a file in one write. It is not durable
// until SyncFile. A line that a crash has torn is ended first; the lock ensures
// that this is not the unfinished line of another writer.
func (t *Tree) Append(p Path, data []byte) error {
	lock, err := t.Lock(context.Background(), LockAppend, p.Base())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := t.makeRoom(p); err != nil {
		return err
	}
	f, err := t.disk.Append(t.Abs(p))
	if err != nil {
		return wrapPath(p, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = t.regular(p, info)
	}
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err = f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			data = append([]byte{'\n'}, data...)
		}
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return wrapPath(p, err)
}

// SyncFile makes what was appended to p durable.
func (t *Tree) SyncFile(p Path) error {
	if err := t.check(p); err != nil {
		return err
	}
	if err := t.disk.SyncFile(t.Abs(p)); err != nil {
		return wrapPath(p, err)
	}
	return t.SyncDir(p.Dir())
}

// Remove removes a file. A missing file is not an error. Below state/ the removal is
// durable when it returns nil.
func (t *Tree) Remove(p Path) error {
	if err := t.check(p); err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	}
	if err := t.disk.Remove(t.Abs(p)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return wrapPath(p, err)
	}
	if strings.HasPrefix(string(p), string(StateDir)+"/") {
		return t.SyncDir(p.Dir())
	}
	return nil
}

// RemoveAll removes a folder below run/ with its content; links are not followed. A
// missing folder is not an error.
func (t *Tree) RemoveAll(dir Path) error {
	if !strings.HasPrefix(string(dir), string(RunDir)+"/") {
		return &Corruption{Path: string(dir), Reason: "only folders below run/ may be removed with their content", Cause: ErrBadID}
	}
	if err := t.check(dir); err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	}
	return wrapPath(dir, os.RemoveAll(t.Abs(dir)))
}

// makeRoom makes the folder for a new file.
func (t *Tree) makeRoom(p Path) error {
	if err := p.valid(); err != nil {
		return err
	}
	return t.MkdirAll(p.Dir())
}

// Symlink makes p, which is below run/, a symbolic link to target.
func (t *Tree) Symlink(p Path, target string) error {
	if !strings.HasPrefix(string(p), string(RunDir)+"/") {
		return &Corruption{Path: string(p), Reason: "symbolic links may only be made below run/", Cause: ErrNotRegular}
	}
	if err := t.MkdirAll(p.Dir()); err != nil {
		return err
	}
	if there, err := os.Readlink(t.Abs(p)); err == nil && there == target {
		return nil
	}
	temp := t.Abs(p.Dir().Join(tempPrefix + Random(12)))
	if err := t.disk.Symlink(target, temp); err != nil {
		return wrapPath(p, err)
	}
	if err := t.disk.Rename(temp, t.Abs(p)); err != nil {
		_ = t.disk.Remove(temp) // the first error counts
		return wrapPath(p, err)
	}
	return nil
}

// MkdirAll makes a folder and its parents. It makes the entry of each component durable,
// top-down, even if the folder existed, because the process that made it may have died
// before its fsync. It never makes state/ itself, but returns ErrNoTree when that is
// missing.
func (t *Tree) MkdirAll(dir Path) error {
	t.mu.Lock()
	known := t.durable[dir]
	t.mu.Unlock()
	if t.still(dir, known) {
		return nil
	}
	parts := strings.Split(string(dir), "/")
	for i := range parts {
		at := Path(strings.Join(parts[:i+1], "/"))
		if at == StateDir {
			if info, err := os.Lstat(t.Abs(at)); err != nil || !info.IsDir() {
				return fmt.Errorf("%s: %w: %s is missing", t.root, ErrNoTree, at)
			}
			continue
		}
		if err := t.mkdir(at); err != nil {
			return err
		}
	}
	stamp, err := lstat(t.Abs(dir))
	if err != nil {
		return wrapPath(dir, err)
	}
	t.mu.Lock()
	t.durable[dir] = knownFolder{inode: stamp.Inode, checked: clock()}
	t.mu.Unlock()
	return nil
}

// knownFolder is a folder for which this process has synced the entries of its whole
// path.
type knownFolder struct {
	inode   uint64
	checked time.Time // when the path was last found to lead through no link
}

// checkInterval is how often the path of a known folder is checked for links. Until
// then only its inode is compared: a link to the same folder does no harm.
const checkInterval = 100 * time.Millisecond

// still reports whether dir is the known folder and its path leads through no link.
func (t *Tree) still(dir Path, known knownFolder) bool {
	if known.inode == 0 {
		return false
	}
	now := clock()
	if now.Sub(known.checked) >= checkInterval {
		if t.check(dir.Join("x")) != nil {
			return false
		}
		t.mu.Lock()
		t.durable[dir] = knownFolder{inode: known.inode, checked: now}
		t.mu.Unlock()
	}
	stamp, err := lstat(t.Abs(dir))
	return err == nil && stamp.IsDir() && stamp.Inode == known.inode
}

func (t *Tree) mkdir(dir Path) error {
	if err := dir.valid(); err != nil {
		return err
	}
	since := t.syncs.failures(dir.Dir())
	err := t.disk.Mkdir(t.Abs(dir))
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return wrapPath(dir, err)
	}
	info, err := os.Lstat(t.Abs(dir))
	if err != nil {
		return wrapPath(dir, err)
	}
	if !info.IsDir() {
		return &Corruption{Path: string(dir), Reason: "it is " + kind(info.Mode()) + ", not a folder", Cause: ErrNotRegular}
	}
	if inRun(dir) {
		return nil // volatile
	}
	if err := t.syncNames(dir.Dir(), since); err != nil {
		if made {
			// The next sync of the parent would succeed although the entry may be lost.
			_ = t.disk.Remove(t.Abs(dir)) // the first error counts
		}
		return err
	}
	return nil
}

// inRun reports whether p is run/ or below it.
func inRun(p Path) bool {
	return p == RunDir || strings.HasPrefix(string(p), string(RunDir)+"/")
}

// clock reads the monotonic clock, for measuring intervals.
func clock() time.Time {
	return time.Now() //nolint:forbidigo // a difference of two, never what time it is
}
