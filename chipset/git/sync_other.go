//go:build !linux

package git

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// Sync makes everything written to the repository so far durable: objects, refs and the entries
// of their directories. It syncs every file system, because there is no call for one alone here.
func (r *Repo) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := unix.Sync(); err != nil {
		return fmt.Errorf("sync repository: %w", err)
	}
	return nil
}
