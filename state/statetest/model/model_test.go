package model_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/disk"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Controls: what the model must find out, or it proves nothing.

// publish is a whole operation: a message into a new mailbox.
func publish(name string, do func(r *model.Run) error) model.Scenario {
	const p = "state/mail/mayor/new.json"
	return model.Scenario{
		Name:    name,
		Prepare: func(r *model.Run) error { return r.Tree.WriteNew("state/mail/old.json", []byte("old")) },
		Do: func(r *model.Run) error {
			if err := do(r); err != nil {
				return err
			}
			r.Ack("published")
			return nil
		},
		Check: func(c *model.Crash) error {
			if _, there := c.Files[p]; c.Acked("published") && !there {
				return errors.New("it is lost")
			}
			return nil
		},
	}
}

func writeNew(r *model.Run) error {
	return r.Tree.WriteNew("state/mail/mayor/new.json", []byte(strings.Repeat("n", 5000)))
}

func writeAll(r *model.Run) error {
	var news []state.NewFile
	for i := range 13 {
		news = append(news, state.NewFile{Path: state.Path(fmt.Sprintf("state/mail/mayor/%d.json", i)), Data: []byte("other")})
	}
	news[5].Path = "state/mail/mayor/new.json"
	return errors.Join(r.Tree.WriteAll(news)...)
}

// liar is a disk of which some calls do nothing though they say so.
type liar struct {
	disk.Disk
	lie func(op, path string) bool
}

func (l liar) SyncDir(path string) error {
	if l.lie("sync-dir", path) {
		return nil
	}
	return l.Disk.SyncDir(path)
}

func (l liar) Barrier(dir string) (disk.Barrier, error) {
	b, err := l.Disk.Barrier(dir)
	return liarBarrier{b, l, dir}, err
}

type liarBarrier struct {
	disk.Barrier
	l   liar
	dir string
}

func (b liarBarrier) Settle() error {
	if b.l.lie("barrier", b.dir) {
		return nil
	}
	return b.Barrier.Settle()
}

type liarFile struct {
	disk.File
	l liar
}

func (f liarFile) Sync() error {
	if f.l.lie("sync", f.Name()) {
		return nil
	}
	return f.File.Sync()
}

func (f liarFile) Flush() error {
	if f.l.lie("flush", f.Name()) {
		return nil
	}
	return f.File.Flush()
}

func (l liar) Create(path string) (disk.File, error) {
	f, err := l.Disk.Create(path)
	if err != nil {
		return nil, err
	}
	return liarFile{f, l}, nil
}

func (l liar) Unnamed(dir string) (disk.File, error) {
	f, err := l.Disk.Unnamed(dir)
	if err != nil {
		return nil, err
	}
	return liarFile{f, l}, nil
}

func (l liar) Link(f disk.File, path string) error { return l.Disk.Link(f.(liarFile).File, path) }

// The nth sync of an operation is dropped, each in turn; the model finds out.
func TestEachDroppedSyncIsFound(t *testing.T) {
	t.Setenv("CHIPSET_FULL", "") // each is found among few states
	for kind, features := range model.Kinds() {
		for name, do := range map[string]func(*model.Run) error{"one": writeNew, "group": writeAll} {
			dropped := 1
			for n := 0; dropped == 1; n++ {
				var what string
				dropped = 0
				var mu sync.Mutex
				calls := 0
				_, err := model.Explore(t, publish(name, do), features, func(d disk.Disk) disk.Disk {
					calls, dropped = 0, 0
					return liar{d, func(op, path string) bool {
						mu.Lock()
						defer mu.Unlock()
						calls++
						if calls-1 != n {
							return false
						}
						dropped, what = 1, op+" "+path
						return true
					}}
				})
				if dropped == 1 && err == nil && !needless(what, name, features) {
					t.Errorf("%s on %s: nobody noticed that %s was dropped", name, kind, what)
				}
			}
		}
	}
}

// needless syncs are of a folder whose entry was there before, save another
// file of the group, were done for another file of the group as well, or come
// before a barrier that makes the folder durable too.
func needless(what, name string, f disk.Features) bool {
	group := name == "group"
	return strings.HasSuffix(what, "/.chipset/state") ||
		group && (strings.HasPrefix(what, "sync ") || strings.HasPrefix(what, "flush ")) ||
		group && strings.HasPrefix(what, "sync-dir ") && (f.Barrier || strings.HasSuffix(what, "/mail"))
}

// A name that comes before its content is torn.
func TestContentAfterItsNameIsTorn(t *testing.T) {
	for kind, features := range model.Kinds() {
		_, err := model.Explore(t, publish("swapped", writeNew), features, func(d disk.Disk) disk.Disk { return swapped{d} })
		if err == nil || !strings.Contains(err.Error(), "torn") {
			t.Errorf("on %s: %v", kind, err)
		}
	}
}

// swapped renames before it writes.
type swapped struct{ disk.Disk }

func (s swapped) Features(string) disk.Features { return disk.Features{} }

func (s swapped) Create(path string) (disk.File, error) {
	final := filepath.Join(filepath.Dir(path), "new.json")
	f, err := s.Disk.Create(final)
	return f, err
}

func (s swapped) RenameNew(string, string) error { return nil }

// Without a journal nobody writes the inode of an unnamed file once it has a
// name: known to lose almost every message on ext4 without a journal.
func TestAnUnnamedFileNeedsAJournal(t *testing.T) {
	_, err := model.Explore(t, publish("unnamed", writeNew), disk.Features{Unnamed: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("not found out: %v", err)
	}
}

// A rename between two folders of a file system without a journal can lose the
// file, if it is taken for one with a journal.
func TestARenameBetweenFoldersNeedsAJournal(t *testing.T) {
	move := model.Scenario{
		Name:    "move",
		Prepare: func(r *model.Run) error { return r.Tree.WriteNew("state/mail/a.json", []byte("a")) },
		Do:      func(r *model.Run) error { return r.Tree.Move("state/mail/a.json", "state/mail/archive/a.json") },
		Check: func(c *model.Crash) error {
			if len(c.Names("state/mail")) == 0 {
				return errors.New("it is lost")
			}
			return nil
		},
	}
	for _, journal := range []bool{true, false} {
		believes := func(d disk.Disk) disk.Disk { return believing{d} }
		if _, err := model.Explore(t, move, disk.Features{Journal: journal}, believes); (err == nil) != journal {
			t.Errorf("journal %t: %v", journal, err)
		}
	}
}

// believing takes every file system for one with a journal.
type believing struct{ disk.Disk }

func (believing) Features(string) disk.Features { return disk.Features{Journal: true} }

// A failed sync that is tried again succeeds, and the content is gone.
func TestASecondSyncAfterAFailedOneIsFound(t *testing.T) {
	t.Setenv("CHIPSET_FULL", "1") // each fault
	for kind, features := range model.Kinds() {
		_, err := model.Explore(t, publish("retry", writeNew), features, func(d disk.Disk) disk.Disk { return retrying{d} })
		if err == nil {
			t.Errorf("on %s nobody noticed", kind)
		}
	}
}

type retrying struct{ disk.Disk }

type retryingFile struct{ disk.File }

func (f retryingFile) Sync() error {
	if f.File.Sync() != nil {
		return f.File.Sync()
	}
	return nil
}

func (r retrying) Create(path string) (disk.File, error) {
	f, err := r.Disk.Create(path)
	if err != nil {
		return nil, err
	}
	return retryingFile{f}, nil
}

func (r retrying) Features(dir string) disk.Features { return disk.Features{} }
