package powercut

import (
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// forever is how long the kernel may remember names and attributes. Everything
// that changes them goes through the kernel, but for Insert, which tells it.
const forever = time.Hour

// node is the node that the kernel calls id; f.mu is held.
func (f *FS) node(id uint64) (*node, syscall.Errno) {
	n := f.nodes[id]
	if n == nil || n.tree.gone {
		return nil, syscall.EIO
	}
	return n, 0
}

// tell answers with a node, which the kernel then knows.
func (f *FS) tell(n *node, out *fuse.EntryOut) {
	if n.id == 0 {
		f.lastID++
		n.id = f.lastID
	}
	f.nodes[n.id] = n
	n.lookups++
	out.NodeId, out.Generation = n.id, 1
	out.SetEntryTimeout(forever)
	out.SetAttrTimeout(forever)
	attr(n, &out.Attr)
}

func attr(n *node, out *fuse.Attr) {
	*out = fuse.Attr{Ino: n.ino, Mode: n.mode, Nlink: n.nlink, Size: uint64(len(n.content.now)), Blksize: 4096}
	if n.isDir() {
		out.Nlink = 2
	}
	if n.target != "" {
		out.Size = uint64(len(n.target))
	}
	out.Blocks = (out.Size + 511) / 512
	out.SetTimes(&n.mtime, &n.mtime, &n.mtime)
}

// Lookup finds a name. That a name is not there is remembered as well.
func (f *FS) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, err := f.node(h.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	n, err := dir.tree.lookup(dir, name)
	switch err {
	case 0:
		f.tell(n, out)
	case syscall.ENOENT:
		out.SetEntryTimeout(forever)
		return fuse.OK // NodeId 0: it is not there, and that is known
	}
	return fuse.Status(err)
}

// Forget is the kernel's word that it knows a node no more.
func (f *FS) Forget(id, times uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[id]
	if n == nil || n == f.top {
		return
	}
	if n.lookups -= min(times, n.lookups); n.lookups == 0 {
		delete(f.nodes, id)
	}
}

// GetAttr is stat(2).
func (f *FS) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(in.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	out.SetTimeout(forever)
	attr(n, &out.Attr)
	return fuse.OK
}

// SetAttr changes size, permissions and times; only the first two are counted.
func (f *FS) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(in.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	if size, ok := in.GetSize(); ok && n.isFile() {
		err = f.change(n, Attr, "truncate", "", func(v verdict) syscall.Errno {
			if v.errno == 0 {
				n.content.truncate(int(size)) //nolint:gosec // a test's file
				f.touched(n)
			}
			return v.errno
		})
	}
	if mode, ok := in.GetMode(); ok && err == 0 {
		err = f.change(n, Attr, "chmod", "", func(v verdict) syscall.Errno {
			if v.errno == 0 {
				n.mode = n.mode&typeMask | mode&^typeMask
			}
			return v.errno
		})
	}
	if err != 0 {
		return fuse.Status(err)
	}
	if mtime, ok := in.GetMTime(); ok {
		n.mtime, n.kept = mtime, mtime
	}
	out.SetTimeout(forever)
	attr(n, &out.Attr)
	return fuse.OK
}

func (f *FS) touched(n *node) {
	n.mtime = time.Now()
	n.dirtyClose = true
	n.tree.unsynced[n] = true
}

// add serves everything that gives a folder a new name.
func (f *FS) add(id uint64, op, name string, mode uint32, target string, out *fuse.EntryOut) syscall.Errno {
	dir, err := f.node(id)
	if err != 0 {
		return err
	}
	if dir == f.top {
		return syscall.EROFS
	}
	return f.change(dir, NewName, op, name, func(v verdict) syscall.Errno {
		if v.errno != 0 {
			return v.errno
		}
		n, err := dir.tree.make(dir, name, mode, target)
		if err == 0 {
			f.tell(n, out)
		}
		return err
	})
}

// Mknod makes files alone.
func (f *FS) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	if in.Mode&typeMask != syscall.S_IFREG {
		return fuse.EPERM
	}
	return fuse.Status(f.add(in.NodeId, "mknod", name, in.Mode, "", out))
}

// Create is open(2) with O_CREAT of a name that is not there.
func (f *FS) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.Status(f.add(in.NodeId, "creat", name, syscall.S_IFREG|in.Mode&^typeMask, "", &out.EntryOut))
}

// Tmpfile is open(2) with O_TMPFILE. Only Link gives the file a name.
func (f *FS) Tmpfile(_ <-chan struct{}, in *fuse.CreateIn, out *fuse.CreateOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, err := f.node(in.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.Status(f.change(dir, NewName, "tmpfile", "", func(v verdict) syscall.Errno {
		if v.errno != 0 {
			return v.errno
		}
		n := dir.tree.newNode(syscall.S_IFREG | in.Mode&^typeMask)
		n.parent, n.name = dir, "(unnamed)"
		f.tell(n, &out.EntryOut)
		return 0
	}))
}

// Mkdir is mkdir(2).
func (f *FS) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fuse.Status(f.add(in.NodeId, "mkdir", name, syscall.S_IFDIR|in.Mode&^typeMask, "", out))
}

// Symlink is symlink(2).
func (f *FS) Symlink(_ <-chan struct{}, h *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fuse.Status(f.add(h.NodeId, "symlink", name, syscall.S_IFLNK|0o777, target, out))
}

// Readlink is readlink(2).
func (f *FS) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(h.NodeId)
	if err != 0 {
		return nil, fuse.Status(err)
	}
	return []byte(n.target), fuse.OK
}

// Link is link(2).
func (f *FS) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, err := f.node(in.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	n, err := f.node(in.Oldnodeid)
	if err != 0 {
		return fuse.Status(err)
	}
	return fuse.Status(f.change(dir, NewName, "link", name, func(v verdict) syscall.Errno {
		if v.errno != 0 {
			return v.errno
		}
		err := dir.tree.link(n, dir, name)
		if err == 0 {
			f.tell(n, out)
		}
		return err
	}))
}

func (f *FS) take(id uint64, op, name string, folder bool) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	dir, err := f.node(id)
	if err != 0 {
		return fuse.Status(err)
	}
	if dir == f.top {
		return fuse.EROFS
	}
	return fuse.Status(f.change(dir, Name, op, name, func(v verdict) syscall.Errno {
		if v.errno != 0 {
			return v.errno
		}
		return dir.tree.remove(dir, name, folder)
	}))
}

// Unlink is unlink(2).
func (f *FS) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.take(h.NodeId, "unlink", name, false)
}

// Rmdir is rmdir(2).
func (f *FS) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return f.take(h.NodeId, "rmdir", name, true)
}

// Rename is renameat2(2), with RENAME_NOREPLACE or without.
func (f *FS) Rename(_ <-chan struct{}, in *fuse.RenameIn, oldName, newName string) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, err := f.node(in.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	to, err := f.node(in.Newdir)
	if err != 0 {
		return fuse.Status(err)
	}
	if in.Flags&^unix.RENAME_NOREPLACE != 0 {
		return fuse.EINVAL
	}
	return fuse.Status(f.change(to, Name, "rename", newName, func(v verdict) syscall.Errno {
		if v.errno != 0 {
			return v.errno
		}
		return to.tree.rename(from, oldName, to, newName, in.Flags&unix.RENAME_NOREPLACE != 0)
	}))
}

// Open lets the kernel keep the pages it has: it knows all that changes them.
func (f *FS) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.node(in.NodeId)
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.Status(err)
}

// Read is read(2) of what the kernel does not have.
func (f *FS) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(in.NodeId)
	if err != 0 {
		return nil, fuse.Status(err)
	}
	off := min(in.Offset, uint64(len(n.content.now)))
	return fuse.ReadResultData(buf[:copy(buf, n.content.now[off:])]), fuse.OK
}

// Write is write(2); the kernel passes each one on at once.
func (f *FS) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(in.NodeId)
	if err != 0 {
		return 0, fuse.Status(err)
	}
	err = f.change(n, Data, "write", "", func(v verdict) syscall.Errno {
		if v.errno != 0 {
			return v.errno
		}
		if v.half {
			data = data[:len(data)/2]
		}
		n.content.write(int(in.Offset), data) //nolint:gosec // a test's file
		f.touched(n)
		return 0
	})
	return uint32(len(data)), fuse.Status(err) //nolint:gosec // never more than the kernel sent
}

// Flush is close(2). It counts when something was written since the last one.
func (f *FS) Flush(_ <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(in.NodeId)
	if err != 0 || !n.dirtyClose {
		return fuse.Status(err)
	}
	n.dirtyClose = false
	return fuse.Status(f.change(n, Close, "close", "", func(v verdict) syscall.Errno {
		if v.lose {
			n.tree.loseFile(n)
		}
		return v.errno
	}))
}

// Fsync is fsync(2) of a file.
func (f *FS) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(in.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	return fuse.Status(f.change(n, Sync, "fsync", "", func(v verdict) syscall.Errno {
		if v.lose {
			n.tree.loseFile(n)
		}
		if v.errno == 0 {
			n.tree.syncFile(n)
		}
		return v.errno
	}))
}

// FsyncDir is fsync(2) of a folder.
func (f *FS) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.node(in.NodeId)
	if err != 0 {
		return fuse.Status(err)
	}
	return fuse.Status(f.change(n, Sync, "fsyncdir", "", func(v verdict) syscall.Errno {
		if v.errno == 0 {
			n.tree.syncDir(n)
		}
		return v.errno
	}))
}

// OpenDir is opendir(3).
func (f *FS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.node(in.NodeId)
	return fuse.Status(err)
}

// listing are the names of a folder behind a cookie.
func (f *FS) listing(in *fuse.ReadIn) ([]fuse.DirEntry, syscall.Errno) {
	n, err := f.node(in.NodeId)
	if err != 0 {
		return nil, err
	}
	var all []fuse.DirEntry
	for name, e := range n.entries {
		if e.cookie > in.Offset {
			all = append(all, fuse.DirEntry{Name: name, Mode: e.to.mode, Ino: e.to.ino, Off: e.cookie})
		}
	}
	slices.SortFunc(all, func(a, b fuse.DirEntry) int { return int(a.Off) - int(b.Off) }) //nolint:gosec // small numbers
	return all, 0
}

// ReadDir is getdents(2).
func (f *FS) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.listing(in)
	for _, e := range all {
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.Status(err)
}

// ReadDirPlus is getdents(2) with what stat(2) would say of each name.
func (f *FS) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.listing(in)
	for _, e := range all {
		room := out.AddDirLookupEntry(e)
		if room == nil {
			break
		}
		f.tell(f.nodes[in.NodeId].child(e.Name), room)
	}
	return fuse.Status(err)
}

// StatFs shows plenty of room, or none once the disk is full.
func (f *FS) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	*out = fuse.StatfsOut{Blocks: 1 << 24, Bsize: 4096, Frsize: 4096, NameLen: maxName, Files: 1 << 20, Ffree: 1 << 20}
	if f.script.fault.Kind != DiskFull || !f.script.hit {
		out.Bfree, out.Bavail = out.Blocks, out.Blocks
	}
	return fuse.OK
}
