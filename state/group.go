package state

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Files that are published in a group share a barrier and one sync of their folder. A
// barrier also writes the dirty pages of other programs, so a few callers beside a build
// are faster one by one, while many callers and batches gain even then
// (docs/performance.md). Groups are used from sendersFrom concurrent callers, or from
// batchFrom files of one caller; measuring at run time which way is faster gained
// nothing. A group keeps a descriptor open for each file, hence groupMost.
const (
	sendersFrom = 16
	batchFrom   = 4
	groupMost   = 256
)

// groupsAtOnce is how many groups are published concurrently, so that the disk is busy
// while the next files are written.
const groupsAtOnce = 2

// groups lets concurrent callers of WriteNew share a barrier. The caller that completes a
// group publishes all files of the group, and the others wait for the result.
type groups struct {
	mu      sync.Mutex
	inside  int // callers in WriteNew
	flying  int // groups that are being published
	waiting []*publication

	// failed counts the barriers that failed.
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
	// It holds at most a group to publish and the final nil.
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
// returns a group whenever callers wait and no group is being published.
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

// commit publishes a group. If the next one is complete by then, it hands that to one of
// its callers.
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

// groupable reports whether the file system can settle many files at once.
func (t *Tree) groupable() bool { return t.able().Barrier || t.able().Ordered }

// publishMany publishes the files of one caller, in concurrent groups.
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
