package state

import (
	"errors"
	"fmt"
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
