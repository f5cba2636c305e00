package state

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Groups are tried from so many callers at once, or files of one caller: for fewer,
// a barrier saves less than it costs wherever the disk has other work. A group
// holds a descriptor for each of its files, hence the most.
const (
	groupFrom = 12
	groupMost = 256
)

// linger is how long who settles a group waits for callers that are expected,
// because they were there a moment ago: far less than what settling costs.
const linger = 300 * time.Microsecond

// overlapFrom is how many must wait for a group to be settled while the one before
// gets its names; fewer do better in one group with those of the one before.
const overlapFrom = 16

// groups lets many callers of WriteNew share barriers. Each writes its content by
// itself. The first who finds enough company settles a group of all who wait, and
// hands the lead to one of those who came meanwhile.
type groups struct {
	mu      sync.Mutex
	inside  int  // callers in WriteNew now
	busy    int  // callers that were in it at once lately, in sixteenths
	naming  int  // callers whose group is settled and gets its names
	leading bool // somebody settles a group
	waiting []*publication
	enough  chan struct{} // told when all wait that are expected; nil when nobody lingers

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
	busy, together := g.enter()
	defer g.leave()
	pub.prepare(t)
	if together {
		pub.startFlush(t)
	}
	switch {
	case pub.err != nil:
		pub.finish(t)
		return pub.err
	case together:
		g.wait(t, pub)
	default:
		pub.sync()
		t.nameOne(pub)
	}
	g.note(busy, together, clock().Sub(begin)/time.Duration(busy), 1)
	return pub.err
}

// enter counts a caller, and says among how many it is, and whether it had better
// go with them.
func (g *groups) enter() (busy int, together bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
	g.busy = max(16*g.inside, g.busy-(g.busy-16*g.inside)/16)
	busy = g.callers()
	return busy, busy >= groupFrom && g.pace(busy).together()
}

func (g *groups) leave() {
	g.mu.Lock()
	g.inside--
	g.mu.Unlock()
}

func (g *groups) callers() int { return (g.busy + 8) / 16 }

func (g *groups) pace(n int) *pace { return &g.paces[min(bits.Len(uint(n)), len(g.paces)-1)] }

func (g *groups) note(n int, together bool, each time.Duration, files int) {
	g.mu.Lock()
	g.pace(n).note(together, each, files)
	g.mu.Unlock()
}

// wait returns when the group is published to which pub comes, having committed
// it when nobody else did.
func (g *groups) wait(t *Tree, pub *publication) {
	pub.done, pub.lead = make(chan struct{}), make(chan struct{}, 1)
	g.mu.Lock()
	g.waiting = append(g.waiting, pub)
	if !g.leading {
		g.leading = true
		pub.lead <- struct{}{}
	}
	if g.enough != nil && g.complete() {
		close(g.enough)
		g.enough = nil
	}
	g.mu.Unlock()
	select {
	case <-pub.done:
	case <-pub.lead:
		g.commit(t)
	}
}

// complete tells whether nearly all wait who can be expected to.
func (g *groups) complete() bool { return 4*len(g.waiting) >= 3*(g.callers()-g.naming) }

// commit publishes who waits, the leader among them.
func (g *groups) commit(t *Tree) {
	pubs := g.gather()
	handed := false
	g.publishAll(t, pubs, func() { handed = g.settled(len(pubs)) })
	for _, pub := range pubs {
		close(pub.done)
	}
	g.mu.Lock()
	g.naming -= len(pubs)
	if !handed {
		g.handOn()
	}
	g.mu.Unlock()
}

// gather takes who waits, having waited a little for more.
func (g *groups) gather() []*publication {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.complete() {
		enough := make(chan struct{})
		g.enough = enough
		g.mu.Unlock()
		late := time.NewTimer(linger)
		select {
		case <-enough:
		case <-late.C:
		}
		late.Stop()
		g.mu.Lock()
		g.enough = nil
	}
	n := min(groupMost, len(g.waiting))
	pubs := slices.Clone(g.waiting[:n])
	g.waiting = slices.Clone(g.waiting[n:])
	return pubs
}

// settled hands the lead on when enough wait to settle beside the naming of n.
func (g *groups) settled(n int) (handed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.naming += n
	if handed = len(g.waiting) >= overlapFrom; handed {
		g.handOn()
	}
	return handed
}

// handOn makes one of those who wait settle the next group.
func (g *groups) handOn() {
	if len(g.waiting) > 0 {
		g.waiting[0].lead <- struct{}{}
	} else {
		g.leading = false
	}
}

// groupable tells whether the file system has a way to settle many files at once.
func (t *Tree) groupable() bool { return t.able().Barrier || t.able().Ordered }

// publishBatch publishes the files of one caller in the way that pays.
func (g *groups) publishBatch(t *Tree, pubs []*publication) {
	g.mu.Lock()
	together := len(pubs) >= groupFrom && t.groupable() && g.pace(len(pubs)).together()
	g.mu.Unlock()
	begin := clock()
	if together {
		g.publishAll(t, pubs, func() {})
	} else {
		t.publishEach(pubs)
	}
	g.note(len(pubs), together, clock().Sub(begin)/time.Duration(len(pubs)), len(pubs))
}

// publishAll publishes a group. It calls settled once its content is on the disk.
func (g *groups) publishAll(t *Tree, pubs []*publication, settled func()) {
	if len(pubs) == 1 || t.elsewhere(pubs) {
		settled()
		t.publishEach(pubs)
		return
	}
	for _, pub := range pubs {
		if !pub.begun {
			pub.prepare(t)
			pub.startFlush(t)
		}
	}
	doubt := t.settle(pubs)
	settled()
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

// pace notices when groups do not pay. A barrier writes out everything on the
// file system, also what builds and tests are writing just then, so a group can
// take longer than its files would by themselves.
type pace struct {
	alone, grouped time.Duration // what one file cost lately, in each way
	until          time.Time     // no groups before this moment
	pause          time.Duration
	tried          int // files of groups since the last pause
}

// Before a tree has seen files published by themselves it takes aloneGuess for
// what one costs. Groups pause longer each time in a row that they did not pay, and
// are judged by no fewer files than triedLeast.
const (
	aloneGuess = 400 * time.Microsecond
	pauseFirst = 100 * time.Millisecond
	pauseMost  = 10 * time.Second
	triedLeast = 16
)

func (p *pace) together() bool { return p.until.IsZero() || !clock().Before(p.until) }

// note learns what each of some files cost, where the time that they took is
// divided by how many were under way.
func (p *pace) note(together bool, each time.Duration, files int) {
	if !together {
		p.alone = smooth(p.alone, each)
		return
	}
	p.grouped = smooth(p.grouped, each)
	if p.tried += files; p.tried < triedLeast {
		return
	}
	alone := p.alone
	if alone == 0 {
		alone = aloneGuess
	}
	if p.grouped <= alone {
		p.pause = 0
		return
	}
	p.pause = min(max(2*p.pause, pauseFirst), pauseMost)
	p.until, p.tried, p.grouped = clock().Add(p.pause), 0, 0
}

func smooth(was, is time.Duration) time.Duration {
	if was == 0 {
		return is
	}
	return was + (is-was)/16
}
