package model

import (
	"bytes"
	"io/fs"
	"slices"

	"github.com/gastown-chipset/chipset/state/disk"
)

// root is the number of the recorder's own folder.
const root = 1

// slot is a place for a name in a folder.
type slot struct {
	dir  int
	name string
}

// itself is the slot that stands for a folder's own inode, where that can be
// missing though the folder has a name.
func itself(dir int) slot { return slot{dir, "\x00"} }

// set is a slot that leads somewhere else from now on; to 0 is nowhere.
type set struct {
	slot
	to int
}

// node is a file, folder or link, by whatever name.
type node struct {
	mode   fs.FileMode // type bits only
	target string      // of a link
	// versions of the content; the first is what stood there at the beginning.
	versions [][]byte
	// short is set when a write was cut off: no version after it is whole.
	short bool
	// born is true for what was made during the recording.
	born bool
}

func (n *node) last() []byte { return n.versions[len(n.versions)-1] }

type effectKind int

const (
	changed   effectKind = iota // sets change, all at once
	inodeMade                   // the inode of a file must reach the disk anew
	written                     // a file has one more version
	flushed                     // the content of a file
	synced                      // a file: content and inode
	syncedDir
	barrier
	torn         // a close failed: what was neither synced nor flushed may be gone
	acknowledged // the operation promised something
)

// effect is what one call did.
type effect struct {
	kind effectKind
	call int
	node int
	sets []set
	// failed is set on syncs and barriers that returned an error.
	failed bool
	fact   string
}

// history is a recording: what was durable at its beginning, and the effects.
type history struct {
	features disk.Features
	base     map[slot]int
	parents  map[int]slot // of the folders at the base
	nodes    []*node      // by number; 0 and the root are there
	effects  []effect
}

func (h *history) add(n *node) int {
	h.nodes = append(h.nodes, n)
	return len(h.nodes) - 1
}

func (h *history) note(e effect) { h.effects = append(h.effects, e) }

// change notes one change of names. A file system without a journal brings
// each name to the disk by itself.
func (h *history) change(call int, sets ...set) {
	if h.features.Journal {
		h.note(effect{kind: changed, call: call, sets: sets})
		return
	}
	for _, s := range sets {
		h.note(effect{kind: changed, call: call, sets: []set{s}})
	}
}

// made notes that an inode must come to the disk for its name to be worth something.
func (h *history) made(call, number int) {
	switch {
	case h.features.Journal: // with its name
	case h.nodes[number].mode.IsDir():
		h.note(effect{kind: changed, call: call, sets: []set{{itself(number), number}}})
	default:
		h.note(effect{kind: inodeMade, call: call, node: number})
	}
}

// pending is a change that a cut can still take back.
type pending struct {
	sets []set
	at   int // which effect
	// doubtful: a sync of it failed, so no later one makes it durable.
	doubtful bool
}

// content is what the disk holds of a file.
type content struct {
	durable  int // version
	latest   int // version
	inode    bool
	flushed  int  // the effect after which content comes before names, or -1
	flushing bool // written out, but not past the device's cache
	doubtful bool
}

// surface is what is on the disk for certain after some of the effects, and
// what may be.
type surface struct {
	h       *history
	names   map[slot]int // durable
	open    []pending    // in order
	files   map[int]content
	facts   []string
	touched []slot // all that changed so far, in order
	folders []slot // those of them that led to a folder at some time
	inPlace []int  // files of the base that were written to, such as logs
	known   map[slot]bool
	newest  int // the last durable effect that named something
}

func newSurface(h *history) *surface {
	s := &surface{h: h, names: make(map[slot]int, len(h.base)), files: map[int]content{}, known: map[slot]bool{}, newest: -1}
	for at, to := range h.base {
		s.names[at] = to
	}
	return s
}

func (s *surface) file(number int) content {
	if c, ok := s.files[number]; ok {
		return c
	}
	return content{inode: true, flushed: -1}
}

// apply takes the effect number i into account.
func (s *surface) apply(i int) {
	e := &s.h.effects[i]
	c := s.file(e.node)
	switch e.kind {
	case changed:
		s.open = append(s.open, pending{sets: e.sets, at: i})
		for _, change := range e.sets {
			s.touch(change)
		}
	case inodeMade:
		c.inode = false
		s.files[e.node] = c
	case written:
		if _, seen := s.files[e.node]; !seen && !s.h.nodes[e.node].born {
			s.inPlace = append(s.inPlace, e.node)
		}
		c.latest++
		c.flushed, c.flushing = -1, false
		s.files[e.node] = c
	case flushed:
		c.flushing = s.h.features.Ordered
		s.files[e.node] = c
	case synced:
		s.syncFile(e.node, e.failed)
		if !e.failed {
			s.settle(i)
		}
	case torn:
		if c.durable != c.latest && c.flushed < 0 {
			c.doubtful = true
			s.files[e.node] = c
		}
	case syncedDir:
		s.sync(e.failed, func(p *pending) bool {
			return slices.ContainsFunc(p.sets, func(c set) bool { return c.dir == e.node })
		})
	case barrier:
		s.sync(e.failed, func(*pending) bool { return true })
		for number := range s.files {
			s.syncFile(number, e.failed)
		}
	case acknowledged:
		s.facts = append(s.facts, e.fact)
	}
}

func (s *surface) touch(change set) {
	if !s.known[change.slot] {
		s.known[change.slot] = true
		s.touched = append(s.touched, change.slot)
	}
	if change.slot == itself(change.dir) {
		return
	}
	for i := range s.open { // a change in a folder writes its inode anew
		if s.open[i].sets[0].slot == itself(change.dir) {
			s.open[i].doubtful = false
		}
	}
	if s.h.nodes[change.to].mode.IsDir() && !slices.Contains(s.folders, change.slot) {
		s.folders = append(s.folders, change.slot)
	}
}

func (s *surface) syncFile(number int, failed bool) {
	c := s.file(number)
	switch {
	case failed && (c.durable != c.latest && c.flushed < 0 || !c.inode):
		c.doubtful = true // what was flushed before is clean and can't be lost any more
	case !failed && !c.doubtful:
		c.durable, c.inode = c.latest, true
	}
	s.files[number] = c
}

// settle is what a sync of any file does for what was flushed before it.
func (s *surface) settle(i int) {
	for number, c := range s.files {
		if c.flushing {
			c.flushed, c.flushing = i, false
			s.files[number] = c
		}
	}
}

// sync makes the chosen changes durable, and with each the earlier ones of the
// same names; a failed one puts them in doubt.
func (s *surface) sync(failed bool, choose func(*pending) bool) {
	take := make([]bool, len(s.open))
	needed := map[slot]bool{}
	for i := len(s.open) - 1; i >= 0; i-- {
		p := &s.open[i]
		chosen := choose(p)
		if failed {
			p.doubtful = p.doubtful || chosen
			continue
		}
		before := slices.ContainsFunc(p.sets, func(c set) bool { return needed[c.slot] })
		if take[i] = before || chosen && !p.doubtful; take[i] {
			for _, c := range p.sets {
				needed[c.slot] = true
			}
		}
	}
	left := s.open[:0:0]
	for i, p := range s.open {
		if !take[i] {
			left = append(left, p)
			continue
		}
		s.newest = max(s.newest, p.at)
		for _, c := range p.sets {
			s.names[c.slot] = c.to
		}
	}
	s.open = left
}

const page = 4096

// choices lists what the disk may hold of a file whose newest durable version
// is before its latest.
func (h *history) choices(number int, c content) [][]byte {
	versions := h.nodes[number].versions
	was, is := versions[c.durable], versions[c.latest]
	all := [][]byte{is, was}
	for v := c.durable + 1; v < c.latest; v++ {
		all = append(all, versions[v])
	}
	if len(is) <= len(was) {
		return all
	}
	added := len(is) - len(was)
	half := is[:len(was)+added/2]
	zeros := append(bytes.Clone(was), make([]byte, added)...)
	all = append(all, half, zeros)
	if first := (len(was)/page + 1) * page; first < len(is) {
		holed := bytes.Clone(is)
		clear(holed[len(was):first])
		all = append(all, is[:first], holed)
	}
	return all
}
