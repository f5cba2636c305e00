package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// assumed is a list of names of features that Features returns for every file system. It
// is set by the linker (-X) in builds for tests.
var assumed string //nolint:gochecknoglobals // the linker can only set a global

// parallel is how many concurrent syncs cost little more than one, on every file system that was measured.
const parallel = 8

// Features implements Disk.
func (OS) Features(dir string) Features {
	f := Features{Parallel: parallel}
	if assumed != "" {
		has := func(name string) bool { return strings.Contains(assumed, name) }
		f.Unnamed, f.Barrier, f.Ordered, f.Journal = has("unnamed"), has("barrier"), has("ordered"), has("journal")
		return f
	}
	var at unix.Statfs_t
	if unix.Statfs(dir, &at) != nil {
		return f
	}
	switch int64(at.Type) { //nolint:unconvert // the type differs between architectures
	case unix.EXT4_SUPER_MAGIC: // ext2 and ext3 too
		journal := ext4Journal(dir)
		f.Unnamed, f.Ordered, f.Journal = journal, journal, journal
		f.Barrier = syncfsReports()
	case unix.XFS_SUPER_MAGIC:
		f.Unnamed, f.Ordered, f.Journal = true, true, true
	case unix.BTRFS_SUPER_MAGIC:
		f.Unnamed, f.Journal = true, true
		f.Barrier = syncfsReports()
	}
	return f
}

// ext4Journal reports whether the ext4 file system of dir has a journal: only then does
// sysfs have the PID of its journal's thread, and "<none>" otherwise (fs/ext4/sysfs.c,
// journal_task_show).
func ext4Journal(dir string) bool {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return false
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return false
	}
	return journalOf(filepath.Base(device))
}

func journalOf(device string) bool {
	task, err := os.ReadFile(filepath.Join("/sys/fs/ext4", device, "journal_task"))
	if err != nil {
		return false
	}
	_, err = strconv.Atoi(strings.TrimSpace(string(task)))
	return err == nil
}

// syncfsReports reports whether syncfs returns the errors of failed writes, as it does
// since Linux 5.8 (syncfs(2), "Errors").
func syncfsReports() bool {
	var name unix.Utsname
	_ = unix.Uname(&name) // an empty release counts as too old
	return reportsSince58(unix.ByteSliceToString(name.Release[:]))
}

// reportsSince58 reports whether the release of a kernel is 5.8 or later.
func reportsSince58(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 5 || major == 5 && minor >= 8)
}

// Unnamed implements Disk. Without support for it, open returns EOPNOTSUPP, which is an errors.ErrUnsupported.
func (OS) Unnamed(dir string) (File, error) {
	f, err := openFile(dir, os.O_WRONLY|unix.O_TMPFILE, Perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Link implements Disk. Linking through /proc needs no privilege (open(2), "O_TMPFILE").
func (OS) Link(f File, path string) error {
	file, ok := f.(osFile)
	if !ok {
		return fmt.Errorf("link %s: a file of another disk: %w", path, errors.ErrUnsupported)
	}
	// Since Linux 6.10 a process may link a file that it has opened without /proc.
	if unix.Linkat(int(file.Fd()), "", unix.AT_FDCWD, path, unix.AT_EMPTY_PATH) == nil {
		return nil
	}
	unnamed := "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
	err := unix.Linkat(unix.AT_FDCWD, unnamed, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: unnamed, New: path, Err: err}
	}
	return nil
}

// StartFlush implements File.
func (f osFile) StartFlush() error { return f.flush(unix.SYNC_FILE_RANGE_WRITE) }

// Flush implements File.
func (f osFile) Flush() error {
	return f.flush(unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER)
}

func (f osFile) flush(flags int) error {
	return os.NewSyscallError("sync_file_range", unix.SyncFileRange(int(f.Fd()), 0, 0, flags))
}

// barrier is an open folder: through each open file, syncfs reports once that a write
// to the file system has failed since the file was opened (syncfs(2)).
type barrier struct{ *os.File }

// Barrier implements Disk.
func (OS) Barrier(dir string) (Barrier, error) {
	f, err := openFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return barrier{f}, nil
}

// Settle implements Barrier. The kernel's syncfs writes the metadata of an ext4
// without a journal after it has flushed the device's cache; the fsync that
// follows flushes it once more.
func (b barrier) Settle() error {
	if err := unix.Syncfs(int(b.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: b.Name(), Err: err}
	}
	return b.Sync()
}

func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkThenUnlink(from, to) // a file system without the flag
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
