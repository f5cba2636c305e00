package state

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace moves old to name and fails with EEXIST when name is taken.
func renameNoReplace(old, name string) error {
	err := unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkThenUnlink(old, name) // a file system without the flag
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: name, Err: err}
	}
	return nil
}
