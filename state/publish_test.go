package state

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state/disk"
)

// featured is this machine's disk with the features of another, and failures of
// one's choice.
type featured struct {
	disk.OS
	features disk.Features
	fail     func(op, path string) error
	barriers atomic.Int64
}

func (d *featured) Features(string) disk.Features { return d.features }

func (d *featured) try(op, path string, do func() error) error {
	if d.fail != nil {
		if err := d.fail(op, path); err != nil {
			return err
		}
	}
	return do()
}

func (d *featured) Barrier(string) (disk.Barrier, error) { return d, nil }

func (d *featured) Close() error { return nil }

func (d *featured) Settle() error {
	d.barriers.Add(1)
	return d.try("barrier", "", func() error { return nil })
}

func (d *featured) SyncDir(path string) error {
	return d.try("sync-dir", path, func() error { return d.OS.SyncDir(path) })
}

func treeOn(t *testing.T, d disk.Disk) *Tree {
	t.Helper()
	tree, err := CreateOn(d, t.TempDir()+"/.chipset")
	must(t, err)
	return tree
}

// kinds of file systems: each path of a publication is taken on one of them.
func kinds() map[string]disk.Features {
	return map[string]disk.Features{
		"plain":              {},
		"unnamed":            {Unnamed: true, Journal: true},
		"barrier":            {Barrier: true},
		"barrier, unnamed":   {Barrier: true, Unnamed: true, Journal: true},
		"ordered, unnamed":   {Barrier: true, Ordered: true, Unnamed: true, Journal: true},
		"ordered, temp name": {Barrier: true, Ordered: true, Journal: true},
	}
}

// A folder that is a link is refused for every file of a batch, not for the first alone.
func TestWriteAllRefusesAFolderThatIsALink(t *testing.T) {
	for name, features := range kinds() {
		t.Run(name, func(t *testing.T) {
			tree := treeOn(t, &featured{features: features})
			outside := t.TempDir()
			must(t, tree.MkdirAll("state/mail"))
			must(t, os.Symlink(outside, tree.Abs("state/mail/x")))
			news := make([]NewFile, batchFrom+1)
			for i := range news {
				news[i] = NewFile{Path: Path(fmt.Sprintf("state/mail/x/%d.json", i)), Data: []byte("{}")}
			}
			for i, err := range tree.WriteAll(news) {
				if !errors.Is(err, ErrNotRegular) {
					t.Errorf("%d: %v", i, err)
				}
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("outside: %v, %v", entries, err)
			}
		})
	}
}

func TestWriteAllTellsOfEachInOrder(t *testing.T) {
	for name, features := range kinds() {
		for _, n := range []int{1, batchFrom, groupMost + 20} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				tree := treeOn(t, &featured{features: features})
				must(t, tree.WriteNew("state/work/taken.json", []byte("first")))
				news := make([]NewFile, n)
				for i := range news {
					news[i] = NewFile{Path: Path(fmt.Sprintf("state/work/%d/%d.json", i%3, i)), Data: fmt.Appendf(nil, "content %d", i)}
				}
				news[n/2].Path = "state/work/taken.json"
				for i, err := range tree.WriteAll(news) {
					if i == n/2 {
						if !errors.Is(err, ErrExists) {
							t.Errorf("the taken name: %v, want ErrExists", err)
						}
						continue
					}
					must(t, err)
					if data, err := tree.Read(news[i].Path, MaxFile); err != nil || string(data) != fmt.Sprintf("content %d", i) {
						t.Errorf("%d: %q, %v", i, data, err)
					}
				}
				if data, _ := tree.Read("state/work/taken.json", MaxFile); string(data) != "first" {
					t.Errorf("the taken file became %q", data)
				}
				if left := leftovers(t, tree); len(left) > 0 {
					t.Errorf("left %v", left)
				}
			})
		}
	}
}

// Many writers at once publish on every kind of file system, and share barriers where there are any.
func TestManyWritersShareBarriers(t *testing.T) {
	for name, features := range kinds() {
		d := &featured{features: features}
		tree := treeOn(t, d)
		const writers, each = 64, 5
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if err := tree.WriteNew(Path(fmt.Sprintf("state/work/%d-%d.json", w, i)), []byte("x")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if entries, err := tree.List("state/work"); err != nil || len(entries) != writers*each {
			t.Errorf("%s: %d files, %v, want %d", name, len(entries), err, writers*each)
		}
		t.Logf("%s: %d files, %d barriers", name, writers*each, d.barriers.Load())
	}
}

// Where no barrier settles many files, each writer settles its own, however many there are at once.
func TestManyWritersWithoutBarriers(t *testing.T) {
	d := &featured{}
	tree := treeOn(t, d)
	must(t, tree.MkdirAll("state/work"))
	together := make(chan struct{})
	d.fail = func(string, string) error { <-together; return nil }
	const writers = 2 * sendersFrom
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			if err := tree.WriteNew(Path(fmt.Sprintf("state/work/%d.json", w)), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	inside := func() int {
		tree.groups.mu.Lock()
		defer tree.groups.mu.Unlock()
		return tree.groups.inside
	}
	for inside() < writers {
		runtime.Gosched()
	}
	close(together)
	wg.Wait()
	if entries, err := tree.List("state/work"); err != nil || len(entries) != writers || d.barriers.Load() != 0 {
		t.Errorf("%d files, %v, %d barriers", len(entries), err, d.barriers.Load())
	}
}

func TestAfterAFailedBarrierEachFileIsWrittenAnew(t *testing.T) {
	for failing, syncs := range map[string]int{"barrier": 1, "sync-dir": 1 + batchFrom} {
		calls, armed := 0, false
		d := &featured{features: disk.Features{Barrier: true}}
		d.fail = func(op, _ string) error {
			if op != failing || !armed {
				return nil
			}
			if calls++; calls == 1 {
				return errors.New("input/output error")
			}
			return nil
		}
		tree := treeOn(t, d)
		news := make([]NewFile, batchFrom)
		for i := range news {
			news[i] = NewFile{Path: Path(fmt.Sprintf("state/work/%d.json", i)), Data: []byte("x")}
		}
		must(t, tree.MkdirAll("state/work"))
		armed = true
		inodes := map[string]bool{}
		for i, err := range tree.WriteAll(news) {
			must(t, err)
			info, err := os.Stat(tree.Abs(news[i].Path))
			must(t, err)
			inodes[fmt.Sprint(info.Sys().(*unixStat).Ino)] = true
		}
		if len(inodes) != len(news) || calls != syncs {
			t.Errorf("a %s failed: %d files, called %d times, want %d", failing, len(inodes), calls, syncs)
		}
		if left := leftovers(t, tree); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
}

func TestAFailedPublicationLeavesNothing(t *testing.T) {
	for name, features := range kinds() {
		t.Run(name, func(t *testing.T) {
			d := &featured{features: features}
			tree := treeOn(t, d)
			must(t, tree.MkdirAll("state/work"))
			failure := errors.New("input/output error")
			d.fail = func(string, string) error { return failure }
			news := make([]NewFile, batchFrom)
			for i := range news {
				news[i] = NewFile{Path: Path(fmt.Sprintf("state/work/%d.json", i)), Data: []byte("x")}
			}
			for i, err := range tree.WriteAll(news) {
				if !errors.Is(err, failure) {
					t.Errorf("%d: %v", i, err)
				}
			}
			if entries, _ := os.ReadDir(tree.Abs("state/work")); len(entries) > 0 {
				t.Errorf("left %v", entries)
			}
		})
	}
}

// What a barrier failed to write may be of files whose own barrier comes after
// it, and would succeed.
func TestAFailedBarrierIsBelievedOfAllThatWasWrittenBefore(t *testing.T) {
	d := &featured{features: disk.Features{Barrier: true}}
	tree := treeOn(t, d)
	must(t, tree.MkdirAll("state/work"))
	begin := func(name Path) *publication {
		pub := &publication{NewFile: NewFile{Path: "state/work/" + name, Data: []byte("x")}}
		pub.prepare(tree)
		must(t, pub.err)
		return pub
	}
	first, second := begin("1.json"), begin("2.json")
	d.fail = func(op, _ string) error {
		if op == "barrier" {
			return errors.New("input/output error")
		}
		return nil
	}
	if doubt := tree.settle([]*publication{first}); len(doubt) != 1 {
		t.Errorf("%d in doubt after a failed barrier, want 1", len(doubt))
	}
	d.fail = nil
	third := begin("3.json")
	if doubt := tree.settle([]*publication{second, third}); len(doubt) != 1 || doubt[0] != second {
		t.Errorf("%d in doubt, want the one that was written before the barrier failed", len(doubt))
	}
}

// Many who want one folder synced share the calls, and each has one that began
// after it asked.
func TestSyncsOfAFolderAreShared(t *testing.T) {
	var s dirSyncs
	var began, wanted, ended atomic.Int64
	hold := make(chan struct{})
	var wg sync.WaitGroup
	const callers = 40
	for range callers {
		wg.Go(func() {
			at := wanted.Add(1)
			err := s.sync("state/work", func() error {
				began.Add(1)
				saw := wanted.Load()
				<-hold
				for last := ended.Load(); last < saw && !ended.CompareAndSwap(last, saw); last = ended.Load() {
				}
				return nil
			})
			if err != nil || ended.Load() < at {
				t.Errorf("%v; asked as number %d, the last sync that ended began at %d", err, at, ended.Load())
			}
		})
	}
	for wanted.Load() < callers || began.Load() < syncsBeside {
		runtime.Gosched()
	}
	close(hold)
	wg.Wait()
	if n := began.Load(); n >= callers {
		t.Errorf("%d syncs for %d callers", n, callers)
	}
	if len(s.of) != 0 {
		t.Errorf("%d folders are kept", len(s.of))
	}
}

// A sync that comes after a failed one succeeds though the name may be lost.
func TestWhoWaitsForASyncHearsOfTheFailureBefore(t *testing.T) {
	var s dirSyncs
	failure := errors.New("input/output error")
	hold := make(chan struct{})
	var wg sync.WaitGroup
	var began atomic.Int64
	for range syncsBeside {
		wg.Go(func() {
			err := s.sync("state/work", func() error { began.Add(1); <-hold; return failure })
			if !errors.Is(err, failure) {
				t.Errorf("its own failure: %v", err)
			}
		})
	}
	for began.Load() < syncsBeside {
		runtime.Gosched()
	}
	late := make(chan error)
	go func() { late <- s.sync("state/work", func() error { return nil }) }()
	for {
		s.mu.Lock()
		waits := s.of["state/work"].next != nil
		s.mu.Unlock()
		if waits {
			break
		}
		runtime.Gosched()
	}
	close(hold)
	if err := <-late; !errors.Is(err, failure) {
		t.Errorf("the failure before: %v", err)
	}
	wg.Wait()
	if n := s.failures("state/work"); n != syncsBeside {
		t.Errorf("%d failures counted", n)
	}
}

// A sync that fails between a change of a folder and its own sync is held against
// the change when it is of the same folder, and only then.
func TestAFailedSyncIsHeldAgainstItsFolderAlone(t *testing.T) {
	failure := errors.New("input/output error")
	verbs := map[string]func(*Tree) error{
		"WriteNew": func(tree *Tree) error { return tree.WriteNew("state/work/1.json", []byte("x")) },
		"WriteAll": func(tree *Tree) error {
			return errors.Join(tree.WriteAll([]NewFile{{Path: "state/work/1.json"}, {Path: "state/work/2.json"}})...)
		},
		"Replace":  func(tree *Tree) error { return tree.Replace("state/work/1.json", []byte("x")) },
		"MkdirAll": func(tree *Tree) error { return tree.MkdirAll("state/work/1") },
	}
	for name, verb := range verbs {
		for other, want := range map[Path]error{"state/work": errLostName, "state/hooks": nil, "state/missing": nil} {
			t.Run(fmt.Sprint(name, ", sync of ", other, " fails"), func(t *testing.T) {
				d := &featured{}
				tree := treeOn(t, d)
				must(t, tree.MkdirAll("state/work"))
				must(t, tree.MkdirAll("state/hooks"))
				armed := true
				d.fail = func(_, path string) error {
					if !armed || path != tree.Abs("state/work") {
						return nil
					}
					armed = false
					err := tree.syncs.sync(other, func() error {
						if other == "state/missing" {
							return d.OS.SyncDir(tree.Abs(other))
						}
						return failure
					})
					if err == nil {
						t.Errorf("the sync of %s did not fail", other)
					}
					return nil
				}
				if err := verb(tree); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				if armed {
					t.Error("the folder was not synced")
				}
			})
		}
	}
}

// A sync of the folder may also fail between a change and the change's own sync, which then succeeds.
func TestASyncThatFailsAfterAChangeIsHeldAgainstIt(t *testing.T) {
	for name, verb := range map[string]func(*Tree) error{
		"WriteNew": func(tree *Tree) error { return tree.WriteNew("state/work/1.json", []byte("x")) },
		"Replace":  func(tree *Tree) error { return tree.Replace("state/work/1.json", []byte("x")) },
		"MkdirAll": func(tree *Tree) error { return tree.MkdirAll("state/work/1") },
	} {
		t.Run(name, func(t *testing.T) {
			d := &disturbed{}
			tree := treeOn(t, d)
			must(t, tree.MkdirAll("state/work"))
			d.after = func() {
				if tree.syncs.sync("state/work", func() error { return unix.EIO }) == nil {
					t.Error("the other sync did not fail")
				}
			}
			if err := verb(tree); !errors.Is(err, errLostName) {
				t.Errorf("%v, want %v", err, errLostName)
			}
			if entries, err := tree.List("state/work"); err != nil || len(entries) > 0 {
				t.Errorf("it left %v, %v", entries, err)
			}
		})
	}
}

// disturbed is a disk that calls after once, after the next change of a name.
type disturbed struct {
	disk.OS
	after func()
}

func (d *disturbed) Features(string) disk.Features { return disk.Features{} }

func (d *disturbed) changed(err error) error {
	if after := d.after; after != nil && err == nil {
		d.after = nil
		after()
	}
	return err
}

func (d *disturbed) Mkdir(path string) error { return d.changed(d.OS.Mkdir(path)) }

func (d *disturbed) RenameNew(from, to string) error { return d.changed(d.OS.RenameNew(from, to)) }

func (d *disturbed) Pending(path string) (disk.Pending, error) {
	p, err := d.OS.Pending(path)
	return disturbedPending{p, d}, err
}

type disturbedPending struct {
	disk.Pending
	d *disturbed
}

func (p disturbedPending) Replace() error { return p.d.changed(p.Pending.Replace()) }

// Lock syncs folders that may not exist yet. Who makes one at the same time must
// not fail because of that.
func TestAMissingFolderIsNoFailedSync(t *testing.T) {
	tree := newTree(t)
	if err := tree.SyncDir("state/work"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	if n := tree.syncs.failures("state/work"); n != 0 {
		t.Errorf("%d failures counted", n)
	}
}
