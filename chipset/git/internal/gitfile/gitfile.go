// Package gitfile reads and writes the few of git's own files that git can't mend, because it refuses every command in a
// worktree or on a ref whose files it can't read.
package gitfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLine bounds a file that holds one line, in bytes.
const maxLine = 4 << 10

// RealPath returns the absolute path without symlinks. For a path that does not exist, that of its existing parents is resolved.
func RealPath(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path %q: %w", path, fs.ErrInvalid)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return "", err
	}
	parent, err := RealPath(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(path)), nil
}

// LinkTarget returns the path that the file .git in a worktree names.
func LinkTarget(path string) (string, error) {
	text, err := ReadLine(filepath.Join(path, ".git"))
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if err == nil && !ok {
		err = fs.ErrInvalid
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(path, target)
	}
	return filepath.Clean(target), err
}

// LinksTo reports whether the file .git in a worktree names the registration admin.
func LinksTo(path, admin string) bool {
	target, err := LinkTarget(path)
	if err == nil {
		target, err = RealPath(target)
	}
	return err == nil && target == admin
}

// ReadLine returns the only line of a small regular file, without its newline. Errors: fs.ErrNotExist, also for a
// directory and below a file; fs.ErrInvalid for anything else that is not such a file.
func ReadLine(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir() {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fs.ErrInvalid
	}
	data, err := ReadSmall(path)
	if err != nil {
		return "", err
	}
	text, whole := strings.CutSuffix(string(data), "\n")
	if !whole || strings.ContainsAny(text, "\n\x00") {
		return "", fs.ErrInvalid
	}
	return text, nil
}

// ReadSmall returns the content of a small regular file; anything else is fs.ErrInvalid. It never blocks, because a worker can put a
// pipe in the place of a file.
func ReadSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo // read only
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxLine) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxLine))
}

// Write replaces a file, and makes its folder if necessary. It is durable when it returns nil.
func Write(path, text string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:forbidigo // a folder of git's own
		return err
	}
	f, err := os.CreateTemp(dir, "chipset-mend-") //nolint:forbidigo // a file of git's own, below no state tree
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path) //nolint:forbidigo // the file was synced just now
	}
	if err != nil {
		return errors.Join(err, Remove(f.Name()))
	}
	return SyncDir(dir)
}

// Remove removes a file. A missing file is not an error.
func Remove(path string) error {
	err := os.Remove(path) //nolint:forbidigo // a file of git's own, below no state tree
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SyncDir makes the entries of a folder durable.
func SyncDir(dir string) error {
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

// asideName is the folder in git's common folder that SetAside moves files to.
const asideName = "chipset-aside"

// SetAside moves a file or folder to a new folder below the common folder's chipset-aside, and returns its new path,
// or "" if there was nothing. It deletes and replaces nothing. The move is durable when it returns
// nil.
func SetAside(common, path string) (string, error) {
	rel, err := filepath.Rel(common, path)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(common, asideName)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:forbidigo // a folder of git's own
		return "", err
	}
	slot, err := os.MkdirTemp(dir, strings.ReplaceAll(filepath.ToSlash(rel), "/", "-")+"-") //nolint:forbidigo // a folder of git's own
	if err != nil {
		return "", err
	}
	to := filepath.Join(slot, filepath.Base(path))
	err = os.Rename(path, to) //nolint:forbidigo // a file of git's own
	if errors.Is(err, fs.ErrNotExist) {
		return "", os.Remove(slot) //nolint:forbidigo // it is empty
	}
	if err == nil {
		err = errors.Join(SyncDir(slot), SyncDir(dir), SyncDir(filepath.Dir(path)))
	}
	return to, err
}
