package powercut

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A disk that was unpacked and packed again is the same to a program.
func TestUnpackAndPack(t *testing.T) {
	d := newDisk(t)
	file := d.write("script", "#!/bin/sh\n")
	file.mode = syscall.S_IFREG | 0o750
	d.must(d.link(file, d.mkdir("dir"), "second name"))
	_, err := d.make(d.find("dir"), "link", syscall.S_IFLNK|0o777, "../script")
	d.must(err)
	file.mtime = time.Date(2026, 3, 5, 10, 30, 0, 123456789, time.UTC)

	dir := t.TempDir()
	if err := d.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	info, statErr := os.Stat(filepath.Join(dir, "dir", "link"))
	if statErr != nil || info.Mode().Perm() != 0o750 || !info.ModTime().Equal(file.mtime) || info.Sys().(*syscall.Stat_t).Nlink != 2 {
		t.Errorf("unpacked: %+v, %v", info, statErr)
	}
	again, packErr := Pack(dir)
	if packErr != nil {
		t.Fatal(packErr)
	}
	again.root.mode = d.root.mode
	if again.Digest() != d.Digest() {
		t.Error("it came back as another disk")
	}
	if back := again.find("script"); !back.mtime.Equal(file.mtime) || !back.kept.Equal(file.mtime) {
		t.Errorf("the time came back as %v, %v", back.mtime, back.kept)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(dir); err == nil {
		t.Error("a pipe was packed")
	}
}
