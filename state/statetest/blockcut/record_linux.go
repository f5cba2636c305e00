package blockcut

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// Record is everything that reached a disk, in the order of arrival.
type Record struct {
	mu     sync.Mutex
	base   *Image
	whole  []int64 // the blocks that are never torn
	events []event
	ended  bool
}

// event is one write, one flush (no data), or one mark.
type event struct {
	data []byte
	off  int64
	kind kind
	mark string
}

type kind int

const (
	wrote kind = iota
	flushed
	marked
)

func (r *Record) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.events = append(r.events, e)
	}
}

func (r *Record) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// Mark notes what the programs had been told when everything that is in the
// record so far, and nothing else, had reached the disk.
func (r *Record) Mark(text string) { r.add(event{kind: marked, mark: text}) }

// Len is the number of events: a power cut comes after 0 … Len of them.
func (r *Record) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// Counts returns the numbers of writes and of flushes between two points.
func (r *Record) Counts(from, to int) (writes, flushes int) {
	for _, e := range r.events[from:to] {
		switch e.kind {
		case wrote:
			writes++
		case flushed:
			flushes++
		case marked:
		}
	}
	return writes, flushes
}

// Marks returns the points right after each mark.
func (r *Record) Marks() []int {
	var at []int
	for i, e := range r.events {
		if e.kind == marked {
			at = append(at, i+1)
		}
	}
	return at
}

// Told returns the texts of the marks before a cut.
func (r *Record) Told(at int) []string {
	var texts []string
	for _, e := range r.events[:at] {
		if e.kind == marked {
			texts = append(texts, e.mark)
		}
	}
	return texts
}

// Keep says what survives of the writes that no flush followed.
type Keep int

const (
	// None: the cache of the disk is lost whole.
	None Keep = iota
	// All: the disk had written everything by itself.
	All
	// Some: each write is there or not, whichever came first.
	Some
	// Torn: each sector of each write is there or not.
	Torn
)

// Cut is one power cut.
type Cut struct {
	// At is the number of events before it.
	At   int
	Keep Keep
	// Sector is the size, in bytes, that the disk writes whole (Torn).
	Sector int
	// Seed decides over Some and Torn.
	Seed uint64
}

// Cuts picks n power cuts. First come those right after each mark with nothing of
// the disk's cache kept, which is when a missing fsync shows; then random ones.
func (r *Record) Cuts(n int, seed uint64) []Cut {
	var all []Cut
	marks := r.Marks()
	for _, at := range marks {
		all = append(all, Cut{At: at})
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for len(all) < n {
		at := rnd.IntN(r.Len() + 1)
		if len(marks) > 0 && rnd.IntN(2) == 0 {
			at = marks[rnd.IntN(len(marks))]
		}
		all = append(all, Cut{At: at, Keep: All + Keep(rnd.IntN(3)), Sector: 512 << (3 * rnd.IntN(2)), Seed: rnd.Uint64()})
	}
	return all[:n]
}

// Image makes the disk that a power cut leaves.
func (r *Record) Image(c Cut) *Image {
	flush := 0
	for i, e := range r.events[:c.At] {
		if e.kind == flushed {
			flush = i
		}
	}
	disk := r.base.edit()
	for _, e := range r.events[:flush] {
		if e.kind == wrote {
			disk.put(e.data, e.off)
		}
	}
	rnd := rand.New(rand.NewPCG(c.Seed, uint64(c.At)))
	// How much survives differs from disk to disk, so that nearly all and nearly nothing come up too.
	share := rnd.Float64()
	survives := func() bool { return c.Keep == All || c.Keep != None && rnd.Float64() < share }
	// In the order of arrival: what a disk's cache holds of a sector is the last
	// version, so an older one shows only where the newer one is lost.
	for _, e := range r.events[flush:c.At] {
		unit := len(e.data)
		if c.Keep == Torn && !slices.Contains(r.whole, e.off/blockSize) {
			unit = c.Sector
		}
		for from := 0; from < len(e.data); from += unit {
			if survives() {
				disk.put(e.data[from:min(from+unit, len(e.data))], e.off+int64(from))
			}
		}
	}
	return &disk.Image
}
