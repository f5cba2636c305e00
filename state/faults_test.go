package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/disk"
)

// faulty is this machine's disk, of which one call fails.
type faulty struct {
	disk.OS
	features  disk.Features
	calls, at int // how many there were, and which fails
	open      int // files
}

func (d *faulty) step(do func() error) error {
	if d.calls++; d.calls == d.at {
		return unix.EIO
	}
	return do()
}

func (d *faulty) Features(string) disk.Features { return d.features }

func (d *faulty) Barrier(dir string) (disk.Barrier, error) {
	b, err := d.OS.Barrier(dir)
	return faultyBarrier{b, d}, err
}

type faultyBarrier struct {
	disk.Barrier
	d *faulty
}

func (b faultyBarrier) Settle() error { return b.d.step(func() error { return nil }) }

func (d *faulty) Mkdir(path string) error {
	return d.step(func() error { return d.OS.Mkdir(path) })
}

func (d *faulty) SyncDir(path string) error {
	return d.step(func() error { return d.OS.SyncDir(path) })
}

func (d *faulty) Rename(from, to string) error {
	return d.step(func() error { return d.OS.Rename(from, to) })
}

func (d *faulty) RenameNew(from, to string) error {
	return d.step(func() error { return d.OS.RenameNew(from, to) })
}

func (d *faulty) Symlink(target, path string) error {
	return d.step(func() error { return d.OS.Symlink(target, path) })
}

func (d *faulty) Create(path string) (disk.File, error) {
	return d.file(func() (disk.File, error) { return d.OS.Create(path) })
}

func (d *faulty) Unnamed(dir string) (disk.File, error) {
	return d.file(func() (disk.File, error) { return d.OS.Unnamed(dir) })
}

func (d *faulty) Link(f disk.File, path string) error {
	return d.step(func() error { return d.OS.Link(f.(*faultyFile).File, path) })
}

func (d *faulty) file(open func() (disk.File, error)) (f disk.File, err error) {
	if err = d.step(func() error { f, err = open(); return err }); err != nil {
		return nil, err
	}
	d.open++
	return &faultyFile{f, d}, nil
}

type faultyFile struct {
	disk.File
	d *faulty
}

func (f *faultyFile) Write(data []byte) (n int, err error) {
	err = f.d.step(func() error { n, err = f.File.Write(data); return err })
	return n, err
}

func (f *faultyFile) Sync() error { return f.d.step(f.File.Sync) }

func (f *faultyFile) Flush() error { return f.d.step(f.File.Flush) }

func (f *faultyFile) StartFlush() error { return f.d.step(f.File.StartFlush) }

func (f *faultyFile) Close() error {
	f.d.open--
	return errors.Join(f.d.step(func() error { return nil }), f.File.Close())
}

// eachFault calls try once for each call that it makes of the disk, which fails then.
func eachFault(t *testing.T, try func(d *faulty)) {
	t.Helper()
	for at := 1; at < 1000; at++ {
		d := &faulty{at: at}
		if try(d); d.open != 0 {
			t.Errorf("fault %d: %d files are left open", at, d.open)
		}
		if d.calls < at {
			return
		}
	}
	t.Error("it never ends without a fault")
}

// A tree that could not be made is no tree, and can be made afterwards.
func TestCreateOnADiskThatFails(t *testing.T) {
	eachFault(t, func(d *faulty) {
		root := filepath.Join(t.TempDir(), ".chipset")
		tree, err := CreateOn(d, root)
		if (err == nil) != (tree != nil) || (err == nil) != (d.calls < d.at) {
			t.Fatalf("fault %d of %d: %v, %v", d.at, d.calls, tree, err)
		}
		if err != nil {
			tree, err = Create(root)
		}
		if err != nil {
			t.Fatalf("after fault %d: %v", d.at, err)
		}
		if again, err := Open(root); err != nil || again.RigID() != tree.RigID() {
			t.Errorf("after fault %d: opened %v, %v", d.at, again, err)
		}
		for _, dir := range []Path{StateDir, RunDir, LogDir, WorktreeDir} {
			if err := tree.folder(dir); err != nil {
				t.Errorf("after fault %d: %v", d.at, err)
			}
		}
	})
}

// Of many files each is there, or its error is returned, and nothing else is left.
func TestPublicationsOnADiskThatFails(t *testing.T) {
	for name, features := range kinds() {
		for _, n := range []int{1, batchFrom - 1, batchFrom + 1} {
			eachFault(t, func(d *faulty) {
				at := d.at
				d.at, d.features = 0, features
				tree := treeOn(t, d)
				must(t, errors.Join(tree.MkdirAll("state/work/0"), tree.MkdirAll("state/work/1")))
				_ = tree.able()
				d.calls, d.at = 0, at
				news := make([]NewFile, n)
				for i := range news {
					news[i] = NewFile{Path: Path(fmt.Sprintf("state/work/%d/%d.json", i%2, i)), Data: fmt.Append(nil, i)}
				}
				there := 0
				for i, err := range tree.WriteAll(news) {
					data, readErr := tree.Read(news[i].Path, MaxFile)
					if err == nil && string(data) != fmt.Sprint(i) || err != nil && !errors.Is(readErr, ErrNotFound) {
						t.Errorf("%s, fault %d: %d: %v, and it holds %q, %v", name, at, i, err, data, readErr)
					}
					if err == nil {
						there++
					}
				}
				if d.calls < d.at && there != n {
					t.Errorf("%s: without a fault %d of %d files", name, there, n)
				}
				if left := leftovers(t, tree); len(left) > 0 {
					t.Errorf("%s, fault %d: left %v", name, at, left)
				}
				must(t, tree.Close())
			})
		}
	}
}

// A file that could not be replaced holds what it held, and one that could not be made is not there.
func TestReplaceOnADiskThatFails(t *testing.T) {
	eachFault(t, func(d *faulty) {
		tree, err := OpenOn(d, newTree(t).Root())
		must(t, err)
		at := d.at
		d.at = 0
		must(t, tree.Replace("state/work/a.json", []byte("old")))
		d.calls, d.at = 0, at
		for p, before := range map[Path]string{"state/work/a.json": "old", "state/work/b.json": ""} {
			err := tree.Replace(p, []byte("new"))
			data, readErr := tree.Read(p, 10)
			want := "new"
			if err != nil {
				want = before
			}
			if string(data) != want || err != nil && before == "" && !errors.Is(readErr, ErrNotFound) {
				t.Errorf("fault %d: %s holds %q, %v, after %v", at, p, data, readErr, err)
			}
		}
	})
}

// A cache, and a link, are the old or the new one, and say which.
func TestRunFilesOnADiskThatFails(t *testing.T) {
	eachFault(t, func(d *faulty) {
		root := newTree(t).Root()
		write := func(d disk.Disk, what string) (*Tree, error, error) {
			tree, err := OpenOn(d, root)
			must(t, err)
			w := &CacheWriter{}
			w.Text(what)
			return tree, tree.WriteCache(CacheDir.Join("a"), w), tree.Symlink(RunDir.Join("a"), what)
		}
		_, cacheErr, linkErr := write(disk.OS{}, "old")
		must(t, errors.Join(cacheErr, linkErr))
		tree, cacheErr, linkErr := write(d, "new")
		want := func(err error) string {
			if err != nil {
				return "old"
			}
			return "new"
		}
		if r, err := tree.ReadCache(CacheDir.Join("a")); err != nil || r.Text() != want(cacheErr) {
			t.Errorf("fault %d: the cache is %+v, %v, and the error was %v", d.at, r, err, cacheErr)
		}
		if link, err := os.Readlink(tree.Abs(RunDir.Join("a"))); err != nil || link != want(linkErr) {
			t.Errorf("fault %d: the link is %s, %v, and the error was %v", d.at, link, err, linkErr)
		}
		for _, dir := range []Path{RunDir, CacheDir} {
			if left, _ := filepath.Glob(tree.Abs(dir.Join(".*"))); len(left) > 0 {
				t.Errorf("fault %d: left %v", d.at, left)
			}
		}
		if (cacheErr == nil && linkErr == nil) != (d.calls < d.at) {
			t.Errorf("fault %d of %d: %v, %v", d.at, d.calls, cacheErr, linkErr)
		}
	})
}

// Writers who come while others are at it share barriers. Each file is there when its writer is
// told so, also where the barrier of a group fails.
func TestWritersJoin(t *testing.T) {
	for _, broken := range []bool{false, true} {
		const writers = 4 * sendersFrom
		d := &featured{features: disk.Features{Barrier: true}}
		tree := treeOn(t, d)
		must(t, tree.MkdirAll("state/work"))
		inside := func() int {
			tree.groups.mu.Lock()
			defer tree.groups.mu.Unlock()
			return tree.groups.inside
		}
		all := make(chan struct{}) // closed when all have come
		d.fail = func(op, path string) error {
			if op == "sync-dir" && path == tree.Abs("state/work") {
				<-all // nobody ends before
			}
			if broken && op == "barrier" && d.barriers.Load() == 1 {
				return unix.EIO
			}
			return nil
		}
		var running sync.WaitGroup
		for i := range writers {
			running.Go(func() {
				p := Path(fmt.Sprintf("state/work/%d.json", i))
				if err := tree.WriteNew(p, []byte("x")); err != nil {
					t.Error(err)
				}
				if data, err := tree.Read(p, MaxFile); err != nil || string(data) != "x" {
					t.Errorf("%s holds %q, %v", p, data, err)
				}
			})
		}
		for inside() < writers {
			runtime.Gosched()
		}
		close(all)
		running.Wait()
		if n := d.barriers.Load(); n == 0 || n > 8 {
			t.Errorf("broken %v: %d barriers for %d writers", broken, n, writers)
		}
		if inside() != 0 || tree.groups.flying != 0 || len(tree.groups.waiting) != 0 {
			t.Errorf("broken %v: left %d inside, %d groups, %d waiting", broken, inside(), tree.groups.flying, len(tree.groups.waiting))
		}
	}
}

// One file and a few are published without a barrier, which would write out what others made dirty.
func TestFewFilesNeedNoBarrier(t *testing.T) {
	d := &featured{features: disk.Features{Barrier: true}}
	tree := treeOn(t, d)
	must(t, tree.WriteNew("state/work/a.json", nil))
	for n, want := range map[int]int64{1: 0, batchFrom - 1: 0, batchFrom: 1, groupMost: 1, groupMost + batchFrom: 2} {
		before := d.barriers.Load()
		news := make([]NewFile, n)
		for i := range news {
			news[i].Path = Path(fmt.Sprintf("state/work/%d-%d.json", n, i))
		}
		must(t, errors.Join(tree.WriteAll(news)...))
		if got := d.barriers.Load() - before; got != want {
			t.Errorf("%d files: %d barriers, want %d", n, got, want)
		}
	}
}

// Where no barrier can be opened, files are published without one.
func TestNoBarrierCanBeOpened(t *testing.T) {
	tree := treeOn(t, noBarrier{&featured{features: disk.Features{Barrier: true}}})
	news := make([]NewFile, batchFrom)
	for i := range news {
		news[i].Path = Path(fmt.Sprintf("state/work/%d.json", i))
	}
	must(t, errors.Join(tree.WriteAll(news)...))
	must(t, tree.Close())

	d := &faulty{features: disk.Features{Barrier: true}}
	tree, err := OpenOn(d, newTree(t).Root())
	must(t, err)
	must(t, tree.Close())
	if tree.able(); tree.barrier != nil {
		t.Error("a tree that is closed opens a barrier, which nobody closes")
	}
}

type noBarrier struct{ *featured }

func (noBarrier) Barrier(string) (disk.Barrier, error) { return nil, unix.EMFILE }

// A sync that failed earlier is not held against files that come later, whichever of them gets no name.
func TestAnEarlierFailureIsOver(t *testing.T) {
	for name, features := range kinds() {
		d := &featured{features: features}
		tree := treeOn(t, d)
		must(t, tree.WriteNew("state/work/taken.json", nil))
		d.fail = func(string, string) error { return unix.EIO }
		if err := tree.WriteNew("state/work/a.json", nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		d.fail = nil
		for _, n := range []int{2, batchFrom + 1} {
			news := []NewFile{{Path: "state/work/taken.json"}}
			for i := 1; i < n; i++ {
				news = append(news, NewFile{Path: Path(fmt.Sprintf("state/work/%d-%d.json", n, i))})
			}
			before := d.barriers.Load()
			errs := tree.WriteAll(news)
			if !errors.Is(errs[0], ErrExists) || errors.Join(errs[1:]...) != nil {
				t.Errorf("%s: %v", name, errs)
			}
			if n := d.barriers.Load() - before; n > 1 {
				t.Errorf("%s: %d barriers", name, n)
			}
		}
	}
}

// The name of a file in the quarantine is that of where it was, as far as any program may print it.
func TestPlainName(t *testing.T) {
	const all = "azAZ09.-_"
	a, b := strings.Repeat("a", 60), strings.Repeat("b", 60)
	for p, want := range map[string]string{
		"state/" + all: all, "state/mail/a": "mail_a", "logs/a b": "logs_a_b", "state/{@[/:": "_____", "state/\n": "_",
		"state/" + a + b: a + b, "state/a" + a + b: a + b,
	} {
		if got := plainName(p); got != want {
			t.Errorf("%q: %q, want %q", p, got, want)
		}
	}
}
