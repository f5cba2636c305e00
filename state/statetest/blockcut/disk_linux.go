package blockcut

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// diskName is the name of the one file that is served.
const diskName = "disk"

// disk is the FUSE file below the loop device. It answers from a sparse file
// and notes what it is told in the record.
type disk struct {
	fs.Inode
	content *os.File
	size    int64
	record  *Record
}

var (
	_ fs.NodeGetattrer = (*disk)(nil)
	_ fs.NodeOpener    = (*disk)(nil)
	_ fs.NodeReader    = (*disk)(nil)
	_ fs.NodeWriter    = (*disk)(nil)
	_ fs.NodeFsyncer   = (*disk)(nil)
)

func (d *disk) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size, out.Nlink = syscall.S_IFREG|0o600, uint64(d.size), 1
	return 0
}

// Open asks the kernel to pass everything on at once, without a cache of its
// own, and several writes side by side.
func (d *disk) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_PARALLEL_DIRECT_WRITES, 0
}

func (d *disk) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := d.content.ReadAt(dest, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fs.ToErrno(err)
	}
	return fuse.ReadResultData(dest[:n]), 0
}

// latency is how long a write takes on average. It is what makes requests
// overlap: in a disk that answers at once, nothing is ever on its way.
const latency = time.Millisecond

// Write notes the write when it is done: only a flush that comes after that
// answers for it.
func (d *disk) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	n, err := d.content.WriteAt(data, off)
	if err != nil {
		return uint32(n), fs.ToErrno(err)
	}
	time.Sleep(time.Duration(rand.Int64N(int64(2 * latency))))
	d.record.add(event{kind: wrote, data: append([]byte(nil), data...), off: off})
	return uint32(n), 0
}

// Fsync is a flush of the disk's cache.
func (d *disk) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	d.record.add(event{kind: flushed})
	return 0
}

// root holds the disk alone.
type root struct {
	fs.Inode
	disk *disk
}

var _ fs.NodeOnAdder = (*root)(nil)

func (r *root) OnAdd(ctx context.Context) {
	r.AddChild(diskName, r.NewPersistentInode(ctx, r.disk, fs.StableAttr{Mode: syscall.S_IFREG, Ino: 2}), false)
}

// serve shows the disk below dir until the server is unmounted.
func serve(dir string, d *disk) (*fuse.Server, error) {
	return fs.Mount(dir, &root{disk: d}, &fs.Options{
		MountOptions: fuse.MountOptions{
			DirectMountStrict: true, FsName: "blockcut", Name: "blockcut",
			MaxWrite: 1 << 20, ExtraCapabilities: fuse.CAP_ASYNC_DIO,
		},
	})
}
