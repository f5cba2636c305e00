package state

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Why groups, and why their use is learned. On the reference disk (ext4 without a
// journal; docs/performance.md) 64 senders reach 2.8 to 3.1 times the rate of the plain
// protocol, and a batch 4 to 16 times. A fixed rule, groups from groupFrom callers on,
// would be simpler, but a barrier writes out everything on the file system, also what
// builds write at the same time, and a group can then take longer than its files one
// by one. With learning, 8 senders stay at 1.0 to 1.7 times the plain protocol while
// the page cache is kept dirty.

// Groups are tried from groupFrom concurrent callers on, or files of one caller. A
// group holds a descriptor for each of its files, which bounds it by groupMost.
const (
	groupFrom = 4
	groupMost = 256
)

// groupsBeside is how many groups are under way at once, so that the disk has
// work while the next files are written.
const groupsBeside = 2

// groupsInTurn is how many groups of one caller are published before it is asked again what pays.
const groupsInTurn = 8

// groups let concurrent callers of WriteNew share barriers. The caller that completes
// a group publishes the files of all in it, and the others wait for the result.
type groups struct {
	mu      sync.Mutex
	inside  int // callers in WriteNew now
	busy    int // callers that were in it at once lately, in sixteenths
	flying  int // groups under way
	waiting []*publication

	paces [16]pace // by the number of bits of how many callers or files there are

	// failed counts the barriers that did.
	failed atomic.Int64
}

// publish sets pub.err and returns it.
func (g *groups) publish(t *Tree, pub *publication) error {
	if !t.groupable() {
		t.publishOne(pub)
		return pub.err
	}
	begin := clock()
	busy, together := g.enter(begin)
	if together {
		g.join(t, pub)
	} else {
		t.publishOne(pub)
	}
	g.leave(busy, together, begin)
	return pub.err
}

// enter counts a caller. It returns the number of concurrent callers, and whether this
// one is to join a group.
func (g *groups) enter(now time.Time) (busy int, together bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
	g.busy = max(16*g.inside, g.busy-(g.busy-16*g.inside)/16)
	busy = g.callers()
	return busy, busy >= groupFrom && g.pace(busy).together(now)
}

func (g *groups) leave(busy int, together bool, begin time.Time) {
	now := clock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if busy >= groupFrom {
		g.pace(busy).note(together, now.Sub(begin)/time.Duration(busy), 1, now)
	}
}

func (g *groups) callers() int { return (g.busy + 8) / 16 }

func (g *groups) pace(n int) *pace { return &g.paces[min(bits.Len(uint(n)), len(g.paces)-1)] }

// join adds pub to a group and returns when that is published. A caller that receives
// a group from its turn publishes it; nil means that pub is published.
func (g *groups) join(t *Tree, pub *publication) {
	// Its own group, when that is full without it, and the word of another.
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

// next takes the group that is to be published now, or returns nil when more callers
// should join first. It never waits while no group is under way.
func (g *groups) next() []*publication {
	enough := min(groupMost, (g.callers()+groupsBeside-1)/groupsBeside)
	if len(g.waiting) == 0 || g.flying == groupsBeside || g.flying > 0 && len(g.waiting) < enough {
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

// publishSome publishes the first files of one caller in the faster way, and returns how
// many. While the disk settles one group, the next is written.
func (g *groups) publishSome(t *Tree, pubs []*publication) int {
	n := min(groupsInTurn*groupMost, len(pubs))
	begin := clock()
	g.mu.Lock()
	pace := g.pace(n)
	together := n >= groupFrom && t.groupable() && pace.together(begin)
	if !together {
		n = min(n, trialFiles/4) // to notice early when they cost more
	}
	g.mu.Unlock()
	if together {
		all := slices.Collect(slices.Chunk(pubs[:n], groupMost))
		inLanes(len(all), min(groupsBeside, t.parallel()), func(i int) { g.publishAll(t, all[i]) })
	} else {
		t.publishEach(pubs[:n])
	}
	now := clock()
	g.mu.Lock()
	pace.note(together, now.Sub(begin)/time.Duration(n), n, now)
	g.mu.Unlock()
	return n
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

// clock is for how long something took, on the clock that never jumps.
func clock() time.Time {
	return time.Now() //nolint:forbidigo // a difference of two, never what time it is
}
