package state

import (
	"sync"
	"time"
)

// Groups begin to pay when this many wait: below it, the syncs of several
// callers run side by side and share commits of the file system's journal. A
// group holds a descriptor for each of its files, hence the most.
const (
	groupFrom = 12
	groupMost = 256
)

// groups lets many callers of WriteNew share barriers. The first who finds
// enough company commits a group of all who wait, and hands the lead to one of
// those who came meanwhile.
type groups struct {
	mu      sync.Mutex
	inside  int  // callers in WriteNew now
	leading bool // somebody commits a group
	waiting []*publication

	pace pace
}

// publish sets pub.err and returns it.
func (g *groups) publish(t *Tree, pub *publication) error {
	if !t.groupable() {
		t.publishOne(pub)
		return pub.err
	}
	g.mu.Lock()
	g.inside++
	alone := g.inside < groupFrom || g.pace.slow()
	inside := g.inside
	if !alone {
		pub.done, pub.lead = make(chan struct{}), make(chan struct{}, 1)
		g.waiting = append(g.waiting, pub)
		if !g.leading {
			g.leading = true
			pub.lead <- struct{}{}
		}
	}
	g.mu.Unlock()

	if alone {
		begin := clock()
		t.publishOne(pub)
		g.left(func() { g.pace.single(clock().Sub(begin), inside) })
		return pub.err
	}
	select {
	case <-pub.done:
	case <-pub.lead:
		g.commit(t)
	}
	g.left(nil)
	return pub.err
}

func (g *groups) left(note func()) {
	g.mu.Lock()
	g.inside--
	if note != nil {
		note()
	}
	g.mu.Unlock()
}

// commit publishes who waits, the leader among them, and hands the lead on.
func (g *groups) commit(t *Tree) {
	g.mu.Lock()
	n := min(groupMost, len(g.waiting))
	pubs := append([]*publication(nil), g.waiting[:n]...)
	g.waiting = append([]*publication(nil), g.waiting[n:]...)
	g.mu.Unlock()

	g.publishAll(t, pubs)

	g.mu.Lock()
	if len(g.waiting) > 0 {
		g.waiting[0].lead <- struct{}{}
	} else {
		g.leading = false
	}
	g.mu.Unlock()
	for _, pub := range pubs {
		close(pub.done)
	}
}

// groupable tells whether the file system has a way to settle many files at once.
func (t *Tree) groupable() bool { return t.able().Barrier || t.able().Ordered }

// publishAll publishes a group in the way that pays.
func (g *groups) publishAll(t *Tree, pubs []*publication) {
	g.mu.Lock()
	together := len(pubs) >= groupFrom && t.groupable() && !g.pace.slow()
	g.mu.Unlock()
	together = together && !t.elsewhere(pubs)

	begin := clock()
	if together {
		t.publishTogether(pubs)
	} else {
		t.publishEach(pubs)
	}
	took := clock().Sub(begin)

	g.mu.Lock()
	defer g.mu.Unlock()
	if together {
		g.pace.group(took, len(pubs))
	} else {
		g.pace.single(took, len(pubs))
	}
}

// clock is for how long something took, on the clock that never jumps.
func clock() time.Time {
	return time.Now() //nolint:forbidigo // a difference of two, never what time it is
}

// pace notices when groups do not pay. A barrier writes out everything on the
// file system, also what builds and tests are writing just then, so a group can
// take longer than its files would by themselves.
type pace struct {
	each  time.Duration // what one file cost lately, by itself and beside others
	until time.Time     // no groups before this moment
	pause time.Duration
}

// Before a tree has seen a file published by itself it takes eachGuess for what
// that costs. Groups pause longer each time in a row that they did not pay.
const (
	eachGuess  = 400 * time.Microsecond
	pauseFirst = 100 * time.Millisecond
	pauseMost  = 10 * time.Second
)

func (p *pace) slow() bool { return !p.until.IsZero() && clock().Before(p.until) }

// single learns from n files that were published side by side.
func (p *pace) single(took time.Duration, n int) {
	each := took / time.Duration(max(1, n))
	if p.each == 0 {
		p.each = each
	}
	p.each += (each - p.each) / 8
}

// group judges a group of n: one that took much longer than its files by
// themselves stops groups for a while.
func (p *pace) group(took time.Duration, n int) {
	each := p.each
	if each == 0 {
		each = eachGuess
	}
	if took <= 2*each*time.Duration(n) {
		p.pause = 0
		return
	}
	p.pause = min(max(2*p.pause, pauseFirst), pauseMost)
	p.until = clock().Add(p.pause)
}
