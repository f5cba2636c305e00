package mail

import (
	"github.com/gastown-chipset/chipset/state"
)

// CacheDir holds the indexes of large mailboxes, one cache file each. After the header
// (see state.CacheDir) a file holds:
//
//	the stamp of the mailbox's folder when it was listed; its times are 0 if a later
//	change could have left the same times
//	the number of files in index.live, and their names
//	the number of names in index.tasks, and these names
//	the number of messages in index.read, and their inodes and names
const CacheDir = state.CacheDir + "/mail"

// cacheFrom is how many read messages a mailbox needs before it has a cache file.
const cacheFrom = 256

func (b *Mailbox) cachePath() state.Path { return CacheDir.Join(string(b.owner)) }

// load reads the cache file. unchanged is true if the folder has not changed since the
// cache file was written; then only the live names need to be read.
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

// unpack adds the read messages of the cache file to the index.
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

// store writes the cache file after a scan that has read that many files.
func (b *Mailbox) store(folder state.Stamp, settled bool, parsed int) {
	if len(b.index.read) < b.cacheFrom || !settled && parsed < b.cacheFrom {
		return
	}
	if !settled { // a later change could leave the same times
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
