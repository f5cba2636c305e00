package model

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gastown-chipset/chipset/state/disk"
)

// Recorder is a disk.Disk that does what it is told in a folder and writes down
// what each call changed. It may fail or kill at one call.
type Recorder struct {
	features disk.Features
	top      string
	real     disk.OS

	mu    sync.Mutex
	h     *history
	names map[slot]int // as programs see them
	calls []Call
	fault Fault
	dead  bool
	stuck error // every call fails with it from now on
	// spoilt: the close of a file that has a name failed.
	spoilt bool
}

// Call is one call of the disk, for reading.
type Call struct {
	Op, Path string
}

var (
	_ disk.Disk = (*Recorder)(nil)

	// errKilled is what a killed process gets of all calls that it still makes.
	errKilled = errors.New("the process is dead")
)

// newRecorder records on the folder top, whose content is taken to be durable.
func newRecorder(top string, features disk.Features) (*Recorder, error) {
	h := &history{features: features, base: map[slot]int{}, parents: map[int]slot{}}
	h.nodes = []*node{{}, {mode: fs.ModeDir}}
	r := &Recorder{features: features, top: top, h: h, names: map[slot]int{}, fault: Fault{Call: -1}}
	return r, r.scan(top, root)
}

func (r *Recorder) scan(dir string, number int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if r.volatile(at) {
			continue
		}
		n := &node{mode: e.Type()}
		switch {
		case e.Type().IsRegular():
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			n.versions = [][]byte{data}
		case e.Type()&fs.ModeSymlink != 0:
			n.target, _ = os.Readlink(at)
		}
		child, place := r.h.add(n), slot{number, e.Name()}
		r.h.base[place], r.names[place] = child, child
		if e.IsDir() {
			r.h.parents[child] = place
			if err := r.scan(at, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// volatile reports whether a path lies where nothing is promised.
func (r *Recorder) volatile(path string) bool {
	rel, err := filepath.Rel(filepath.Join(r.top, ".chipset"), path)
	if err != nil {
		return true
	}
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return first == "run" || first == "logs" || first == "worktrees"
}

// find returns the slot of a path; ok is false when its folder is not recorded.
func (r *Recorder) find(path string) (slot, bool) {
	rel, err := filepath.Rel(r.top, path)
	if err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return slot{}, false
	}
	at := root
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for _, part := range parts[:len(parts)-1] {
		if at = r.names[slot{at, part}]; at == 0 {
			return slot{}, false
		}
	}
	return slot{at, parts[len(parts)-1]}, true
}

func (r *Recorder) number(path string) int {
	if filepath.Clean(path) == r.top {
		return root
	}
	at, _ := r.find(path)
	return r.names[at]
}

// do makes one call: act does it, note writes down what it changed. sync is
// told of an injected failure of a call that should have made something durable.
func (r *Recorder) do(op, path string, act func() error, note func(call int), sync func(call int)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.volatile(path) {
		return act()
	}
	if r.dead {
		return errKilled
	}
	call := len(r.calls)
	r.calls = append(r.calls, Call{Op: op, Path: r.relative(path)})
	if err := r.failing(call, op, path); err != nil {
		// What a read-only file system refuses to sync stays as it is.
		if sync != nil && r.stuck == nil {
			sync(call)
		}
		return err
	}
	if r.killed(call, KillBefore) {
		return errKilled
	}
	if err := act(); err != nil {
		return err
	}
	note(call)
	if r.killed(call, KillAfter) {
		return errKilled
	}
	return nil
}

func (r *Recorder) relative(path string) string {
	rel, err := filepath.Rel(filepath.Join(r.top, ".chipset"), path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// killed reports whether the process ends here. What is left of it can do nothing
// any more: each call fails and changes nothing, and no promise counts.
func (r *Recorder) killed(call int, when FaultKind) bool {
	r.dead = r.dead || r.fault.Call == call && r.fault.Kind == when
	return r.dead
}

// failing returns the error that a call is to end with, if any.
func (r *Recorder) failing(call int, op, path string) error {
	err := r.stuck
	if r.fault.Call == call && r.fault.Kind.fits(op) {
		if err = r.fault.Kind.error(); r.fault.Kind == ReadOnly {
			r.stuck = err
		}
	}
	if err == nil || op == "close" && r.stuck != nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// short reports whether the write now called is to be cut off.
func (r *Recorder) short(call int) bool {
	return r.fault.Call == call && r.fault.Kind == ShortWrite
}

// revive lets another process go on where one was killed or failed: what is
// visible stays, and nothing of it became durable by that.
func (r *Recorder) revive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead, r.stuck, r.fault = false, nil, Fault{Call: -1}
}

func (r *Recorder) acknowledge(fact string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dead {
		r.h.note(effect{kind: acknowledged, fact: fact, call: len(r.calls) - 1})
	}
}

// lead makes a name lead to a node, 0 for nowhere.
func (r *Recorder) lead(at slot, to int) set {
	if to == 0 {
		delete(r.names, at)
	} else {
		r.names[at] = to
	}
	return set{at, to}
}

func (r *Recorder) nothing(int) {}

// Features implements disk.Disk.
func (r *Recorder) Features(string) disk.Features { return r.features }

// Create implements disk.Disk.
func (r *Recorder) Create(path string) (disk.File, error) {
	f := &file{r: r, path: path, volatile: r.volatile(path)}
	err := r.do("create", path, func() (err error) {
		f.File, err = r.real.Create(path)
		return err
	}, func(call int) {
		f.number = r.h.add(&node{versions: [][]byte{nil}, born: true})
		r.name(call, path, f.number)
	}, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// name notes a new name of a node whose inode must reach the disk as well.
func (r *Recorder) name(call int, path string, number int) {
	if at, ok := r.find(path); ok {
		r.h.change(call, r.lead(at, number))
		r.h.made(call, number)
	}
}

// Unnamed implements disk.Disk.
func (r *Recorder) Unnamed(dir string) (disk.File, error) {
	f := &file{r: r, path: filepath.Join(dir, "(unnamed)"), volatile: r.volatile(dir)}
	err := r.do("unnamed", dir, func() (err error) {
		f.File, err = r.real.Unnamed(dir)
		return err
	}, func(int) {
		f.number = r.h.add(&node{versions: [][]byte{nil}, born: true})
	}, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Link implements disk.Disk.
func (r *Recorder) Link(f disk.File, path string) error {
	mine := f.(*file)
	return r.do("link", path, func() error { return r.real.Link(mine.File, path) },
		func(call int) { r.name(call, path, mine.number) }, nil)
}

// Pending implements disk.Disk: the steps of the real one, each a call of its own.
func (r *Recorder) Pending(path string) (disk.Pending, error) {
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s%d", filepath.Base(path), rand.Uint64()))
	f, err := r.Create(temp)
	if err != nil {
		return nil, err
	}
	return &pendingFile{File: f, r: r, temp: temp, path: path}, nil
}

// Append implements disk.Disk.
func (r *Recorder) Append(path string) (disk.File, error) {
	f := &file{r: r, path: path, volatile: r.volatile(path)}
	err := r.do("append", path, func() (err error) {
		f.File, err = r.real.Append(path)
		return err
	}, func(call int) {
		if f.number = r.number(path); f.number == 0 {
			f.number = r.h.add(&node{versions: [][]byte{nil}, born: true})
			r.name(call, path, f.number)
		}
	}, nil)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// RenameNew implements disk.Disk.
func (r *Recorder) RenameNew(from, to string) error {
	return r.do("rename-new", to, func() error { return r.real.RenameNew(from, to) },
		func(call int) { r.moved(call, from, to) }, nil)
}

// Rename implements disk.Disk.
func (r *Recorder) Rename(from, to string) error {
	return r.do("rename", to, func() error { return r.real.Rename(from, to) },
		func(call int) { r.moved(call, from, to) }, nil)
}

func (r *Recorder) moved(call int, from, to string) {
	was, okFrom := r.find(from)
	is, okTo := r.find(to)
	if number := r.names[was]; okFrom && okTo && number != 0 {
		r.h.change(call, r.lead(was, 0), r.lead(is, number))
	}
}

// Remove implements disk.Disk.
func (r *Recorder) Remove(path string) error {
	return r.do("remove", path, func() error { return r.real.Remove(path) }, func(call int) {
		if at, ok := r.find(path); ok {
			r.h.change(call, r.lead(at, 0))
		}
	}, nil)
}

// Mkdir implements disk.Disk.
func (r *Recorder) Mkdir(path string) error {
	return r.do("mkdir", path, func() error { return r.real.Mkdir(path) }, func(call int) {
		r.name(call, path, r.h.add(&node{mode: fs.ModeDir, born: true}))
	}, nil)
}

// Symlink implements disk.Disk.
func (r *Recorder) Symlink(target, path string) error {
	return r.do("symlink", path, func() error { return r.real.Symlink(target, path) }, func(call int) {
		r.name(call, path, r.h.add(&node{mode: fs.ModeSymlink, target: target, versions: [][]byte{nil}, born: true}))
	}, nil)
}

// SyncFile implements disk.Disk.
func (r *Recorder) SyncFile(path string) error {
	note := func(failed bool) func(int) {
		return func(call int) {
			r.h.note(effect{kind: synced, call: call, node: r.number(path), failed: failed})
		}
	}
	return r.do("sync-file", path, func() error { return r.real.SyncFile(path) }, note(false), note(true))
}

// SyncDir implements disk.Disk.
func (r *Recorder) SyncDir(path string) error {
	note := func(failed bool) func(int) {
		return func(call int) {
			r.h.note(effect{kind: syncedDir, call: call, node: r.number(path), failed: failed})
		}
	}
	return r.do("sync-dir", path, func() error { return r.real.SyncDir(path) }, note(false), note(true))
}

// Barrier implements disk.Disk.
func (r *Recorder) Barrier(dir string) (disk.Barrier, error) { return recordedBarrier{r, dir}, nil }

type recordedBarrier struct {
	r   *Recorder
	dir string
}

// Close implements disk.Barrier.
func (recordedBarrier) Close() error { return nil }

// Settle implements disk.Barrier. It promises nothing where it is no feature.
func (b recordedBarrier) Settle() error {
	if !b.r.features.Barrier {
		return b.r.do("barrier", b.dir, func() error { return nil }, b.r.nothing, nil)
	}
	note := func(failed bool) func(int) {
		return func(call int) { b.r.h.note(effect{kind: barrier, call: call, failed: failed}) }
	}
	return b.r.do("barrier", b.dir, func() error { return nil }, note(false), note(true))
}
