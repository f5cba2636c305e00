package mail

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// index is the content of a mailbox as far as it is known. A message changes only once,
// from unread to read, and that makes a new file with a new inode. So a message that was
// found read needs no further look as long as its name has the same inode. All other
// files are looked at each time.
type index struct {
	// folder is the stamp of the mailbox's folder at the last scan. A folder that
	// replaces it may give the same inodes to other messages.
	folder state.Stamp
	// read are the inodes of the messages known to be read.
	read map[Name]uint64
	// tasks are the names in read that refer to a task.
	tasks map[Name]bool
	// live is every other file: unread, damaged or unreadable.
	live map[Name]known
	// stored is the part of the cache file that unpack adds to read, or nil.
	stored *state.CacheReader
	// loaded is true after the attempt to load the cache file.
	loaded bool
}

// known is the result of reading a file.
type known struct {
	stamp state.Stamp
	fresh bool // no later version of the file can have the same stamp
	msg   *Message
	err   error
	task  bool // the message refers to a task
}

func newIndex() index {
	return index{read: map[Name]uint64{}, tasks: map[Name]bool{}, live: map[Name]known{}}
}

// unread reports whether the file belongs to index.live.
func (k *known) unread() bool { return k.err != nil || !k.msg.Read }

// Unread returns the unread messages, in the order of time, and damaged files as List
// does. It includes every message that was acknowledged before Unread was called.
func (b *Mailbox) Unread() ([]Entry, []*state.Corruption, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.unread()
}

// UnreadAndRequests returns the unread messages, the requests of tasks, read or not, both
// in the order of time, and damaged files as List does. It opens only files that are
// unread or refer to a task.
func (b *Mailbox) UnreadAndRequests() (unread, requests []Entry, bad []*state.Corruption, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if unread, bad, err = b.unread(); err != nil {
		return nil, nil, nil, err
	}
	for _, e := range unread {
		if t, err := e.TaskOf(); err == nil && t != nil && t.State == TaskPending {
			requests = append(requests, e)
		}
	}
	if len(b.index.tasks) == 0 {
		return unread, requests, bad, nil
	}
	dir, err := b.tree.OpenFolder(b.Dir())
	if errors.Is(err, state.ErrNotFound) {
		return unread, requests, bad, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	defer dir.Close()
	for n := range b.index.tasks {
		k := b.read(dir, n, true, nil)
		switch c := damage(b.Dir().Join(string(n)), k.err); {
		case c != nil:
			bad = append(bad, c)
			continue
		case errors.Is(k.err, state.ErrNotFound):
			continue // archived meanwhile
		case k.err != nil:
			return nil, nil, nil, k.err
		}
		if t, err := k.msg.TaskOf(); err == nil && t != nil && t.State == TaskPending {
			requests = append(requests, Entry{Name: n, Message: *k.msg})
		}
	}
	Sort(requests)
	sortBad(bad)
	return unread, requests, bad, nil
}

func sortBad(bad []*state.Corruption) {
	slices.SortFunc(bad, func(a, c *state.Corruption) int { return strings.Compare(a.Path, c.Path) })
}

func (b *Mailbox) unread() ([]Entry, []*state.Corruption, error) {
	if err := b.refresh(); err != nil {
		return nil, nil, err
	}
	var entries []Entry
	var bad []*state.Corruption
	for n, k := range b.index.live {
		c := damage(b.Dir().Join(string(n)), k.err)
		switch {
		case c != nil:
			bad = append(bad, c)
		case k.err != nil:
			return nil, nil, k.err
		case !k.msg.Read:
			entries = append(entries, Entry{Name: n, Message: *k.msg})
		}
	}
	Sort(entries)
	sortBad(bad)
	return entries, bad, nil
}

// refresh brings the index up to date.
func (b *Mailbox) refresh() error {
	changes, err := b.follow.Next()
	if err != nil {
		return err
	}
	if b.index.live == nil || changes.Rescan {
		return b.scan()
	}
	if len(changes.Names) == 0 && len(b.index.live) == 0 {
		return nil
	}
	dir, err := b.tree.OpenFolder(b.Dir())
	if errors.Is(err, state.ErrNotFound) {
		b.index = newIndex()
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	for name := range changes.Names {
		b.index.drop(Name(name))
		b.look(dir, Name(name))
	}
	for n := range b.index.live {
		if !changes.Names[string(n)] {
			b.look(dir, n)
		}
	}
	return nil
}

// look brings one name of the index up to date.
func (b *Mailbox) look(dir *state.Folder, n Name) {
	stamp, err := dir.Stat(string(n))
	if errors.Is(err, state.ErrNotFound) || n == archiveName && err == nil && stamp.IsDir() {
		b.index.drop(n)
		return
	}
	if k, ok := b.index.live[n]; ok && k.fresh && err == nil && k.stamp == stamp {
		return
	}
	b.keep(n, b.read(dir, n, false, nil))
}

func (b *Mailbox) keep(n Name, k known) {
	b.index.drop(n)
	switch {
	case errors.Is(k.err, state.ErrNotFound):
	case k.unread():
		b.index.live[n] = k
	default:
		b.index.read[n] = k.stamp.Inode
		if k.task {
			b.index.tasks[n] = true
		}
	}
}

func (i *index) drop(n Name) {
	delete(i.live, n)
	delete(i.read, n)
	delete(i.tasks, n)
}

// read reads one file of the folder. Unless whole is true, the result for a message that
// is read may hold only its flag.
func (b *Mailbox) read(dir *state.Folder, n Name, whole bool, buf []byte) known {
	b.parsed.Add(1)
	now := time.Now() //nolint:forbidigo // compared with time stamps of the system
	data, stamp, err := dir.Read(string(n), MaxSize, buf)
	if err != nil {
		if stamp == (state.Stamp{}) { // it was not opened, such as a link
			stamp, _ = dir.Stat(string(n))
		}
		return known{stamp: stamp, err: err, fresh: errors.Is(err, state.ErrCorrupt) && stamp.Settled(now)}
	}
	if !whole {
		if sure, task := readAlready(b.owner, n, data); sure {
			return known{stamp: stamp, msg: &Message{Read: true}, task: task}
		}
	}
	m, err := Decode(string(dir.Path().Join(string(n))), b.owner, n, data)
	return known{stamp: stamp, msg: &m, err: err, fresh: stamp.Settled(now), task: len(m.Task) > 0}
}

// scan brings the index up to date with a listing of the whole mailbox.
func (b *Mailbox) scan() error {
	dir, err := b.tree.OpenFolder(b.Dir())
	if errors.Is(err, state.ErrNotFound) {
		b.index = newIndex()
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	now := time.Now() //nolint:forbidigo // compared with time stamps of the system
	stamp, err := dir.Stamp()
	if err != nil {
		return err
	}
	if !b.index.folder.SameFile(stamp) {
		b.index = newIndex()
	}
	b.index.folder = stamp
	if !b.index.loaded {
		b.index.loaded = true
		if live, ok := b.load(stamp); ok {
			b.readAll(dir, live)
			return nil
		}
	}
	b.unpack()
	names, err := b.names(dir, false)
	if err != nil {
		return err
	}
	before := b.index
	b.index = index{folder: stamp, read: make(map[Name]uint64, len(names)), tasks: map[Name]bool{}, live: map[Name]known{}, loaded: true}
	var unknown []string
	for _, entry := range names {
		n := Name(entry.Name)
		if inode, yes := before.read[n]; yes && inode == entry.Inode {
			b.index.read[n] = inode
			if before.tasks[n] {
				b.index.tasks[n] = true
			}
		} else if k, yes := before.live[n]; yes && k.fresh {
			b.index.live[n] = k
			b.look(dir, n)
		} else {
			unknown = append(unknown, entry.Name)
		}
	}
	b.readAll(dir, unknown)
	b.store(stamp, stamp.Settled(now), len(unknown))
	return nil
}

func (b *Mailbox) readAll(dir *state.Folder, files []string) {
	for i, k := range state.ReadMany(files, func(file string, buf []byte) known { return b.read(dir, Name(file), false, buf) }) {
		b.keep(Name(files[i]), k)
	}
}
