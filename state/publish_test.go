package state

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

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

func (d *featured) Barrier(dir string) error {
	d.barriers.Add(1)
	return d.try("barrier", dir, func() error { return nil })
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

func TestWriteAllTellsOfEachInOrder(t *testing.T) {
	for name, features := range kinds() {
		for _, n := range []int{1, groupFrom, groupMost + 20} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				tree := treeOn(t, &featured{features: features})
				must(t, tree.WriteNew("state/work/taken.json", []byte("first")))
				news := make([]New, n)
				for i := range news {
					news[i] = New{Path: Path(fmt.Sprintf("state/work/%d/%d.json", i%3, i)), Data: fmt.Appendf(nil, "content %d", i)}
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

func TestManyWritersShareBarriers(t *testing.T) {
	d := &featured{features: disk.Features{Barrier: true, Unnamed: true}}
	tree := treeOn(t, d)
	const writers, each = 64, 20
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
		t.Errorf("%d files, %v, want %d", len(entries), err, writers*each)
	}
	t.Logf("%d files, %d barriers", writers*each, d.barriers.Load())
}

func TestAfterAFailedBarrierEachFileIsWrittenAnew(t *testing.T) {
	for failing, syncs := range map[string]int{"barrier": 1, "sync-dir": 1 + groupFrom} {
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
		news := make([]New, groupFrom)
		for i := range news {
			news[i] = New{Path: Path(fmt.Sprintf("state/work/%d.json", i)), Data: []byte("x")}
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
			news := make([]New, groupFrom)
			for i := range news {
				news[i] = New{Path: Path(fmt.Sprintf("state/work/%d.json", i)), Data: []byte("x")}
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
