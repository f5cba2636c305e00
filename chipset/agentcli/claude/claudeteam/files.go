package claudeteam

import (
	"context"
	"encoding/json"
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

// rewrite puts what change returns in the place of a file, under the lock that Claude Code takes for it. nil changes
// nothing. Errors: ErrLockTimeout, those of change.
func rewrite(ctx context.Context, file string, change func() (any, error)) error {
	release, err := takeLock(ctx, file+".lock")
	if err != nil {
		return err
	}
	defer release()
	after, err := change()
	if after == nil || err != nil {
		return err
	}
	return write(file, after)
}

// write is durable when it returns nil.
func write(file string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return state.ReplaceOutside(file, data)
}

// withFields returns a JSON object with other values in some fields, and all others as they are.
func withFields(object json.RawMessage, values map[string]any) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, err
	}
	for name, value := range values {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		fields[name] = data
	}
	return json.Marshal(fields)
}

// isFolder returns an error unless dir is a folder, and no link to one. Errors: state.ErrNotFound.
func isFolder(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", dir, state.ErrNotFound)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	}
	return err
}
