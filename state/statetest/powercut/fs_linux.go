package powercut

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// diskName is the one name in the root of the mount. Another disk is put in
// its place by letting the kernel forget that name.
const diskName = "disk"

// FS is a mounted disk.
type FS struct {
	fuse.RawFileSystem // everything that is not served here is ENOSYS

	server *fuse.Server
	dir    string

	mu     sync.Mutex
	top    *node // the root of the mount, which holds the disk alone
	disk   *Tree
	nodes  map[uint64]*node
	lastID uint64
	script script
}

// Mount mounts an empty disk below dir, which must be an empty folder.
func Mount(dir string) (*FS, error) {
	f := &FS{RawFileSystem: fuse.NewDefaultRawFileSystem(), dir: dir, nodes: map[uint64]*node{}}
	f.Inject(Fault{}, nil)
	f.top = &node{id: fuse.FUSE_ROOT_ID, ino: 1 << 40, mode: syscall.S_IFDIR | 0o755, nlink: 2, entries: map[string]*entry{}}
	f.top.tree = &Tree{root: f.top}
	f.nodes[f.top.id], f.lastID = f.top, f.top.id
	f.put(NewTree())
	server, err := fuse.NewServer(f, dir, &fuse.MountOptions{
		DirectMountStrict: true, FsName: "powercut", Name: "powercut", DisableXAttrs: true, AllowOther: true,
	})
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	f.server = server
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	return f, nil
}

// Close unmounts. Nothing may run on the disk any more.
func (f *FS) Close() error {
	if err := f.server.Unmount(); err != nil {
		return fmt.Errorf("unmount %s: %w", f.dir, err)
	}
	return nil
}

// Dir is where programs find the root of the disk. It is the same for all
// disks that are put in one after the other.
func (f *FS) Dir() string { return filepath.Join(f.dir, diskName) }

func (f *FS) put(t *Tree) {
	f.disk = t
	t.root.name = ""
	f.top.entries[diskName] = &entry{to: t.root, cookie: 1}
}

// Insert stops what still uses the present disk and puts in another.
func (f *FS) Insert(t *Tree) error {
	f.mu.Lock()
	f.disk.gone = true
	f.put(t)
	f.mu.Unlock()
	// Without the lock: the kernel may have to wait for a lookup that waits for us.
	if status := f.server.EntryNotify(fuse.FUSE_ROOT_ID, diskName); !status.Ok() && status != fuse.ENOENT {
		return fmt.Errorf("change the disk: %v", status)
	}
	return nil
}

// Image is a copy of the disk as programs see it, all durable.
func (f *FS) Image() *Tree {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk.Clone()
}

// Stop stops the machine: whatever runs on the disk gets EIO from now on.
func (f *FS) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disk.gone = true
}

// Cut plays a power cut: what runs gets EIO from now on, and the disk that
// survived is put in.
func (f *FS) Cut(mode Mode, rnd *rand.Rand) error {
	f.mu.Lock()
	f.disk.gone = true
	after := f.disk.Cut(mode, rnd)
	f.mu.Unlock()
	return f.Insert(after)
}

// Inject begins a new count of operations, with a fault at one of them. kill is
// called, with operations waiting for it, when the fault is a kill; it must end
// the programs without waiting for them. What is returned is closed when the
// fault is met.
func (f *FS) Inject(fault Fault, kill func()) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = script{fault: fault, kill: kill, met: make(chan struct{})}
	return f.script.met
}

// Observe begins a new count of operations, without a fault. seen is called before and after each, with its number
// and with all others waiting for it. It may not change the disk, which is one that a power cut of this moment meets:
// what that would leave is a Cut of it.
func (f *FS) Observe(seen func(n int, after bool, disk *Tree)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = script{met: make(chan struct{}), seen: seen}
}

// Left is what a power cut of this moment would leave of the disk, also of one that was stopped. The disk stays.
func (f *FS) Left(mode Mode, rnd *rand.Rand) *Tree {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.disk.Cut(mode, rnd)
}

// Log is what changed something since Inject, and whether the fault was met.
func (f *FS) Log() ([]Op, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.script.log), f.script.hit
}

// ReadFile is the content of a file as programs see it; name starts at Dir.
func (f *FS) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.disk.find(name)
	if n == nil || !n.isFile() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: os.ErrNotExist}
	}
	return slices.Clone(n.content.now), nil
}

// Files lists the files below a folder, sorted, with their paths from Dir.
func (f *FS) Files(below string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []string
	var visit func(n *node, at string)
	visit = func(n *node, at string) {
		if n.isFile() {
			found = append(found, at)
		}
		for _, name := range slices.Sorted(maps.Keys(n.entries)) {
			visit(n.entries[name].to, filepath.Join(at, name))
		}
	}
	if n := f.disk.find(below); n != nil {
		visit(n, below)
	}
	return found
}

// Syncfs makes everything durable. It is called for programs that call
// syncfs(2), of which FUSE does not tell.
func (f *FS) Syncfs() syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.change(f.disk.root, Barrier, "syncfs", "", func(v verdict) syscall.Errno {
		if v.lose {
			f.disk.loseAll()
		}
		if v.errno == 0 {
			f.disk.syncAll()
		}
		return v.errno
	})
}

// flushed makes the content of a file durable, as sync_file_range(2) does on a
// file system that writes content before later names. FUSE does not tell of it
// either, so there is no fault and no count.
func (f *FS) flushed(ino uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		if n.ino == ino && n.tree == f.disk && n.isFile() {
			n.tree.syncFile(n)
		}
	}
}

// change runs one counted operation. act is called with the verdict when there
// is something to do, also to lose what waited.
func (f *FS) change(n *node, class Class, op, name string, act func(verdict) syscall.Errno) syscall.Errno {
	if n.tree.gone {
		return syscall.EIO
	}
	at := n.path()
	if name != "" {
		at = path.Join(at, name)
	}
	if seen := f.script.seen; seen != nil {
		seen(len(f.script.log)+1, false, f.disk)
		defer func() { seen(len(f.script.log), true, f.disk) }()
	}
	v := f.script.next(class, op, cmp.Or(at, "."))
	err := v.errno
	if err == 0 || v.lose {
		err = act(v)
		f.script.result(err)
	}
	if v.stop {
		n.tree.gone = true
		f.script.kill()
		return syscall.EIO
	}
	return err
}
