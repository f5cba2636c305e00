package powercut

import (
	"math/rand/v2"
	"syscall"
	"testing"
)

// disk drives a Tree as the kernel would.
type disk struct {
	t *testing.T
	*Tree
}

func newDisk(t *testing.T) disk { return disk{t, NewTree()} }

func (d disk) must(err syscall.Errno) {
	d.t.Helper()
	if err != 0 {
		d.t.Fatal(err)
	}
}

// write makes a file, or overwrites it from its beginning.
func (d disk) write(name, text string) *node {
	d.t.Helper()
	n := d.root.child(name)
	if n == nil {
		var err syscall.Errno
		n, err = d.make(d.root, name, syscall.S_IFREG|0o644, "")
		d.must(err)
	}
	n.content.write(0, []byte(text))
	d.unsynced[n] = true
	return n
}

func (d disk) mkdir(name string) *node {
	d.t.Helper()
	n, err := d.make(d.root, name, syscall.S_IFDIR|0o755, "")
	d.must(err)
	return n
}

// show is the content of a file, or - when there is none.
func show(t *Tree, name string) string {
	n := t.find(name)
	if n == nil {
		return "-"
	}
	return string(n.content.now)
}

// outcomes plays many cuts and counts what show says of names.
func outcomes(t *Tree, mode Mode, names ...string) map[string]int {
	rnd := rand.New(rand.NewPCG(1, 1))
	seen := map[string]int{}
	for range 300 {
		after := t.Cut(mode, rnd)
		text := ""
		for _, name := range names {
			text += show(after, name) + " "
		}
		seen[text]++
	}
	return seen
}

func wantOnly(t *testing.T, what string, got map[string]int, want ...string) {
	t.Helper()
	for _, w := range want {
		if got[w] == 0 {
			t.Errorf("%s: never saw %q, only %v", what, w, got)
		}
		delete(got, w)
	}
	if len(got) > 0 {
		t.Errorf("%s: also saw %v", what, got)
	}
}

// A program that forgets one fsync must be able to lose by it: each step of the
// protocol is left out once, and the loss is seen.
func TestEachForgottenSyncIsSeen(t *testing.T) {
	publish := func(t *testing.T, syncFile, syncDir bool) *Tree {
		d := newDisk(t)
		d.write("old", "old")
		d.write("a", "before")
		d.syncAll()
		n := d.write("tmp", "after!")
		if syncFile {
			d.syncFile(n)
		}
		d.must(d.rename(d.root, "tmp", d.root, "a", false))
		if syncDir {
			d.syncDir(d.root)
		}
		return d.Tree
	}
	t.Run("none forgotten", func(t *testing.T) {
		tree := publish(t, true, true)
		for _, mode := range []Mode{Drop, Keep, Ordered, Scatter} {
			wantOnly(t, mode.String(), outcomes(tree, mode, "a", "tmp", "old"), "after! - old ")
		}
	})
	t.Run("fsync of the folder", func(t *testing.T) {
		tree := publish(t, true, false)
		wantOnly(t, "drop", outcomes(tree, Drop, "a", "tmp"), "before - ")
		wantOnly(t, "ordered", outcomes(tree, Ordered, "a", "tmp"), "before - ", "before after! ", "after! after! ", "after! - ")
		wantOnly(t, "scatter", outcomes(tree, Scatter, "a", "tmp"), "before - ", "before after! ", "after! after! ", "after! - ")
	})
	t.Run("fsync of the file", func(t *testing.T) {
		tree := publish(t, false, true)
		wantOnly(t, "drop", outcomes(tree, Drop, "a", "tmp"), " - ")
		wantOnly(t, "keep", outcomes(tree, Keep, "a", "tmp"), "after! - ")
		wantOnly(t, "scatter", outcomes(tree, Scatter, "a", "tmp"), " - ", "after! - ", "\x00\x00\x00\x00\x00\x00 - ")
	})
}

func TestOverwritingInPlaceTears(t *testing.T) {
	d := newDisk(t)
	long := func(c byte) string {
		b := make([]byte, 3*sector)
		for i := range b {
			b[i] = c
		}
		return string(b)
	}
	d.write("a", long('o'))
	d.syncAll()
	d.write("a", long('n'))
	torn := false
	for text := range outcomes(d.Tree, Scatter, "a") {
		torn = torn || (text != long('o')+" " && text != long('n')+" ")
	}
	if !torn {
		t.Error("a file overwritten in place never was torn")
	}
}

func TestFailedFsyncLosesAndTheNextSucceeds(t *testing.T) {
	d := newDisk(t)
	n := d.write("a", "before")
	d.syncAll()
	d.write("a", "after!!")
	d.loseFile(n)
	d.syncFile(n)
	d.syncAll()
	if got := show(d.Tree, "a"); got != "after!!" {
		t.Errorf("programs see %q", got)
	}
	for _, mode := range []Mode{Drop, Keep, Scatter} {
		wantOnly(t, mode.String(), outcomes(d.Tree, mode, "a"), "before\x00 ")
	}
	d.write("a", "again!!")
	d.syncFile(n)
	wantOnly(t, "written anew", outcomes(d.Tree, Drop, "a"), "again!! ")
}

func TestMoveBetweenFolders(t *testing.T) {
	for _, c := range []struct {
		name string
		sync func(d disk, from, to *node)
		drop string
		any  []string
	}{
		{name: "none synced", sync: func(disk, *node, *node) {}, drop: "m - ",
			any: []string{"m - ", "m m ", "- m "}},
		{name: "destination synced", sync: func(d disk, _, to *node) { d.syncDir(to) }, drop: "m m ",
			any: []string{"m m ", "- m "}},
		{name: "source synced: the new name comes with it", sync: func(d disk, from, _ *node) { d.syncDir(from) }, drop: "- m ",
			any: []string{"- m "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			from, to := d.mkdir("from"), d.mkdir("to")
			n, err := d.make(from, "x", syscall.S_IFREG|0o644, "")
			d.must(err)
			n.content.write(0, []byte("m"))
			d.unsynced[n] = true
			d.syncAll()
			d.must(d.rename(from, "x", to, "x", true))
			c.sync(d, from, to)
			wantOnly(t, "drop", outcomes(d.Tree, Drop, "from/x", "to/x"), c.drop)
			wantOnly(t, "scatter", outcomes(d.Tree, Scatter, "from/x", "to/x"), c.any...)
		})
	}
}

func TestJournalKeepsRenamesTogether(t *testing.T) {
	d := newDisk(t)
	d.AtomicRenames()
	from, to := d.mkdir("from"), d.mkdir("to")
	n, err := d.make(from, "x", syscall.S_IFREG|0o644, "")
	d.must(err)
	n.content.write(0, []byte("m"))
	d.unsynced[n] = true
	d.syncAll()
	d.must(d.rename(from, "x", to, "x", true))
	for _, mode := range []Mode{Ordered, Scatter} {
		wantOnly(t, mode.String(), outcomes(d.Tree, mode, "from/x", "to/x"), "m - ", "- m ")
	}
	d.must(d.rename(to, "x", from, "x", true)) // and back
	for _, mode := range []Mode{Ordered, Scatter} {
		wantOnly(t, "back: "+mode.String(), outcomes(d.Tree, mode, "from/x", "to/x"), "m - ", "- m ")
	}
	d.syncDir(to)
	wantOnly(t, "synced", outcomes(d.Tree, Drop, "from/x", "to/x"), "m - ")
}

func TestFolderWithoutSyncOfItsParentIsGoneWithAllInIt(t *testing.T) {
	d := newDisk(t)
	dir := d.mkdir("dir")
	n, err := d.make(dir, "x", syscall.S_IFREG|0o644, "")
	d.must(err)
	n.content.write(0, []byte("m"))
	d.syncFile(n)
	d.syncDir(dir)
	wantOnly(t, "drop", outcomes(d.Tree, Drop, "dir/x"), "- ")
	d.syncDir(d.root)
	wantOnly(t, "drop", outcomes(d.Tree, Drop, "dir/x"), "m ")
}

func TestRemovedFileComesBackUntilItsFolderIsSynced(t *testing.T) {
	d := newDisk(t)
	d.write("a", "a")
	d.syncAll()
	d.must(d.remove(d.root, "a", false))
	wantOnly(t, "scatter", outcomes(d.Tree, Scatter, "a"), "a ", "- ")
	d.syncDir(d.root)
	wantOnly(t, "scatter", outcomes(d.Tree, Scatter, "a"), "- ")
}

func TestHardLinksStayOneFile(t *testing.T) {
	d := newDisk(t)
	n := d.write("a", "a")
	d.must(d.link(n, d.root, "b"))
	d.syncAll()
	after := d.Cut(Drop, rand.New(rand.NewPCG(1, 1)))
	if after.find("a") != after.find("b") || after.find("a").nlink != 2 {
		t.Error("two names of one file are two files after the cut")
	}
}

// A cut is played from the same state again and again, and a clone is changed
// while its image stays.
func TestImagesDoNotChange(t *testing.T) {
	d := newDisk(t)
	d.write("a", "before")
	d.syncAll()
	image := d.Clone()
	other := disk{t, image.Clone()}
	other.write("a", "after!")
	d.write("a", "middle")
	if got := show(image, "a") + show(other.Tree, "a") + show(d.Tree, "a"); got != "beforeafter!middle" {
		t.Errorf("got %q", got)
	}
	wantOnly(t, "drop", outcomes(d.Tree, Drop, "a"), "before ")
	rnd := func() *rand.Rand { return rand.New(rand.NewPCG(7, 7)) }
	for range 20 {
		if a, b := show(d.Cut(Scatter, rnd()), "a"), show(d.Cut(Scatter, rnd()), "a"); a != b {
			t.Fatalf("one seed, two disks: %q and %q", a, b)
		}
	}
}
