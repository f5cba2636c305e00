package state

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/disk"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// A barrier of the tree's file system says nothing of a folder on another one.
func TestFilesOnAnotherFileSystem(t *testing.T) {
	d := &featured{features: disk.Features{Barrier: true}}
	tree := treeOn(t, d)
	must(t, tree.MkdirAll("state/work"))
	must(t, tree.MkdirAll("state/mail"))
	if err := unix.Mount("tmpfs", tree.Abs("state/mail"), "tmpfs", 0, ""); err != nil {
		statetest.Missing(t, "nothing can be mounted: "+err.Error())
	}
	t.Cleanup(func() { must(t, unix.Unmount(tree.Abs("state/mail"), 0)) })
	for want, folder := range []string{"mail", "work"} {
		before := d.barriers.Load()
		var news []NewFile
		for i := range batchFrom {
			news = append(news, NewFile{Path: Path(fmt.Sprintf("state/work/%s%d.json", folder, i))}, NewFile{Path: Path(fmt.Sprintf("state/%s/x%d.json", folder, i))})
		}
		must(t, errors.Join(tree.WriteAll(news)...))
		if got := d.barriers.Load() - before; got != int64(want) {
			t.Errorf("in work and %s: %d barriers, want %d", folder, got, want)
		}
	}
}

// A folder's stamp holds when it was made, where the system says.
func TestBirthOfAFolder(t *testing.T) {
	tree := newTree(t)
	dir, err := tree.OpenFolder(StateDir)
	must(t, err)
	defer dir.Close()
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, tree.Abs(StateDir), 0, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		statetest.Missing(t, "the system does not say")
	}
	if stamp, err := dir.Stamp(); err != nil || stamp.Born != st.Btime.Sec*1e9+int64(st.Btime.Nsec) {
		t.Errorf("%+v, %v; made at %+v", stamp, err, st.Btime)
	}
	if born(-1) != 0 {
		t.Error("what is not open was born")
	}
}

// A file that the system can't read is an error, and no empty file.
func TestReadOutsideThatFails(t *testing.T) {
	if data, err := ReadOutside("/proc/self/mem", 10); !errors.Is(err, unix.EIO) {
		t.Errorf("%q, %v", data, err)
	}
}

// What a folder holds is read as the tree reads it.
func TestReadsOfAFolder(t *testing.T) {
	tree := newTree(t)
	plant(t, tree, "state/work/shared.json", "x")
	link(t, tree, "state/work/shared.json", tree.Abs("run/other"))
	must(t, os.Mkdir(tree.Abs("state/work/folder"), 0o700))
	must(t, os.Symlink("shared.json", tree.Abs("state/work/link")))
	must(t, unix.Mkfifo(tree.Abs("state/work/fifo"), 0o600))
	plant(t, tree, "state/work/long", "12345")
	dir, err := tree.OpenFolder("state/work")
	must(t, err)
	defer dir.Close()
	for name, want := range map[string]error{"shared.json": ErrHardLinked, "folder": ErrNotRegular, "link": ErrNotRegular, "fifo": ErrNotRegular, "long": ErrTooLarge, "none": ErrNotFound} {
		if data, _, err := dir.Read(name, 4, nil); !errors.Is(err, want) {
			t.Errorf("%s: %q, %v; want %v", name, data, err, want)
		}
	}
	for _, room := range []int{0, 4, 5, 6} {
		if data, stamp, err := dir.Read("long", 5, make([]byte, room)); err != nil || string(data) != "12345" || stamp.Size != 5 {
			t.Errorf("%q, %+v, %v", data, stamp, err)
		}
	}
}
