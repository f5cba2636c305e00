// Package disk holds every system call by which package state changes what a power cut
// leaves below .chipset, and nothing else. The model in state/statetest records these
// calls, and computes for every prefix of them what a power cut could leave.
//
// A call that returns nil has changed what other processes see. Only the calls
// with Sync in their name, and Settle, guarantee that something survives.
package disk

import (
	"io"
	"io/fs"
)

// Disk changes files and folders. Paths are absolute. Its implementations are OS and the
// recorder of the model.
type Disk interface {
	// Features returns the features of the file system that holds dir.
	Features(dir string) Features

	// Create makes a new file and opens it for writing. Errors: fs.ErrExist.
	Create(path string) (File, error)
	// Unnamed opens a new file without a name on the file system of dir. Errors:
	// errors.ErrUnsupported.
	Unnamed(dir string) (File, error)
	// Link gives an unnamed file its name. Errors: fs.ErrExist.
	Link(f File, path string) error
	// Pending opens a file that will replace the one at path.
	Pending(path string) (Pending, error)
	// Append opens a file for writes at its end, and makes it if it is missing.
	Append(path string) (File, error)

	// RenameNew renames a file to a name that does not exist. Errors: fs.ErrExist.
	RenameNew(from, to string) error
	// Rename renames a file and replaces an existing one.
	Rename(from, to string) error
	Remove(path string) error
	Mkdir(path string) error
	Symlink(target, path string) error

	// SyncFile makes the content of a file durable.
	SyncFile(path string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(path string) error
	// Barrier opens a barrier on the file system of dir. It requires Features.Barrier.
	Barrier(dir string) (Barrier, error)
}

// Barrier is an open barrier of a file system.
type Barrier interface {
	// Settle makes everything durable that any process has written to the file system
	// before the call. It returns an error if a write has failed since the barrier was
	// opened and no earlier Settle has reported it, even if another process has seen the
	// error. After an error, everything that was written before must be considered lost.
	Settle() error
	// Close releases the file system, which can't be unmounted while the barrier is open.
	Close() error
}

// File is an open file.
type File interface {
	io.Writer
	io.ReaderAt
	Name() string
	Stat() (fs.FileInfo, error)
	// StartFlush begins to write the content to the disk, and Flush waits until it is
	// written. Neither guarantees that the content survives; see Features.Ordered.
	StartFlush() error
	Flush() error
	// Sync makes content and size durable, but not the file's name. After an error the
	// content must be considered lost: a second Sync could succeed without writing it.
	Sync() error
	Close() error
}

// Pending is a file that is to replace another.
type Pending interface {
	io.Writer
	// Replace syncs and closes the file and renames it to the path of the other. The
	// rename is not durable before SyncDir.
	Replace() error
	// Cleanup removes the file. After Replace it does nothing.
	Cleanup() error
}

// Features are properties of a file system that allow faster protocols. The zero value
// requires the plain protocol, which works on every file system. docs/durability.md says
// how each feature was verified.
type Features struct {
	// Unnamed: an unnamed file that was written, synced, and then linked is durable once
	// the folder is synced.
	Unnamed bool
	// Barrier: syncfs makes everything durable and reports what it could not write.
	Barrier bool
	// Ordered: after Flush of some files and then Sync of any file, their content is on
	// the disk before any name that is given later.
	Ordered bool
	// Journal: a rename between two folders is atomic on the disk. Without it a file can
	// lose its old name before its new name is on the disk.
	Journal bool
	// Parallel is how many files are worth syncing concurrently, because their syncs
	// share commits of the file system's journal. 0 means 1.
	Parallel int
}
