package state

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace moves old to name and fails with EEXIST when name is taken.
func renameNoReplace(old, name string) error {
	err := unix.RenamexNp(old, name, unix.RENAME_EXCL)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return linkThenUnlink(old, name) // a file system without the flag
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: old, New: name, Err: err}
	}
	return nil
}
