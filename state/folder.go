package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp identifies a version of a file or folder. Stamps are compared with ==.
type Stamp struct {
	Inode uint64
	Size  int64
	// Modified and Changed are the system's times in nanoseconds since 1970.
	Modified, Changed int64
	Mode              uint32
	Links             uint32
	// Born is when a folder was made, or 0 if that is unknown. Only Folder.Stamp sets it.
	Born int64
}

// SameFile reports whether two stamps are of the same file, maybe of different versions.
func (s Stamp) SameFile(other Stamp) bool {
	return s.Inode == other.Inode && s.Inode != 0 && s.Born == other.Born
}

// racyWindow is how old the last change of a file must be, when the file is read, so that
// every later version has another stamp (kernels use ticks of up to 10 ms).
const racyWindow = 100 * time.Millisecond

// coarseWindow is racyWindow for file systems that store whole seconds.
const coarseWindow = 2500 * time.Millisecond

// Settled reports whether the last change is long enough before now that no later version
// can have the same stamp.
func (s Stamp) Settled(now time.Time) bool {
	window := racyWindow
	if s.Modified%int64(time.Second) == 0 {
		window = coarseWindow
	}
	return now.UnixNano()-max(s.Modified, s.Changed) > int64(window)
}

// SameVersion reports whether a and b describe the same version of the same file, with
// the same number of names.
func SameVersion(a, b fs.FileInfo) bool {
	if !os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || a.Mode() != b.Mode() {
		return false
	}
	sa, okA := a.Sys().(*unixStat)
	sb, okB := b.Sys().(*unixStat)
	return okA && okB && sa.Nlink == sb.Nlink
}

// IsDir reports whether the stamp is that of a folder.
func (s Stamp) IsDir() bool { return s.Mode&unix.S_IFMT == unix.S_IFDIR }

// kind returns the kind of file, for messages.
func (s Stamp) kind() string {
	switch s.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFBLK, unix.S_IFCHR:
		return "a device"
	case unix.S_IFDIR:
		return "a folder"
	}
	return "a file"
}

func lstat(path string) (Stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Stamp{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stampOf(&st), nil
}

// Folder is an open folder of the tree, for reading many files: its path is checked once
// and not for each file.
type Folder struct {
	tree *Tree
	dir  Path
	file *os.File
	fd   int
}

// OpenFolder opens a folder. Errors: ErrNotFound; a *Corruption if dir is not a folder,
// or its path leads through a link.
func (t *Tree) OpenFolder(dir Path) (*Folder, error) {
	if err := t.folder(dir); err != nil {
		return nil, err
	}
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Open(t.Abs(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, wrapPath(dir, err)
	}
	return &Folder{tree: t, dir: dir, file: os.NewFile(uintptr(fd), t.Abs(dir)), fd: fd}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.file.Close() }

// Path is the folder's path in the tree.
func (f *Folder) Path() Path { return f.dir }

// Stamp returns the stamp of the folder itself, which changes with each name in it.
func (f *Folder) Stamp() (Stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return Stamp{}, wrapPath(f.dir, err)
	}
	stamp := stampOf(&st)
	stamp.Born = born(f.fd)
	return stamp, nil
}

// FolderEntry is an entry of a folder.
type FolderEntry struct {
	Name string
	// Inode is the file's inode according to the folder.
	Inode uint64
}

// Stat returns the stamp of a file. Errors: ErrNotFound.
func (f *Folder) Stat(name string) (Stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Stamp{}, wrapPath(f.dir.Join(name), err)
	}
	return stampOf(&st), nil
}

// Read is Tree.Read for a file of the folder. It also returns the stamp of the version
// that was read. The content is in buf if that is large enough.
func (f *Folder) Read(name string, limit int64, buf []byte) ([]byte, Stamp, error) {
	p := f.dir.Join(name)
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(f.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return nil, Stamp{}, &Corruption{Path: string(p), Reason: "it is a link or a special file", Cause: ErrNotRegular}
	case err != nil:
		return nil, Stamp{}, wrapPath(p, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, Stamp{}, wrapPath(p, err)
	}
	stamp := stampOf(&st)
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG || stamp.Links > 1:
		data, err := f.tree.Read(p, limit) // it checks the file in full
		return data, stamp, err
	case stamp.Size > limit:
		return nil, stamp, &Corruption{Path: string(p), Cause: ErrTooLarge,
			Reason: fmt.Sprintf("%d bytes, more than the %d allowed", stamp.Size, limit)}
	}
	if int64(cap(buf)) < stamp.Size {
		buf = make([]byte, stamp.Size)
	}
	buf = buf[:stamp.Size]
	n := 0
	for n < len(buf) {
		m, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, buf[n:]) })
		if err != nil {
			return nil, stamp, wrapPath(p, &fs.PathError{Op: "read", Path: string(p), Err: err})
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf[:n], stamp, nil
}

func ignoringEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
