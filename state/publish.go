package state

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/gastown-chipset/chipset/state/disk"
)

// NewFile is a file to be published under a name that does not exist.
type NewFile struct {
	Path Path
	Data []byte
}

// WriteNew publishes a file under a name that does not exist. It returns ErrExists when
// the name is taken. When it returns nil, the file survives a power cut; after any other
// error there is no file. Many concurrent callers share fsyncs.
func (t *Tree) WriteNew(p Path, data []byte) error {
	return t.groups.publish(t, &publication{NewFile: NewFile{Path: p, Data: data}})
}

// WriteAll publishes many files and returns for each, in their order, what WriteNew
// would have returned. Of two files with the same name, one gets ErrExists. When it
// returns, all files without an error are durable.
func (t *Tree) WriteAll(news []NewFile) []error {
	pubs := make([]*publication, len(news))
	for i, n := range news {
		pubs[i] = &publication{NewFile: n}
	}
	t.groups.publishMany(t, pubs)
	errs := make([]error, len(news))
	for i, pub := range pubs {
		errs[i] = pub.err
	}
	return errs
}

// publication is one new file on its way to its name.
type publication struct {
	NewFile
	file  disk.File // nil when there is none or it is closed
	temp  string    // the path of a named temp file, or ""
	named bool      // the file has its name, which may not be durable
	err   error

	// since counts the barriers that had failed before the content was written, and
	// namedSince the syncs of the folder that had failed before the name was given. A
	// failure after that may have lost the file although a later sync succeeds.
	since, namedSince int64

	// turn receives a group to publish, or nil once err is set; see groups.join.
	turn chan []*publication
}

// publishOne publishes one file by itself.
func (t *Tree) publishOne(pub *publication) {
	if pub.prepare(t); pub.err == nil {
		pub.sync()
	}
	if pub.name(t); pub.named {
		if err := t.syncNames(pub.Path.Dir(), pub.namedSince); err != nil {
			pub.undo(t, err)
		}
	}
	pub.finish(t)
}

// prepare makes the folder if it is missing, and writes the content.
func (pub *publication) prepare(t *Tree) {
	if pub.err = t.makeRoom(pub.Path); pub.err == nil {
		pub.write(t)
	}
}

// prepareAll is prepare for a group. It checks each folder once.
func (t *Tree) prepareAll(pubs []*publication) {
	rooms := map[Path]error{}
	for _, pub := range pubs {
		if pub.err = pub.Path.valid(); pub.err != nil {
			continue
		}
		dir := pub.Path.Dir()
		room, looked := rooms[dir]
		if !looked {
			room = t.MkdirAll(dir)
			rooms[dir] = room
		}
		if pub.err = room; room == nil {
			pub.write(t)
			pub.startFlush(t)
		}
	}
}

// write writes the content to a file without a name, or to a temp file in the folder.
func (pub *publication) write(t *Tree) {
	pub.since = t.groups.failed.Load()
	dir := t.Abs(pub.Path.Dir())
	unnamed := t.able().Unnamed
	var err error
	if unnamed {
		pub.file, err = t.disk.Unnamed(dir)
	}
	if !unnamed || errors.Is(err, errors.ErrUnsupported) {
		pub.temp = t.tempBeside(pub.Path)
		pub.file, err = t.disk.Create(pub.temp)
	}
	if err != nil {
		pub.file, pub.temp = nil, ""
		pub.fail(err)
		return
	}
	if _, err := pub.file.Write(pub.Data); err != nil {
		pub.fail(err)
	}
}

func (pub *publication) fail(err error) { pub.err = wrapPath(pub.Path, err) }

// sync makes the content durable. A file whose sync failed is never given a name.
func (pub *publication) sync() {
	if err := pub.file.Sync(); err != nil {
		pub.fail(err)
	}
}

// startFlush begins to write the content to the disk, if groups settle by flushing.
func (pub *publication) startFlush(t *Tree) {
	if pub.err != nil || !t.able().Ordered {
		return
	}
	if err := pub.file.StartFlush(); err != nil {
		pub.fail(err)
	}
}

// name gives the file its name, unless something failed before. A temp file is closed
// first, because only close may report a failed write; an unnamed file must stay open
// until it is linked.
func (pub *publication) name(t *Tree) {
	if pub.err != nil {
		return
	}
	pub.namedSince = t.syncs.failures(pub.Path.Dir())
	var err error
	if pub.temp == "" {
		err = t.disk.Link(pub.file, t.Abs(pub.Path))
	} else if err = pub.close(); err == nil {
		err = t.disk.RenameNew(pub.temp, t.Abs(pub.Path))
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		pub.err = ErrExists
	case err != nil:
		pub.fail(err)
	default:
		pub.temp = ""
		if err := pub.close(); err != nil {
			pub.undo(t, err)
		} else {
			pub.named = true
		}
	}
}

func (pub *publication) close() error {
	if pub.file == nil {
		return nil
	}
	f := pub.file
	pub.file = nil
	return f.Close()
}

// undo removes a name that could not be made durable, so that a failed publication
// leaves no file.
func (pub *publication) undo(t *Tree, err error) {
	pub.fail(err)
	_ = t.disk.Remove(t.Abs(pub.Path)) // the first error counts
}

// finish leaves no temp file behind.
func (pub *publication) finish(t *Tree) {
	_ = pub.close() // it is only open after an error, and the first error counts
	if pub.temp != "" {
		_ = t.disk.Remove(pub.temp)
	}
	if errors.Is(pub.err, ErrExists) {
		pub.err = t.exists(pub.Path)
	}
	pub.Data = nil
}

// tempBeside returns the path of a new temp file in the folder of p.
func (t *Tree) tempBeside(p Path) string {
	return t.Abs(p.Dir() + "/" + Path(tempPrefix+strconv.Itoa(t.pid)+"-"+Random(12)))
}

// A group of files is published with about as many syncs as one file:
//
//	write each → settle → name each → fsync each directory
//
// No file gets its name before its content is on the disk, because the fsync of any
// other process could make the name durable alone. After a failed sync, each file of
// the group is written again and published by itself, so that it gets its own error.

// settle puts the content of all files on the disk: with a barrier, or, if the file
// system writes in order, by flushing each of them and syncing one, which does not write
// the files of others. It returns the files that may be lost.
func (t *Tree) settle(pubs []*publication) (doubt []*publication) {
	if t.able().Ordered {
		if t.flushAll(pubs) != nil {
			return pubs
		}
		return nil
	}
	if t.barrier.Settle() != nil {
		t.groups.failed.Add(1)
	}
	// The failed barrier of another group may have lost files of this one.
	failed := t.groups.failed.Load()
	for _, pub := range pubs {
		if pub.since != failed {
			doubt = append(doubt, pub)
		}
	}
	return doubt
}

func (t *Tree) flushAll(pubs []*publication) error {
	var last disk.File
	for _, pub := range pubs {
		if pub.err != nil {
			continue
		}
		if err := pub.file.Flush(); err != nil {
			return err
		}
		last = pub.file
	}
	if last == nil {
		return nil
	}
	return last.Sync()
}

// nameTogether gives each settled file its name, makes the names durable and
// finishes the publications.
func (t *Tree) nameTogether(pubs []*publication) {
	touched := t.nameAll(pubs)
	again := pubs[:0:0]
	for _, pub := range pubs {
		if err := touched[pub.Path.Dir()]; pub.named && err != nil {
			pub.undo(t, err)
			again = append(again, pub)
		} else {
			pub.finish(t)
		}
	}
	t.publishAgain(again)
}

// nameAll gives each file its name and syncs the folders. It returns the error of the
// sync for each folder.
func (t *Tree) nameAll(pubs []*publication) map[Path]error {
	touched, since := map[Path]error{}, map[Path]int64{}
	for _, pub := range pubs {
		pub.name(t)
		dir := pub.Path.Dir()
		if _, known := since[dir]; pub.named && !known {
			touched[dir], since[dir] = nil, pub.namedSince
		}
	}
	dirs := slices.Collect(maps.Keys(touched))
	errs := make([]error, len(dirs))
	inLanes(len(dirs), t.parallel(), func(i int) { errs[i] = t.syncNames(dirs[i], since[dirs[i]]) })
	for i, dir := range dirs {
		touched[dir] = errs[i]
	}
	return touched
}

// publishAgain publishes files, each by itself and from a new temp file, after a failed
// sync may have lost them.
func (t *Tree) publishAgain(pubs []*publication) {
	for _, pub := range pubs {
		_ = pub.close() // the content counts as lost anyway
		if pub.temp != "" {
			_ = t.disk.Remove(pub.temp)
		}
		again := &publication{NewFile: pub.NewFile}
		t.publishOne(again)
		pub.err, pub.Data = again.err, nil
	}
}

// publishEach publishes files with one sync for each file and each folder.
func (t *Tree) publishEach(pubs []*publication) {
	inLanes(len(pubs), t.parallel(), func(i int) {
		if pubs[i].prepare(t); pubs[i].err == nil {
			pubs[i].sync()
		}
	})
	touched := t.nameAll(pubs)
	for _, pub := range pubs {
		if err := touched[pub.Path.Dir()]; pub.named && err != nil {
			pub.undo(t, err)
		}
		pub.finish(t)
	}
}

// parallel is how many syncs are worth running concurrently.
func (t *Tree) parallel() int { return max(1, t.able().Parallel) }

// inLanes calls do for 0 to n-1, in so many goroutines.
func inLanes(n, lanes int, do func(i int)) {
	lanes = min(lanes, n)
	lane := func(first int) {
		for i := first; i < n; i += lanes {
			do(i)
		}
	}
	var others sync.WaitGroup
	for first := 1; first < lanes; first++ {
		others.Go(func() { lane(first) })
	}
	if lanes > 0 {
		lane(0)
	}
	others.Wait()
}

// elsewhere reports whether a folder is on another file system than the tree, which
// the barrier does not cover.
func (t *Tree) elsewhere(pubs []*publication) bool {
	tree, err := os.Stat(t.Abs(StateDir))
	if err != nil {
		return true
	}
	seen := map[Path]bool{}
	for _, pub := range pubs {
		dir := pub.Path.Dir()
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if info, err := os.Stat(t.Abs(dir)); err == nil && device(info) != device(tree) {
			return true
		}
	}
	return false
}

// able returns the features of the tree's file system, determined once.
func (t *Tree) able() disk.Features {
	t.looked.Do(func() {
		f := t.disk.Features(t.Abs(StateDir))
		if f.Barrier && !f.Ordered {
			var err error
			t.barrier, err = t.disk.Barrier(t.Abs(StateDir))
			f.Barrier = err == nil
		}
		t.features = f
	})
	return t.features
}
