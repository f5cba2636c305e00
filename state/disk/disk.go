// Package disk is the alphabet of the durability protocol: every call by which
// package state changes what a power cut leaves below .chipset, and nothing
// else. Package state writes the protocol's words with it; the model of
// state/statetest records them and asks of every prefix what could be left.
//
// A call that returns nil has changed what other processes see. Only the calls
// with Sync in their name, and Settle, say anything about what survives.
package disk

import (
	"io"
	"io/fs"
)

// Disk changes files and folders. Paths are absolute. Two implementations
// exist: OS, and the recorder of the model.
type Disk interface {
	// Features says which short cuts keep the promise on the file system of a folder.
	Features(dir string) Features

	// Create makes a file that nobody has, open for writing; fs.ErrExist otherwise.
	Create(path string) (File, error)
	// Unnamed opens a new file that has no name yet on the file system of dir, or
	// returns errors.ErrUnsupported.
	Unnamed(dir string) (File, error)
	// Link gives an unnamed file its name; fs.ErrExist when it is taken.
	Link(f File, path string) error
	// Pending opens a file that will replace the one at path.
	Pending(path string) (Pending, error)
	// Append opens a file, made when missing, whose writes go to its end.
	Append(path string) (File, error)

	// RenameNew moves a file to a name that nobody has; fs.ErrExist when it is taken.
	RenameNew(from, to string) error
	// Rename moves a file in the place of another.
	Rename(from, to string) error
	Remove(path string) error
	Mkdir(path string) error
	Symlink(target, path string) error

	// SyncFile makes the content of a file durable.
	SyncFile(path string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(path string) error
	// Barrier opens a barrier on the file system of dir. It is used where
	// Features.Barrier is set.
	Barrier(dir string) (Barrier, error)
}

// Barrier is an open barrier of a file system.
type Barrier interface {
	// Settle makes everything durable that any process has written to the file system
	// before the call. It returns an error if a write failed since the barrier was opened
	// and no earlier Settle has reported it, even if another process was told. After an
	// error, nothing that was written before it may be assumed to be durable.
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
	// StartFlush begins to write the content to the disk, and Flush waits until it
	// is there. Neither says that it survives: where Features.Ordered is set it
	// puts the content before any later name.
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
	// Replace syncs and closes the file and puts it in the other's place. The new
	// name is not durable before SyncDir.
	Replace() error
	// Cleanup removes what was not put in place; after Replace it does nothing.
	Cleanup() error
}

// Features of a file system. The zero value stands for the plain protocol, which works on
// every file system; docs/durability.md says how each feature was verified.
type Features struct {
	// Unnamed: a file that was written and synced before it got its name with
	// Link is durable once the folder is synced.
	Unnamed bool
	// Barrier: syncfs makes everything durable and reports what it could not write.
	Barrier bool
	// Ordered: content that Flush has written, and a Sync of any file after it,
	// come to the disk no later than any name given afterwards.
	Ordered bool
	// Journal: a rename between two folders is on the disk as a whole or not at
	// all. Without it a file can lose its old name before its new one is there.
	Journal bool
	// Parallel is how many files are worth syncing at a time, because their syncs
	// share commits of the file system's journal; 0 is one.
	Parallel int
}
