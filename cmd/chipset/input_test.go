package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadInputEndsWithItsContext(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := readInput(ctx, fifo, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe that nobody writes to: %v, want Canceled", err)
	}
	if data, err := readInput(t.Context(), "/dev/zero", 10); err != nil || len(data) != 10 {
		t.Errorf("a file without an end: %d bytes, %v", len(data), err)
	}
}
