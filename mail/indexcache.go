package mail

import (
	"github.com/gastown-chipset/chipset/state"
)

// CacheDir holds the indexes of large mailboxes, one cache file each (the format is
// described at state.CacheDir):
//
//	the stamp of the mailbox's folder when it was listed; its times are 0 when
//	the folder had changed too shortly before for them to tell a later change
//	a number, and as many names of messages that are unread, damaged or can't be opened
//	a number, and as many names of messages that are read and refer to a task
//	a number, and for as many messages that are read an inode and a name
const CacheDir = state.CacheDir + "/mail"

// cacheFrom is from how many read messages on a mailbox has a cache file.
const cacheFrom = 256

func (b *Mailbox) cachePath() state.Path { return CacheDir.Join(string(b.owner)) }

// load reads the cache. When the folder has not changed since it was written, only
// the live names need a look, and load returns them.
func (b *Mailbox) load(now state.Stamp) (live []string, unchanged bool) {
	r, err := b.tree.ReadCache(b.cachePath())
	if err != nil {
		return nil, false // the files themselves are read
	}
	then := r.Stamp()
	for range r.Count() {
		live = append(live, r.Text())
	}
	tasks := make(map[Name]bool)
	for range r.Count() {
		tasks[Name(r.Text())] = true
	}
	if r.Bad || !then.SameFile(now) {
		return nil, false
	}
	b.index.tasks, b.index.stored = tasks, r
	return live, then == now
}

// unpack puts the read messages of the cache into the index.
func (b *Mailbox) unpack() {
	r := b.index.stored
	if r == nil {
		return
	}
	b.index.stored = nil
	n := r.Count()
	if len(b.index.read) == 0 {
		b.index.read = make(map[Name]uint64, n)
	}
	for range n {
		inode, name := r.Number(), Name(r.Text())
		if r.Bad {
			return
		}
		if _, live := b.index.live[name]; !live && b.index.read[name] == 0 {
			b.index.read[name] = inode
		}
	}
}

// store writes the cache after a listing in which so many files had to be read.
func (b *Mailbox) store(folder state.Stamp, settled bool, parsed int) {
	if len(b.index.read) < b.cacheFrom || !settled && parsed < b.cacheFrom {
		return
	}
	if !settled { // a later change may leave the same times
		folder.Modified, folder.Changed = 0, 0
	}
	w := &state.CacheWriter{}
	w.Stamp(folder)
	writeNames(w, b.index.live)
	writeNames(w, b.index.tasks)
	w.Number(uint64(len(b.index.read)))
	for n, inode := range b.index.read {
		w.Number(inode)
		w.Text(string(n))
	}
	_ = b.tree.WriteCache(b.cachePath(), w) // without one the next process reads the files
}

func writeNames[V any](w *state.CacheWriter, names map[Name]V) {
	w.Number(uint64(len(names)))
	for n := range names {
		w.Text(string(n))
	}
}
