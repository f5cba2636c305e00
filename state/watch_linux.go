package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// source is inotify. The kernel queues an event before the system call that
// caused it returns, so whoever drains the queue first has heard of every
// change that was acknowledged before: no library in between can say that.
type source struct {
	watcher *Watcher
	file    *os.File
	raw     syscall.RawConn

	// remote is true where other machines change files, which the system does not report.
	remote bool

	mu   sync.Mutex
	dirs map[int32]string // by watch descriptor
	wds  map[string]int32
	buf  []byte
}

// watched are the events of a published, replaced, moved, removed or
// rewritten file. The writing of a temp file is none of them.
const watched = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_CLOSE_WRITE |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// errOverflow says that the kernel's queue was full.
var errOverflow = errors.New("more changes at once than the system queues (fs.inotify.max_queued_events)")

func newSource(w *Watcher) (*source, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	s := &source{watcher: w, file: os.NewFile(uintptr(fd), "inotify"), dirs: map[int32]string{}, wds: map[string]int32{},
		buf: make([]byte, 64<<10)}
	if s.raw, err = s.file.SyscallConn(); err != nil {
		_ = s.file.Close()
		return nil, fmt.Errorf("inotify: %w", err)
	}
	if s.remote = remote(w.tree.Root()); s.remote {
		w.fail(errRemote)
	}
	go func() {
		// It returns when the file is closed: what is read wants more to come.
		_ = s.raw.Read(func(fd uintptr) bool { s.read(int(fd)); return false })
	}()
	return s, nil
}

// follows tells that every change is heard of in time, so that what is known
// of a folder can be kept.
func (s *source) follows() bool { return !s.remote }

// errRemote is no failure, but worth a warning.
var errRemote = errors.New("the rig lies on a network file system, which does not report what other machines do")

// remote reports whether a folder lies on a file system that other machines
// share.
func remote(dir string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC:
		return true
	}
	return false
}

// add watches a folder, also one that was made again under the same name.
func (s *source) add(dir string) error {
	var wd int
	var err error
	// A new inotify descriptor may be met by events at once: dirs comes first.
	s.mu.Lock()
	defer s.mu.Unlock()
	ctlErr := s.raw.Control(func(fd uintptr) { wd, err = unix.InotifyAddWatch(int(fd), dir, watched) })
	if ctlErr != nil {
		return ctlErr
	}
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("no more watches (fs.inotify.max_user_watches): %w", err)
	}
	if err != nil {
		return &os.PathError{Op: "inotify_add_watch", Path: dir, Err: err}
	}
	if old, known := s.wds[dir]; known && old != int32(wd) {
		delete(s.dirs, old)
	}
	s.dirs[int32(wd)], s.wds[dir] = dir, int32(wd)
	return nil
}

// drain passes on everything that is queued now.
func (s *source) drain() {
	// An error means that the file is closed: nothing comes any more.
	_ = s.raw.Control(func(fd uintptr) { s.read(int(fd)) })
}

func (s *source) close() error { return s.file.Close() }

func (s *source) read(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		n, err := unix.Read(fd, s.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			if err != nil && !errors.Is(err, unix.EAGAIN) {
				s.watcher.overflow(fmt.Errorf("inotify: %w", err))
			}
			return
		}
		s.events(s.buf[:n])
	}
}

// events takes a buffer of struct inotify_event apart: descriptor, mask,
// cookie, length of the name, name padded with zeros.
func (s *source) events(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(buf))
		mask := binary.NativeEndian.Uint32(buf[4:])
		size := int(binary.NativeEndian.Uint32(buf[12:]))
		name := buf[unix.SizeofInotifyEvent:min(len(buf), unix.SizeofInotifyEvent+size)]
		buf = buf[min(len(buf), unix.SizeofInotifyEvent+size):]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			s.watcher.overflow(errOverflow)
			continue
		}
		dir, known := s.dirs[wd]
		if !known {
			continue
		}
		if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
			delete(s.dirs, wd)
			if s.wds[dir] == wd {
				delete(s.wds, dir)
			}
			s.watcher.lose(dir)
			continue
		}
		name, _, _ = bytes.Cut(name, []byte{0})
		s.watcher.changed(dir, string(name))
	}
}
