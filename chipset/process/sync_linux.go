package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem makes everything on the file system of an open folder durable, and
// reports what could not be written since the folder was opened (syncfs(2)).
func syncFileSystem(dir *os.File) error {
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("syncfs %s: %w", dir.Name(), err)
	}
	// A file system without a journal flushes the disk's cache before its last metadata is on the way.
	return dir.Sync()
}
