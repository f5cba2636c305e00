//go:build !linux

package disk

import (
	"errors"
	"fmt"
)

// Features implements Disk. Nothing was verified on this system.
func (OS) Features(string) Features { return Features{Parallel: 1} }

// Unnamed implements Disk.
func (OS) Unnamed(dir string) (File, error) {
	return nil, fmt.Errorf("unnamed file in %s: %w", dir, errors.ErrUnsupported)
}

// Link implements Disk.
func (OS) Link(_ File, path string) error {
	return fmt.Errorf("link %s: %w", path, errors.ErrUnsupported)
}

// StartFlush implements File.
func (f osFile) StartFlush() error { return nil }

// Flush implements File.
func (f osFile) Flush() error { return f.Sync() }

// Barrier implements Disk.
func (OS) Barrier(dir string) (Barrier, error) {
	return nil, fmt.Errorf("barrier on %s: %w", dir, errors.ErrUnsupported)
}
