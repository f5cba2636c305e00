package git

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Sync makes everything written to the repository so far durable: objects, refs and the entries
// of their directories. It syncs the whole file system of the common directory.
func (r *Repo) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := os.Open(r.common)
	if err != nil {
		return fmt.Errorf("sync repository: %w", err)
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("sync repository: syncfs %s: %w", r.common, err)
	}
	// A file system without a journal flushes the disk's cache before its last metadata is on the way.
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("sync repository: %w", err)
	}
	return nil
}
