package powercut

import (
	"fmt"
	"maps"
	"math/rand/v2"
)

// sector is how many bytes a disk writes at once: a write is torn at its
// multiples only.
const sector = 512

// Mode says what a power cut does to that which was not synced.
type Mode int

const (
	// Drop loses all of it.
	Drop Mode = iota
	// Keep loses none of it, but for the content that a failed fsync lost.
	Keep
	// Ordered keeps the changes of folders up to one moment, and any part of files.
	Ordered
	// Scatter keeps any of the names, and any part of files.
	Scatter
)

func (m Mode) String() string {
	switch m {
	case Drop:
		return "drop"
	case Keep:
		return "keep"
	case Ordered:
		return "ordered"
	case Scatter:
		return "scatter"
	}
	return fmt.Sprintf("mode %d", int(m))
}

// Cut is the disk after a power cut, all durable. The tree itself is not
// changed, so that several cuts can be played of one moment. The same rnd
// state, mode and history give the same disk.
func (t *Tree) Cut(mode Mode, rnd *rand.Rand) *Tree {
	kept := t.closure(t.survivors(mode, rnd))
	changed := map[*node][]*change{}
	for _, c := range t.changes {
		if kept[c] {
			changed[c.dir] = append(changed[c.dir], c)
		}
	}
	return t.build(func(n *node) remains {
		r := remains{mtime: n.kept}
		if !n.isDir() {
			r.data = n.content.cut(mode, rnd)
			if mode == Keep || mode != Drop && rnd.IntN(2) == 0 {
				r.mtime = n.mtime
			}
			return r
		}
		r.entries = maps.Clone(n.durable)
		for _, c := range changed[n] {
			r.mtime = c.at
			if c.to == nil {
				delete(r.entries, c.name)
			} else {
				r.entries[c.name] = c.to
			}
		}
		return r
	})
}

// survivors tells which changes of folders a cut keeps.
func (t *Tree) survivors(mode Mode, rnd *rand.Rand) func(*change) bool {
	keep := map[*change]bool{}
	switch mode {
	case Drop:
	case Keep:
		return func(*change) bool { return true }
	case Ordered:
		for _, c := range t.changes[:rnd.IntN(len(t.changes)+1)] {
			keep[c] = true
		}
	case Scatter:
		share := rnd.Float64()
		for _, c := range t.changes {
			keep[c] = rnd.Float64() < share
		}
	}
	return func(c *change) bool { return keep[c] }
}

// cut is what is left of the content of a file.
func (c *content) cut(mode Mode, rnd *rand.Rand) []byte {
	if len(c.pending) == 0 || mode == Drop {
		return c.durable
	}
	all := c.versions()
	if mode == Keep {
		return all[len(all)-1]
	}
	switch rnd.IntN(3) {
	case 0:
		return c.durable
	case 1:
		return all[rnd.IntN(len(all))]
	}
	size := len(all[rnd.IntN(len(all))])
	torn := make([]byte, size)
	for at := 0; at < size; at += sector {
		if from := all[rnd.IntN(len(all))]; at < len(from) {
			copy(torn[at:min(at+sector, size)], from[at:])
		}
	}
	return torn
}

// versions are the contents since the last fsync, the durable one first. A
// file that was written in many pieces is sampled.
func (c *content) versions() [][]byte {
	const most = 64
	stride := 1 + len(c.pending)/most
	all := [][]byte{c.durable}
	at := c.durable
	for i, w := range c.pending {
		at = w.onto(at)
		if i%stride == 0 || i == len(c.pending)-1 {
			all = append(all, at)
		}
	}
	return all
}
