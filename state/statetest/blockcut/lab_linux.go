package blockcut

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/statetest"
)

// Lab makes disks of one file system, always mounted at the same place, so that
// programs find after the cut the paths that they knew before it.
type Lab struct {
	fs   FileSystem
	dir  string
	base *Image
}

// NewLab needs a test that is Isolated. Disks live in memory.
func NewLab(t testing.TB, fs FileSystem) *Lab {
	t.Helper()
	statetest.RequireCommands(t, fs.Tools()...)
	l := &Lab{fs: fs, dir: t.TempDir()}
	if err := unix.Mount("blockcut", l.dir, "tmpfs", 0, "size=2g"); err != nil {
		t.Fatalf("mount tmpfs at %s: %v", l.dir, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(l.dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", l.dir, err)
		}
	})
	for _, dir := range []string{l.Dir(), l.served()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// Dir is where the file system is mounted.
func (l *Lab) Dir() string { return filepath.Join(l.dir, "mnt") }

func (l *Lab) served() string { return filepath.Join(l.dir, "served") }

// Prepare makes the file system and lets fill put into it what is there, and
// durable, before anything is recorded.
func (l *Lab) Prepare(fill func(dir string) error) error {
	name := filepath.Join(l.dir, "base")
	if err := (&Image{size: l.fs.Size}).write(name); err != nil {
		return err
	}
	if err := run(l.fs.make[0], append(l.fs.make[1:], name)...); err != nil {
		return err
	}
	if err := l.mounted(name, func() error { return fill(l.Dir()) }); err != nil {
		return err
	}
	img, err := readImage(name)
	if err != nil {
		return err
	}
	l.base = img
	return os.Remove(name)
}

// Record runs work on the file system that Prepare made and records what
// reaches the disk. Only other processes may touch Dir meanwhile.
func (l *Lab) Record(work func(r *Record) error) (r *Record, err error) {
	name := filepath.Join(l.dir, "content")
	if err := l.base.write(name); err != nil {
		return nil, err
	}
	content, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	if err := os.Remove(name); err != nil { // the open file is enough
		return nil, err
	}
	r = &Record{base: l.base, whole: l.fs.whole}
	server, err := serve(l.served(), &disk{content: content, size: l.base.size, record: r})
	if err != nil {
		return nil, fmt.Errorf("serve the disk: %w", err)
	}
	defer func() {
		if unmountErr := server.Unmount(); unmountErr != nil {
			// Forcing ends every request of a device that could not be detached.
			err = errors.Join(err, unmountErr, unix.Unmount(l.served(), unix.MNT_FORCE|unix.MNT_DETACH))
		}
	}()
	err = l.mounted(filepath.Join(l.served(), diskName), func() error {
		defer r.end() // what unmounting writes is not part of the trace
		if err := queueUp(filepath.Join(l.served(), diskName)); err != nil {
			return err
		}
		return work(r)
	})
	return r, err
}

// Restart lets what is recorded next begin with a disk that a power cut left, so
// that the recovery itself can be cut off.
func (l *Lab) Restart(disk *Image) error {
	name := filepath.Join(l.dir, "after")
	err := disk.write(name)
	if err == nil {
		err = l.fs.repair(name)
	}
	if err == nil {
		l.base, err = readImage(name)
	}
	return errors.Join(err, os.Remove(name))
}

// Look starts the machine again after a power cut: the disk is checked and
// mounted as at a boot, and look sees what is there. The error says that the
// disk could not be mounted, or is that of look.
func (l *Lab) Look(disk *Image, look func(dir string) error) error {
	name := filepath.Join(l.dir, "after")
	if err := disk.write(name); err != nil {
		return err
	}
	err := l.fs.repair(name)
	if err == nil {
		err = l.mounted(name, func() error { return look(l.Dir()) })
	}
	return errors.Join(err, os.Remove(name))
}

// mounted runs do while the disk is mounted; also a test that ends in do leaves
// it unmounted.
func (l *Lab) mounted(disk string, do func() error) (err error) {
	if err := run("mount", "-t", l.fs.Type, "-o", l.fs.options(), disk, l.Dir()); err != nil {
		return err
	}
	defer func() {
		if unmountErr := run("umount", l.Dir()); unmountErr != nil {
			err = errors.Join(err, unmountErr, unix.Unmount(l.Dir(), unix.MNT_DETACH))
		}
	}()
	return do()
}

// queueUp makes the loop device of a disk pass on requests as they come, without
// waiting for the one before: real disks work on many at once, and a flush
// answers only for the writes that were done when it came. One at a time would
// hide a program, or a file system, that does not wait for its writes first.
func queueUp(disk string) error {
	device, err := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", disk).Output()
	if err != nil {
		return fmt.Errorf("find the loop device of %s: %w", disk, err)
	}
	return run("losetup", "--direct-io=on", strings.TrimSpace(string(device)))
}
