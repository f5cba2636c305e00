package claudeteam

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// lockWait is how long another writer is waited for. Claude Code renews a lock
// that it holds every 5 s and takes one of 10 s for dead (proper-lockfile's
// defaults); lockDead is far beyond that.
const (
	lockWait = 5 * time.Second
	lockStep = 10 * time.Millisecond
	lockDead = time.Minute
)

// takeLock takes a lock as Claude Code does, by making a folder, and returns
// what releases it. Errors: ErrLockTimeout.
func takeLock(ctx context.Context, lock string) (release func(), _ error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		err := state.ClaimOutside(lock)
		if err == nil {
			return func() { _ = state.ReleaseOutside(lock) }, nil // nothing is left to do about an error
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := os.Lstat(lock); err == nil && time.Since(info.ModTime()) > lockDead {
			if err := state.ReleaseOutside(lock); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w: another program has held it for %s; remove the folder if none is left", lock, state.ErrLockTimeout, lockWait)
		case <-time.After(lockStep):
		}
	}
}
