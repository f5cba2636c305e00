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
	if _, err := (&app{}).readInput(ctx, "--file", fifo, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("a pipe that nobody writes to: %v, want Canceled", err)
	}
	if data, err := (&app{}).readInput(t.Context(), "--file", "/dev/zero", 10); err != nil || len(data) != 10 {
		t.Errorf("a file without an end: %d bytes, %v", len(data), err)
	}
}
