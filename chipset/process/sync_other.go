//go:build !linux

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem makes everything durable: there is no call for one file system here.
func syncFileSystem(*os.File) error { return unix.Sync() }
