package model

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
)

// crashes walks the states that a cut after a prefix of a history can leave.
type crashes struct {
	s     *surface
	names map[slot]int
	stop  map[slot]int // how many changes of it were left out
	newer int          // the last effect among the changes chosen that named something
	seed  maphash.Seed
	// visit is called with each state; false ends the walk.
	visit func(*crashes) bool
	// of the state now: which content the files have that are not durable.
	chosen map[int]int // file → index into choices, or missing
	order  []int
	left   int // states before the walk is given up
}

// missing is the choice of a name whose inode never came to the disk.
const missing = -1

func newCrashes(s *surface, seed maphash.Seed, visit func(*crashes) bool) *crashes {
	return &crashes{s: s, names: s.names, stop: map[slot]int{}, newer: s.newest, seed: seed, visit: visit, chosen: map[int]int{}}
}

// walk visits every state, or at most limit of them; it reports whether it came to the end.
func (c *crashes) walk(limit int) bool {
	c.left = limit
	return c.change(0)
}

// change decides about the changes from the i-th on.
func (c *crashes) change(i int) bool {
	if i == len(c.s.open) {
		c.pendingFiles()
		return c.content(0)
	}
	p := &c.s.open[i]
	possible := c.possible(p)
	if possible {
		undo := c.include(p)
		ok := c.change(i + 1)
		undo()
		if !ok {
			return false
		}
	}
	for _, e := range p.sets {
		c.stop[e.slot]++
	}
	ok := c.change(i + 1)
	for _, e := range p.sets {
		c.stop[e.slot]--
	}
	return ok
}

// possible reports whether no earlier change of the same names was left out.
func (c *crashes) possible(p *pending) bool {
	for _, e := range p.sets {
		if c.stop[e.slot] > 0 {
			return false
		}
	}
	return true
}

func (c *crashes) include(p *pending) (undo func()) {
	newer := c.newer
	c.newer = max(c.newer, p.at)
	before := make([]int, len(p.sets))
	for k, e := range p.sets {
		before[k] = c.names[e.slot]
		c.names[e.slot] = e.to
	}
	return func() {
		c.newer = newer
		for k, e := range p.sets {
			c.names[e.slot] = before[k]
		}
	}
}

// pendingFiles finds the files with a name whose content is not settled.
func (c *crashes) pendingFiles() {
	c.order = c.order[:0]
	clear(c.chosen)
	for _, at := range c.s.touched {
		c.pendingFile(at)
	}
	for _, number := range c.s.inPlace {
		c.settle(number)
	}
}

func (c *crashes) pendingFile(at slot) {
	number := c.names[at]
	if number == 0 || at == itself(at.dir) || c.s.h.nodes[number].mode.IsDir() || !c.reachable(at.dir) {
		return
	}
	c.settle(number)
}

func (c *crashes) settle(number int) {
	f, changed := c.s.files[number]
	if _, seen := c.chosen[number]; !changed || seen || f.inode && c.whole(f) {
		return
	}
	c.chosen[number] = 0
	c.order = append(c.order, number)
}

// whole reports whether the latest content is on the disk as far as names are.
func (c *crashes) whole(f content) bool {
	return f.durable == f.latest || f.flushed >= 0 && c.newer > f.flushed
}

// options of a file that is not settled, from..to.
func (c *crashes) options(number int) (from, to int) {
	f := c.s.files[number]
	if !f.inode {
		from = missing
	}
	if c.whole(f) {
		return from, 1
	}
	return from, len(c.s.h.choices(number, f))
}

func (c *crashes) content(k int) bool {
	if k == len(c.order) {
		c.left--
		return c.visit(c) && c.left > 0
	}
	number := c.order[k]
	from, to := c.options(number)
	for option := from; option < to; option++ {
		c.chosen[number] = option
		if !c.content(k + 1) {
			return false
		}
	}
	return true
}

// draw visits one state taken at random.
func (c *crashes) draw(rnd *rand.Rand) bool {
	keep := rnd.IntN(4) // a quarter, a half, three quarters, or all but few
	var undo []func()
	for i := range c.s.open {
		p := &c.s.open[i]
		if c.possible(p) && rnd.IntN(8) < 2+2*keep-rnd.IntN(2) {
			undo = append(undo, c.include(p))
			continue
		}
		for _, e := range p.sets {
			c.stop[e.slot]++
		}
	}
	c.pendingFiles()
	for _, number := range c.order {
		from, to := c.options(number)
		c.chosen[number] = from + rnd.IntN(to-from)
	}
	ok := c.visit(c)
	for i := len(undo) - 1; i >= 0; i-- {
		undo[i]()
	}
	clear(c.stop)
	return ok
}

// reachable reports whether a folder has a name that leads to it from the root.
func (c *crashes) reachable(dir int) bool {
	for dir != root {
		if c.s.known[itself(dir)] && c.names[itself(dir)] == 0 {
			return false // made, but its own inode is not on the disk
		}
		parent, ok := c.parent(dir)
		if !ok {
			return false
		}
		dir = parent
	}
	return true
}

// parent finds the folder that names dir: among what changed, else where it was.
func (c *crashes) parent(dir int) (int, bool) {
	for _, at := range c.s.folders {
		if c.names[at] == dir {
			return at.dir, true
		}
	}
	at, ok := c.s.h.parents[dir]
	return at.dir, ok && c.names[at] == dir
}

// print is the fingerprint of the state now: the same for the same tree and
// the same promises.
func (c *crashes) print() uint64 {
	var hash maphash.Hash
	hash.SetSeed(c.seed)
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // any bits do
		_, _ = hash.Write(b[:])                        // never fails
	}
	number(len(c.s.facts))
	for i, at := range c.s.touched {
		to := c.names[at]
		if to == 0 || at == itself(at.dir) || !c.reachable(at.dir) || c.chosen[to] == missing {
			continue
		}
		number(i)
		number(to)
		c.printContent(to, number)
	}
	for _, n := range c.s.inPlace {
		number(n)
		c.printContent(n, number)
	}
	return hash.Sum64()
}

func (c *crashes) printContent(n int, number func(int)) {
	f := c.s.files[n]
	switch option := c.chosen[n]; option {
	case 0:
		number(f.latest)
	case 1:
		number(f.durable)
	default:
		number(f.latest)
		number(f.durable)
		number(option + 1<<16)
	}
}
