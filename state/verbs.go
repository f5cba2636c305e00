package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"
)

const filePerm = 0o644

// tempPrefix begins the names of unfinished files. All names that begin with a
// dot are temp files of somebody and are never listed.
const tempPrefix = ".tmp-"

func isTemp(name string) bool { return strings.HasPrefix(name, ".") }

// WriteNew publishes a new file under a name that nobody has. It returns
// ErrExists when the name is taken. When it returns nil the file survives a
// power cut; on every other error there is no file.
func (t *Tree) WriteNew(p Path, data []byte) error {
	if err := t.makeRoom(p); err != nil {
		return err
	}
	temp, err := t.writeTemp(p, data)
	if err != nil {
		return err
	}
	if err := renameNoReplace(temp, t.Abs(p)); err != nil {
		_ = os.Remove(temp)
		if errors.Is(err, fs.ErrExist) {
			return t.exists(p)
		}
		return wrapPath(p, err)
	}
	if err := t.SyncDir(p.Dir()); err != nil {
		_ = os.Remove(t.Abs(p)) // a failed publication leaves nothing that could be taken for a success
		return err
	}
	return nil
}

// exists makes the entry of another writer durable before its existence is
// reported, because the caller may acknowledge on it.
func (t *Tree) exists(p Path) error {
	if err := t.SyncDir(p.Dir()); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", p, ErrExists)
}

// writeTemp writes and syncs a uniquely named temp file beside p.
func (t *Tree) writeTemp(p Path, data []byte) (string, error) {
	temp := t.Abs(p.Dir().Join(fmt.Sprintf("%s%d-%s", tempPrefix, os.Getpid(), Random(12))))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, filePerm)
	if err != nil {
		return "", wrapPath(p, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	// An error of close can be the only word of a failed write.
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(temp)
		return "", wrapPath(p, err)
	}
	return temp, nil
}

// Replace puts data in the place of the file at p, or makes it. When it
// returns nil the new content survives a power cut; on an error before that
// the old content is intact.
func (t *Tree) Replace(p Path, data []byte) error {
	if err := t.makeRoom(p); err != nil {
		return err
	}
	dir := t.Abs(p.Dir())
	f, err := renameio.NewPendingFile(t.Abs(p), renameio.WithTempDir(dir), renameio.WithStaticPermissions(filePerm))
	if err != nil {
		return wrapPath(p, err)
	}
	defer f.Cleanup() //nolint:errcheck // after success a no-op, after an error the first error counts
	if _, err := f.Write(data); err != nil {
		return wrapPath(p, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return wrapPath(p, err)
	}
	return t.SyncDir(p.Dir())
}

// Move gives a file another place under a name that nobody has there. It
// returns ErrExists when the name is taken, ErrNotFound when there is nothing
// to move. When it returns nil the move survives a power cut.
func (t *Tree) Move(from, to Path) error {
	if err := t.check(from); err != nil {
		return err
	}
	if err := t.makeRoom(to); err != nil {
		return err
	}
	if err := renameNoReplace(t.Abs(from), t.Abs(to)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return t.exists(to)
		}
		return wrapPath(from, err)
	}
	if err := t.SyncDir(to.Dir()); err != nil {
		return err
	}
	return t.SyncDir(from.Dir())
}

// Append adds data (whole lines) to a file in one write. It is not durable
// until SyncFile. A line that a crash left torn is closed first; the lock keeps
// the half-visible line of another writer from being taken for one.
func (t *Tree) Append(p Path, data []byte) error {
	lock, err := t.Lock(context.Background(), LockAppend, p.Base())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := t.makeRoom(p); err != nil {
		return err
	}
	f, err := os.OpenFile(t.Abs(p), os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, filePerm)
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
	f, err := os.OpenFile(t.Abs(p), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return wrapPath(p, err)
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return wrapPath(p, err)
	}
	return t.SyncDir(p.Dir())
}

// Remove takes away a file whose loss is none: a record that was undone, or
// anything below run/. It is no error when there is nothing.
func (t *Tree) Remove(p Path) error {
	if err := t.check(p); err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	}
	if err := os.Remove(t.Abs(p)); err != nil {
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

// makeRoom makes the folder for a new file.
func (t *Tree) makeRoom(p Path) error {
	if err := p.valid(); err != nil {
		return err
	}
	return t.MkdirAll(p.Dir())
}

// Symlink puts a link to target at a place below run/, where links lead out of
// the tree on purpose. One that leads there already stays.
func (t *Tree) Symlink(p Path, target string) error {
	if !strings.HasPrefix(string(p), string(RunDir)+"/") {
		return &Corruption{Path: string(p), Reason: "links live below run/ only", Cause: ErrNotRegular}
	}
	if err := t.MkdirAll(p.Dir()); err != nil {
		return err
	}
	if there, err := os.Readlink(t.Abs(p)); err == nil && there == target {
		return nil
	}
	temp := t.Abs(p.Dir().Join(tempPrefix + Random(12)))
	if err := os.Symlink(target, temp); err != nil {
		return wrapPath(p, err)
	}
	if err := os.Rename(temp, t.Abs(p)); err != nil {
		_ = os.Remove(temp) // the first error counts
		return wrapPath(p, err)
	}
	return nil
}

// MkdirAll makes a folder and its parents. Each component's entry is made
// durable top-down, also when it existed, because whoever made it may not have
// come to its fsync. It never makes state/ itself: a tree that was taken away
// is reported as ErrNoTree and not built anew.
func (t *Tree) MkdirAll(dir Path) error {
	t.mu.Lock()
	known := t.durable[dir]
	t.mu.Unlock()
	if known && t.check(dir.Join("x")) == nil {
		return nil // every component is still a folder and no link
	}
	parts := strings.Split(string(dir), "/")
	for i := range parts {
		at := Path(strings.Join(parts[:i+1], "/"))
		if at == StateDir {
			if info, err := os.Lstat(t.Abs(at)); err != nil || !info.IsDir() {
				return fmt.Errorf("%s: %w: %s is gone", t.root, ErrNoTree, at)
			}
			continue
		}
		if err := t.mkdir(at); err != nil {
			return err
		}
	}
	t.mu.Lock()
	t.durable[dir] = true
	t.mu.Unlock()
	return nil
}

func (t *Tree) mkdir(dir Path) error {
	if err := t.check(dir); err != nil {
		return err
	}
	err := os.Mkdir(t.Abs(dir), 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return wrapPath(dir, err)
	}
	info, err := os.Lstat(t.Abs(dir))
	if err != nil {
		return wrapPath(dir, err)
	}
	if !info.IsDir() {
		return &Corruption{Path: string(dir), Reason: "it is " + kind(info.Mode()) + " and no folder", Cause: ErrNotRegular}
	}
	if dir == RunDir || strings.HasPrefix(string(dir), string(RunDir)+"/") {
		return nil // volatile
	}
	return t.SyncDir(dir.Dir())
}

// SyncDir makes the entries of a folder durable.
func (t *Tree) SyncDir(dir Path) error {
	if dir == RunDir || strings.HasPrefix(string(dir), string(RunDir)+"/") {
		return nil // run/ is volatile by contract
	}
	return wrapPath(dir, syncDir(t.Abs(dir)))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// linkThenUnlink is the no-replace rename of systems and file systems that
// have none. A crash between its steps leaves a temp file with a second name,
// which Read recognises and the sweep removes.
func linkThenUnlink(old, name string) error {
	if info, err := os.Lstat(old); err == nil && info.IsDir() {
		if _, err := os.Lstat(name); err == nil {
			return &os.LinkError{Op: "rename", Old: old, New: name, Err: fs.ErrExist}
		}
		return os.Rename(old, name)
	}
	if err := os.Link(old, name); err != nil {
		return err
	}
	return os.Remove(old)
}
