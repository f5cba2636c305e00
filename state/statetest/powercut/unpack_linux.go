package powercut

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Unpack writes what programs find on the disk into an empty folder of a real file system, with permissions,
// links and times: what only has to be looked at, or is healed without any more faults, costs a tenth there.
func (t *Tree) Unpack(dir string) error {
	written := map[*node]string{}
	var visit func(n *node, at string) error
	visit = func(n *node, at string) error {
		if first, again := written[n]; again {
			return os.Link(first, at)
		}
		written[n] = at
		if err := n.unpack(at, at == dir); err != nil {
			return err
		}
		for name, e := range n.entries {
			if err := visit(e.to, filepath.Join(at, name)); err != nil {
				return err
			}
		}
		return n.stamp(at) // a folder's time is set behind what was put into it
	}
	return visit(t.root, dir)
}

func (n *node) unpack(at string, there bool) error {
	switch n.mode & typeMask {
	case syscall.S_IFDIR:
		if !there {
			if err := unix.Mkdir(at, 0o700); err != nil {
				return &os.PathError{Op: "mkdir", Path: at, Err: err}
			}
		}
	case syscall.S_IFLNK:
		return os.Symlink(n.target, at)
	default:
		if err := os.WriteFile(at, n.content.now, 0o600); err != nil {
			return err
		}
	}
	return unix.Chmod(at, n.mode&^typeMask)
}

func (n *node) stamp(at string) error {
	when := unix.NsecToTimespec(n.mtime.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, at, []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "utimes", Path: at, Err: err}
	}
	return nil
}

// Pack makes a disk of a folder, all durable. Only files, folders and symbolic links can be packed.
func Pack(dir string) (*Tree, error) {
	t := NewTree()
	known := map[uint64]*node{} // by inode number: files have several names
	err := t.root.pack(dir, known)
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", dir, err)
	}
	return t.Clone(), nil
}

func (n *node) pack(at string, known map[uint64]*node) error {
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(at, e.Name())
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		child := known[st.Ino]
		if child == nil {
			child = n.tree.newNode(st.Mode)
			if err := child.read(path, known); err != nil {
				return err
			}
			child.mtime = time.Unix(st.Mtim.Unix())
			known[st.Ino] = child
		}
		n.tree.set(n, e.Name(), child, nil)
	}
	return nil
}

func (n *node) read(at string, known map[uint64]*node) (err error) {
	var data []byte
	switch n.mode & typeMask {
	case syscall.S_IFDIR:
		return n.pack(at, known)
	case syscall.S_IFLNK:
		n.target, err = os.Readlink(at)
	case syscall.S_IFREG:
		data, err = os.ReadFile(at)
		n.content = durable(data)
	default:
		err = &os.PathError{Op: "pack", Path: at, Err: syscall.EINVAL}
	}
	return err
}
