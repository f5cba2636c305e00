package mail

import (
	"encoding/binary"

	"github.com/gastown-chipset/chipset/state"
)

// CacheDir holds what was learnt of large mailboxes, a file each:
//
//	7 × 8 bytes   the stamp of the mailbox's folder when it was listed, with zeros
//	              for its times when a later change could have left them as they were
//	4 bytes       how many names follow: of the messages that are unread,
//	              damaged, or not to be opened; each 2 bytes of length and the name
//	4 bytes       how many names follow of those that are read and speak of a task
//	4 bytes       how many follow of all that are read; each 8 bytes of
//	              inode, 2 bytes of length, and the name
//
// All numbers are little-endian.
const CacheDir = state.CacheDir + "/mail"

// largeMailbox is how many read messages make a cache worth its while.
const largeMailbox = 256

func (b *Mailbox) cachePath() state.Path { return CacheDir.Join(string(b.owner)) }

// load takes what the cache knows of the read messages. When the folder has not
// changed since, nothing but the live names needs a look, and they are returned.
func (b *Mailbox) load(now state.Stamp) (live []string, unchanged bool) {
	data, err := b.tree.ReadCache(b.cachePath())
	if err != nil {
		return nil, false // the files themselves know
	}
	r := cacheReader{data: data}
	then := r.stamp()
	for range r.count() {
		live = append(live, r.name())
	}
	tasks := make(map[Name]bool)
	for range r.count() {
		tasks[Name(r.name())] = true
	}
	if r.bad || !then.SameFile(now) {
		return nil, false
	}
	b.index.tasks, b.index.stored = tasks, r.data
	return live, then == now
}

// unpack puts what the cache stored into the index.
func (b *Mailbox) unpack() {
	if b.index.stored == nil {
		return
	}
	r := cacheReader{data: b.index.stored}
	b.index.stored = nil
	n := r.count()
	if len(b.index.read) == 0 {
		b.index.read = make(map[Name]uint64, min(n, len(r.data)/16))
	}
	for range n {
		inode := r.number()
		name := Name(r.name())
		if r.bad {
			return
		}
		if _, live := b.index.live[name]; !live && b.index.read[name] == 0 {
			b.index.read[name] = inode
		}
	}
}

// store writes the cache after a listing in which some files had to be read.
func (b *Mailbox) store(folder state.Stamp, settled bool, learnt int) {
	if len(b.index.read) < b.large || !settled && learnt < b.large {
		return
	}
	if !settled { // a change since may have left no trace in it
		folder.Modified, folder.Changed = 0, 0
	}
	size := 64
	for n := range b.index.read {
		size += len(n) + 10
	}
	out := make([]byte, 0, size)
	for _, v := range []uint64{folder.Inode, uint64(folder.Size), uint64(folder.Modified), uint64(folder.Changed),
		uint64(folder.Mode), uint64(folder.Links), uint64(folder.Born)} {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	out = appendNames(out, b.index.live)
	out = appendNames(out, b.index.tasks)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.index.read)))
	for n, inode := range b.index.read {
		out = binary.LittleEndian.AppendUint64(out, inode)
		out = append(binary.LittleEndian.AppendUint16(out, uint16(len(n))), n...)
	}
	_ = b.tree.WriteCache(b.cachePath(), out) // without one the next look takes longer
}

func appendNames[V any](out []byte, names map[Name]V) []byte {
	out = binary.LittleEndian.AppendUint32(out, uint32(len(names)))
	for n := range names {
		out = append(binary.LittleEndian.AppendUint16(out, uint16(len(n))), n...)
	}
	return out
}

// cacheReader takes numbers and names off the front of data, until bad.
type cacheReader struct {
	data []byte
	bad  bool
}

func (r *cacheReader) take(n int) []byte {
	if r.bad || n > len(r.data) {
		r.bad = true
		return make([]byte, 8)
	}
	head := r.data[:n]
	r.data = r.data[n:]
	return head
}

func (r *cacheReader) number() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// count is never more than there can be names.
func (r *cacheReader) count() int {
	n := int(binary.LittleEndian.Uint32(r.take(4)))
	if n > len(r.data) {
		r.bad = true
		return 0
	}
	return n
}

func (r *cacheReader) name() string {
	n := int(binary.LittleEndian.Uint16(r.take(2)))
	if n == 0 || n > 255 || n > len(r.data) {
		r.bad = true
		return ""
	}
	return string(r.take(n))
}

func (r *cacheReader) stamp() state.Stamp {
	return state.Stamp{Inode: r.number(), Size: int64(r.number()), Modified: int64(r.number()), Changed: int64(r.number()),
		Mode: uint32(r.number()), Links: uint32(r.number()), Born: int64(r.number())}
}
