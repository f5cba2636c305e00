package state

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Files that are published in a group share its barrier and one sync of their folder. A
// barrier also writes out what others made dirty, so a few callers who write beside a
// build are faster one by one, while many callers and batches gain even then
// (docs/performance.md). A fixed rule from sendersFrom concurrent callers, or batchFrom
// files of one caller, holds the goals there; to learn which way pays gained no more. A
// group holds a descriptor for each of its files, which bounds it by groupMost.
const (
	sendersFrom = 16
	batchFrom   = 4
	groupMost   = 256
)

// groupsAtOnce is how many groups are under way at once, so that the disk has
// work while the next files are written.
const groupsAtOnce = 2

// groups lets concurrent callers of WriteNew share a barrier. The caller that completes a
// group publishes all files of the group, and the others wait for the result.
type groups struct {
	mu      sync.Mutex
	inside  int // callers in WriteNew now
	flying  int // groups under way
	waiting []*publication

	// failed counts the barriers that did.
	failed atomic.Int64
}

// publish sets pub.err and returns it.
func (g *groups) publish(t *Tree, pub *publication) error {
	g.mu.Lock()
	g.inside++
	many := g.inside >= sendersFrom
	g.mu.Unlock()
	if many && t.groupable() {
		g.join(t, pub)
	} else {
		t.publishOne(pub)
	}
	g.mu.Lock()
	g.inside--
	g.mu.Unlock()
	return pub.err
}

// join adds pub to a group and returns when pub is published. A caller that receives a
// group from its turn channel publishes that group; nil means that pub is published.
func (g *groups) join(t *Tree, pub *publication) {
	// At most a group to publish, and the nil that says that pub is published.
	pub.turn = make(chan []*publication, 2)
	g.mu.Lock()
	g.waiting = append(g.waiting, pub)
	if group := g.next(); group != nil {
		pub.turn <- group
	}
	g.mu.Unlock()
	for group := <-pub.turn; group != nil; group = <-pub.turn {
		g.commit(t, group)
	}
}

// next returns the group to publish now, or nil if more callers should join first. It
// always returns a group if callers wait and no group is being published.
func (g *groups) next() []*publication {
	enough := min(groupMost, g.inside/groupsAtOnce)
	if len(g.waiting) == 0 || g.flying == groupsAtOnce || g.flying > 0 && len(g.waiting) < enough {
		return nil
	}
	g.flying++
	n := min(groupMost, len(g.waiting))
	group := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	return group
}

// commit publishes a group, and hands the next one, if there is one by then, to a
// caller of that.
func (g *groups) commit(t *Tree, group []*publication) {
	g.publishAll(t, group)
	g.mu.Lock()
	g.flying--
	if next := g.next(); next != nil {
		next[0].turn <- next
	}
	g.mu.Unlock()
	for _, pub := range group {
		pub.turn <- nil
	}
}

// groupable reports whether the file system has a way to settle many files at once.
func (t *Tree) groupable() bool { return t.able().Barrier || t.able().Ordered }

// publishMany publishes the files of one caller. While the disk settles one group, the
// next is written.
func (g *groups) publishMany(t *Tree, pubs []*publication) {
	if len(pubs) < batchFrom || !t.groupable() {
		t.publishEach(pubs)
		return
	}
	all := slices.Collect(slices.Chunk(pubs, groupMost))
	inLanes(len(all), min(groupsAtOnce, t.parallel()), func(i int) { g.publishAll(t, all[i]) })
}

// publishAll publishes a group.
func (g *groups) publishAll(t *Tree, pubs []*publication) {
	if len(pubs) == 1 || t.elsewhere(pubs) {
		t.publishEach(pubs)
		return
	}
	t.prepareAll(pubs)
	doubt := t.settle(pubs)
	t.publishAgain(doubt)
	t.nameTogether(without(pubs, doubt))
}

func without(pubs, doubt []*publication) []*publication {
	if len(doubt) == 0 {
		return pubs
	}
	return slices.DeleteFunc(slices.Clone(pubs), func(pub *publication) bool { return slices.Contains(doubt, pub) })
}
