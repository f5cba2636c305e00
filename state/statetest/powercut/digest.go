package powercut

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"time"
)

// Digest is the name of what programs find on a disk.
type Digest [sha256.Size]byte

// Digest names what programs find on the disk: every path with its mode, its content and how many names its file has.
// Times and inode numbers are no part of it. Two disks with the same digest are the same to a program that does not
// ask for these.
func (t *Tree) Digest() Digest {
	sum := sha256.New()
	t.root.digest(sum)
	return Digest(sum.Sum(nil))
}

func (n *node) digest(sum hash.Hash) {
	put := func(data []byte) {
		sum.Write(binary.AppendUvarint(nil, uint64(len(data))))
		sum.Write(data)
	}
	sum.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, n.mode), n.nlink))
	put([]byte(n.target))
	put(n.content.now)
	sum.Write(binary.AppendUvarint(nil, uint64(len(n.entries))))
	for _, name := range slices.Sorted(maps.Keys(n.entries)) {
		put([]byte(name))
		n.entries[name].to.digest(sum)
	}
}

// Shift makes every file and folder younger by that much, for a disk that waited to be put in.
func (t *Tree) Shift(by time.Duration) {
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		n.mtime, n.kept = n.mtime.Add(by), n.kept.Add(by)
		for _, e := range n.entries {
			visit(e.to)
		}
	}
	visit(t.root)
}
