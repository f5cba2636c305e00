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

// source reads inotify. The kernel queues an event before the system call that caused it
// returns. So after draining the queue, every change that was acknowledged before is
// known, which no library guarantees.
type source struct {
	watcher *Watcher
	file    *os.File
	raw     syscall.RawConn

	// remote is true on a network file system: changes by other machines are not reported.
	remote bool

	mu   sync.Mutex
	dirs map[int32]string // by watch descriptor
	wds  map[string]int32
	buf  []byte
}

// watched are the events of a published, replaced, moved, removed or rewritten file.
const watched = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_CLOSE_WRITE |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// errOverflow is reported when the kernel's queue was full.
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
		// It returns when the file is closed, because the function never returns true.
		_ = s.raw.Read(func(fd uintptr) bool { s.read(int(fd)); return false })
	}()
	return s, nil
}

// follows reports whether every change is known after drain, so that the content of a
// folder can be cached.
func (s *source) follows() bool { return !s.remote }

// errRemote is reported for a warning.
var errRemote = errors.New("the rig is on a network file system, which does not report changes made by other machines")

// remote reports whether a folder is on a network file system.
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

// add watches a folder. If the folder was replaced, it watches the new one.
func (s *source) add(dir string) error {
	var wd int
	var err error
	// An event of the new watch may be read at once, and read must find it in dirs.
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

// drain passes on all queued events.
func (s *source) drain() {
	// An error means that the file is closed.
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

// events parses a buffer of struct inotify_event: descriptor, mask, cookie, length of
// the name, name padded with zeros.
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
