// Package backlog keeps the beads of a rig in the orders in which roles ask for
// them: by name, by status, what is ready first. Whoever runs a role puts in
// what changed, at O(log n) for each change; a decision reads only what it asks
// for, and so costs the same however many beads lie around.
package backlog

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/tidwall/btree"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
)

// AgeStep is how much older a bead must be to go before one of the next
// higher priority: priority counts, and age beats it in the end, so that
// nothing starves.
const AgeStep = time.Hour

// Backlog is the beads and convoys of one rig. What it returns belongs to it and
// must not be changed. It is used by one goroutine at a time.
type Backlog struct {
	beads map[state.BeadID]*bead.Bead
	// dependants are the beads that name one in their blocked_by, also one that
	// does not exist.
	dependants map[state.BeadID]map[state.BeadID]int
	count      map[bead.Status]int

	// failed and out (hooked or in progress) are in the order of names; ready
	// (open, every blocker landed) and loose (ready, in no convoy) in that of
	// dispatch, cooling (ready, with a ready_at) in that of time.
	failed, out, ready, loose, cooling *btree.BTreeG[*bead.Bead]

	convoys map[state.ConvoyID]*Convoy
	// travels are the convoys that list a bead, also one that does not exist.
	travels map[state.BeadID]map[state.ConvoyID]int
	rolling *btree.BTreeG[*Convoy]
}

// Convoy is a convoy that has not come to its end, and how much of it has landed.
type Convoy struct {
	convoy.Convoy
	Landed int
}

// New makes a backlog of beads.
func New(beads ...bead.Bead) *Backlog {
	b := &Backlog{beads: map[state.BeadID]*bead.Bead{}, dependants: map[state.BeadID]map[state.BeadID]int{}, count: map[bead.Status]int{},
		failed: tree(byName), out: tree(byName), ready: tree(byDue), loose: tree(byDue), cooling: tree(byReadyAt),
		convoys: map[state.ConvoyID]*Convoy{}, travels: map[state.BeadID]map[state.ConvoyID]int{},
		rolling: tree(func(a, b *Convoy) bool { return a.ID < b.ID })}
	for i := range beads {
		b.Put(beads[i])
	}
	return b
}

func tree[T any](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

func byName(a, b *bead.Bead) bool { return a.ID < b.ID }

// due is when a bead is to go: what is due first goes first.
func due(b *bead.Bead) time.Time {
	return b.CreatedAt.Add(time.Duration(b.Priority.Rank()) * AgeStep)
}

func byDue(a, b *bead.Bead) bool {
	if c := due(a).Compare(due(b)); c != 0 {
		return c < 0
	}
	return a.ID < b.ID
}

func byReadyAt(a, b *bead.Bead) bool {
	if c := a.ReadyAt.Compare(b.ReadyAt.Time); c != 0 {
		return c < 0
	}
	return a.ID < b.ID
}

// Get returns a bead, or nil.
func (l *Backlog) Get(id state.BeadID) *bead.Bead { return l.beads[id] }

// Len is the number of beads, Count that of those with a status.
func (l *Backlog) Len() int { return len(l.beads) }

// Count is the number of beads with a status.
func (l *Backlog) Count(s bead.Status) int { return l.count[s] }

// Unfinished counts the beads that something will happen to by itself: neither
// at an end nor waiting for a person.
func (l *Backlog) Unfinished() int {
	return l.count[bead.Open] + l.count[bead.Hooked] + l.count[bead.InProgress] + l.count[bead.Done] + l.count[bead.Failed]
}

// OutCount is the number of beads that are on hooks.
func (l *Backlog) OutCount() int { return l.out.Len() }

// ReadyCount is the number of beads of Ready, and of those that will be when they
// have cooled down.
func (l *Backlog) ReadyCount() int { return l.ready.Len() }

// All are the beads, in no order.
func (l *Backlog) All() iter.Seq[*bead.Bead] { return maps.Values(l.beads) }

// Failed are the beads whose attempt is over, in the order of names.
func (l *Backlog) Failed() iter.Seq[*bead.Bead] { return l.failed.Scan }

// Out are the beads that are hooked or in progress, in the order of names.
func (l *Backlog) Out() iter.Seq[*bead.Bead] { return l.out.Scan }

// Ready are the beads that can be slung now, first first: open, every blocker
// landed, not cooling down.
func (l *Backlog) Ready(now state.Time) iter.Seq[*bead.Bead] { return cooled(l.ready, now) }

// Loose are the beads of Ready that travel in no convoy.
func (l *Backlog) Loose(now state.Time) iter.Seq[*bead.Bead] { return cooled(l.loose, now) }

// Ready is Backlog.Ready of a list that is looked at once.
func Ready(beads []bead.Bead, now state.Time) []*bead.Bead {
	byID := bead.Index(beads)
	var ready []*bead.Bead
	for i := range beads {
		b := &beads[i]
		if b.Status == bead.Open && !b.Cooling(now) && len(bead.Blockers(b, byID)) == 0 {
			ready = append(ready, b)
		}
	}
	sort.Slice(ready, func(i, j int) bool { return byDue(ready[i], ready[j]) })
	return ready
}

func cooled(in *btree.BTreeG[*bead.Bead], now state.Time) iter.Seq[*bead.Bead] {
	return func(yield func(*bead.Bead) bool) {
		in.Scan(func(b *bead.Bead) bool { return b.Cooling(now) || yield(b) })
	}
}

// NextReady is when the first bead that only cools down may be slung, or zero.
func (l *Backlog) NextReady(now state.Time) (next state.Time) {
	l.cooling.Scan(func(b *bead.Bead) bool {
		if b.Cooling(now) {
			next = *b.ReadyAt
			return false
		}
		return true
	})
	return next
}

// Put adds a bead or takes note of its change.
func (l *Backlog) Put(b bead.Bead) {
	old := l.beads[b.ID]
	l.leave(old)
	l.beads[b.ID] = &b
	for _, dep := range b.BlockedBy {
		note(l.dependants, dep, b.ID)
	}
	l.count[b.Status]++
	l.enter(&b)
	l.landing(b.ID, old != nil && old.Status.Landed(), b.Status.Landed())
}

// Remove forgets a bead whose file is gone.
func (l *Backlog) Remove(id state.BeadID) {
	old := l.beads[id]
	if old == nil {
		return
	}
	l.leave(old)
	delete(l.beads, id)
	l.landing(id, old.Status.Landed(), false)
}

// leave takes a bead out of everything but the map.
func (l *Backlog) leave(b *bead.Bead) {
	if b == nil {
		return
	}
	l.count[b.Status]--
	l.withdraw(b)
	for _, dep := range b.BlockedBy {
		delete(l.dependants[dep], b.ID)
		if len(l.dependants[dep]) == 0 {
			delete(l.dependants, dep)
		}
	}
}

// withdraw takes a bead out of the orders.
func (l *Backlog) withdraw(b *bead.Bead) {
	switch b.Status {
	case bead.Failed:
		l.failed.Delete(b)
	case bead.Hooked, bead.InProgress:
		l.out.Delete(b)
	case bead.Open:
		l.ready.Delete(b)
		l.loose.Delete(b)
		if b.ReadyAt != nil {
			l.cooling.Delete(b)
		}
	case bead.Done, bead.Merged, bead.Closed, bead.Blocked, bead.Cancelled:
	}
}

// enter puts a bead into the orders it belongs to.
func (l *Backlog) enter(b *bead.Bead) {
	switch b.Status {
	case bead.Failed:
		l.failed.Set(b)
	case bead.Hooked, bead.InProgress:
		l.out.Set(b)
	case bead.Open:
		if b.ReadyAt != nil { // also while it is blocked: who waits for it looks once too often at most
			l.cooling.Set(b)
		}
		if l.blocked(b) {
			return
		}
		l.ready.Set(b)
		if b.ConvoyID == "" && len(l.travels[b.ID]) == 0 {
			l.loose.Set(b)
		}
	case bead.Done, bead.Merged, bead.Closed, bead.Blocked, bead.Cancelled:
	}
}

func (l *Backlog) blocked(b *bead.Bead) bool {
	for _, dep := range b.BlockedBy {
		if d := l.beads[dep]; d == nil || !d.Status.Landed() {
			return true
		}
	}
	return false
}

// landing tells those who wait for a bead, and the convoys it travels in.
func (l *Backlog) landing(id state.BeadID, before, after bool) {
	if before == after {
		return
	}
	for dep := range l.dependants[id] {
		l.refile(dep)
	}
	for cv, times := range l.travels[id] {
		if after {
			l.convoys[cv].Landed += times
		} else {
			l.convoys[cv].Landed -= times
		}
	}
}

// refile looks again which orders a bead belongs to.
func (l *Backlog) refile(id state.BeadID) {
	if b := l.beads[id]; b != nil {
		l.withdraw(b)
		l.enter(b)
	}
}

// Blockers lists which of a bead's dependencies have not landed, with why.
func (l *Backlog) Blockers(b *bead.Bead) []string { return bead.Blockers(b, l.beads) }

// Convoys are those that have not come to their end, in the order of names.
func (l *Backlog) Convoys() iter.Seq[*Convoy] { return l.rolling.Scan }

// PutConvoy adds a convoy or takes note of its change. The beads of a convoy
// stay what they were when it was made.
func (l *Backlog) PutConvoy(c convoy.Convoy) {
	old := l.convoys[c.ID]
	if old != nil && slices.Equal(old.BeadIDs, c.BeadIDs) {
		l.rolling.Delete(old)
		old.Convoy = c
		l.roll(old)
		return
	}
	l.RemoveConvoy(c.ID)
	made := &Convoy{Convoy: c}
	l.convoys[c.ID] = made
	for _, id := range c.BeadIDs {
		note(l.travels, id, c.ID)
		if b := l.beads[id]; b != nil && b.Status.Landed() {
			made.Landed++
		}
		l.refile(id)
	}
	l.roll(made)
}

func (l *Backlog) roll(c *Convoy) {
	if c.CompletedAt == nil && len(c.BeadIDs) > 0 {
		l.rolling.Set(c)
	}
}

// RemoveConvoy forgets a convoy whose file is gone.
func (l *Backlog) RemoveConvoy(id state.ConvoyID) {
	old := l.convoys[id]
	if old == nil {
		return
	}
	delete(l.convoys, id)
	l.rolling.Delete(old)
	for _, b := range old.BeadIDs {
		delete(l.travels[b], id)
		if len(l.travels[b]) == 0 {
			delete(l.travels, b)
		}
		l.refile(b)
	}
}

func note[A, B comparable](in map[A]map[B]int, a A, b B) {
	if in[a] == nil {
		in[a] = map[B]int{}
	}
	in[a][b]++
}

// Sync makes the backlog hold exactly these beads: for whoever looks at the
// whole folder at once.
func (l *Backlog) Sync(beads []bead.Bead) {
	for i := range beads {
		if b := &beads[i]; !same(l.beads[b.ID], b) {
			l.Put(*b)
		}
	}
	if len(l.beads) == len(beads) {
		return
	}
	there := make(map[state.BeadID]bool, len(beads))
	for i := range beads {
		there[beads[i].ID] = true
	}
	for id := range l.beads {
		if !there[id] {
			l.Remove(id)
		}
	}
}

// Follow takes note of what has changed in the store of beads.
func (l *Backlog) Follow(c state.Changes[bead.Bead]) {
	if c.All {
		l.Sync(c.Values)
		return
	}
	for i := range c.Values {
		if b := &c.Values[i]; !same(l.beads[b.ID], b) {
			l.Put(*b)
		}
	}
	for _, id := range c.Removed {
		l.Remove(state.BeadID(id))
	}
}

// same reports whether nothing changed that an order or a decision depends on.
func same(a, b *bead.Bead) bool {
	return a != nil && a.Gen == b.Gen && a.Status == b.Status && a.Priority == b.Priority && a.Title == b.Title &&
		a.AssignmentID == b.AssignmentID && a.Assignee == b.Assignee && a.Branch == b.Branch && a.ConvoyID == b.ConvoyID &&
		a.Attempts == b.Attempts && a.Conflicts == b.Conflicts && a.Restarts == b.Restarts && a.Unended == b.Unended && a.CloseReason == b.CloseReason &&
		a.CreatedAt.Equal(b.CreatedAt.Time) && a.UpdatedAt.Equal(b.UpdatedAt.Time) && sameTime(a.ReadyAt, b.ReadyAt) &&
		slices.Equal(a.BlockedBy, b.BlockedBy) && slices.Equal(a.ReworkNotes, b.ReworkNotes)
}

func sameTime(a, b *state.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(b.Time)
}

// SyncConvoys makes the backlog hold exactly these convoys.
func (l *Backlog) SyncConvoys(convoys []convoy.Convoy) {
	there := make(map[state.ConvoyID]bool, len(convoys))
	for i := range convoys {
		there[convoys[i].ID] = true
		l.PutConvoy(convoys[i])
	}
	for id := range l.convoys {
		if !there[id] {
			l.RemoveConvoy(id)
		}
	}
}

// String is the backlog in one line, for who asks how it goes.
func (l *Backlog) String() string {
	return fmt.Sprintf("%d open, %d out, %d to land, %d wait for a person", l.count[bead.Open]+l.count[bead.Failed],
		l.OutCount(), l.count[bead.Done], l.count[bead.Blocked])
}

// Convoy returns a convoy, also one that has come to its end; the zero one is
// unknown.
func (l *Backlog) Convoy(id state.ConvoyID) convoy.Convoy {
	if c := l.convoys[id]; c != nil {
		return c.Convoy
	}
	return convoy.Convoy{}
}
