package simulate

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// engine is virtual time: a queue of what happens when. What is due at the same
// instant happens in the order in which it was asked for, so that a run depends
// on nothing but its options.
type engine struct {
	now    time.Duration // since the beginning
	events agenda
	seq    uint64
	rnd    *rand.Rand
	epoch  time.Time
	// offset is by how much the rig's clock is wrong.
	offset time.Duration
	count  int
}

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

type agenda []event

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(e any)   { *a = append(*a, e.(event)) } //nolint:forcetypeassert // heap is handed events alone
func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*a = old[:len(old)-1]
	return e
}

func newEngine(seed uint64) engine {
	return engine{epoch: epoch(), rnd: rand.New(rand.NewPCG(seed, 0x6368697073657421))}
}

// epoch is when every simulation begins.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// clock is what the rig takes for the time.
func (e *engine) clock() state.Time { return state.At(e.epoch.Add(e.now + e.offset)) }

// after does something once d has passed.
func (e *engine) after(d time.Duration, do func()) { e.at(e.now+max(d, 0), do) }

func (e *engine) at(t time.Duration, do func()) {
	e.seq++
	heap.Push(&e.events, event{max(t, e.now), e.seq, do})
}

// run lets things happen until over says so, nothing is left, or time is up.
func (e *engine) run(ctx context.Context, until time.Duration, over func() bool) error {
	for len(e.events) > 0 && !over() {
		if e.count++; e.count%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if until > 0 && e.events[0].at > until {
			e.now = until
			return nil
		}
		next, _ := heap.Pop(&e.events).(event)
		e.now = next.at
		next.do()
	}
	return nil
}

func (e *engine) chance(p float64) bool { return p > 0 && e.rnd.Float64() < p }

// around is log-normal with a median.
func (e *engine) around(median time.Duration, spread float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(spread*e.rnd.NormFloat64()))
}

// every is exponential with a mean: the time to the next of what comes at random.
func (e *engine) every(mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * e.rnd.ExpFloat64())
}

// upTo is uniform between a tenth of most and most.
func (e *engine) upTo(most time.Duration) time.Duration {
	return most/10 + time.Duration(e.rnd.Int64N(int64(most-most/10)))
}
