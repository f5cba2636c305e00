package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lookPath finds a command as execvp(3) would in the command's own environment and
// directory, not in the supervisor's. For the error of a missing
// file notFound is true; fs.ErrPermission is for one that can't be executed.
func lookPath(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	var denied error
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			// An empty or relative entry means the directory of the work, and
			// what lies there was written by somebody else.
			continue
		}
		file := filepath.Join(folder, name)
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if denied == nil && !notFound(err) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &fs.PathError{Op: "find in PATH", Path: name, Err: fs.ErrNotExist}
}

// notFound reports whether err says that there is no such file at all.
func notFound(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 || unix.Access(file, unix.X_OK) != nil {
		return &fs.PathError{Op: "exec", Path: file, Err: fs.ErrPermission}
	}
	return nil
}
