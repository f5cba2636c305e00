package model

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/disk"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// Scenario is one durable operation and what it promises.
type Scenario struct {
	Name string
	// Prepare makes what the operation finds, which is durable. It may be nil.
	Prepare func(r *Run) error
	// Do is the operation. It says with Run.Ack what it has promised.
	Do func(r *Run) error
	// Check judges what a crash left. That nothing is torn under a final name is
	// checked already.
	Check func(c *Crash) error
	// Heal is what the next start does about what it finds, and the operation
	// once more. It may be nil.
	Heal func(r *Run) error
}

// Run is one play of an operation.
type Run struct {
	context.Context
	Tree *state.Tree

	recorder *Recorder // nil while Prepare runs
}

// Ack says that the operation has promised something from now on.
func (r *Run) Ack(fact string) {
	if r.recorder != nil {
		r.recorder.acknowledge(fact)
	}
}

// Disk is the disk below the tree, for what another program does there. nil while
// Prepare runs.
func (r *Run) Disk() disk.Disk {
	if r.recorder == nil {
		return nil
	}
	return r.recorder
}

// Crash is a state to be judged.
type Crash struct {
	Files
	// Healed is true once Heal came to its end. Cut is true after a power cut,
	// when nothing is there that was not durable.
	Healed, Cut bool
	// Err is what the operation returned, when it came to an end. Failed is true
	// when it returned an error itself, nothing was cut or killed after that, and
	// it could have put right what it had done.
	Err    error
	Failed bool
	facts  []string
}

// Acked reports whether something was promised before the crash.
func (c *Crash) Acked(fact string) bool {
	for _, f := range c.facts {
		if f == fact {
			return true
		}
	}
	return false
}

// Kinds of file systems that the product tells apart. Each path that a
// publication can take is taken on one of them.
func Kinds() map[string]disk.Features {
	return map[string]disk.Features{
		"plain":              {},
		"unnamed":            {Unnamed: true, Journal: true},
		"journal":            {Journal: true},
		"barrier":            {Barrier: true},
		"barrier, unnamed":   {Barrier: true, Unnamed: true, Journal: true},
		"ordered, unnamed":   {Ordered: true, Unnamed: true, Journal: true},
		"ordered, temp name": {Ordered: true, Journal: true},
	}
}

// Figures counts what a sweep has seen.
type Figures struct {
	// Possible states are all choices of all moments; Seen were judged, the same
	// tree with the same promises once.
	Possible, Seen int
	// Drawn counts the moments with so many states that they were drawn from.
	Drawn int
	// Faults were injected, of them Kills; Healed counts the recoveries.
	Faults, Kills, Healed int
}

func (f *Figures) add(g Figures) {
	f.Possible += g.Possible
	f.Seen += g.Seen
	f.Drawn += g.Drawn
	f.Faults += g.Faults
	f.Kills += g.Kills
	f.Healed += g.Healed
}

func (f Figures) String() string {
	return fmt.Sprintf("%d crash states, %d different ones judged, %d moments drawn from; %d faults, %d of them kills; %d recoveries",
		f.Possible, f.Seen, f.Drawn, f.Faults, f.Kills, f.Healed)
}

// Bounds of a sweep. Where there is more, it is drawn.
type Bounds struct {
	// States of one recording without a fault, and of one with a fault or a recovery.
	States, Fewer int
	// Heals of one recording, and how many of those are cut again.
	Heals, Again int
	// Faults of one scenario.
	Faults int
}

// bounds are those of CHIPSET_FULL: 1 is all there is, "faults" every fault and little else, "git" nothing more than without it.
func bounds() Bounds {
	few := Bounds{States: 1000, Fewer: 100, Heals: 6, Again: 1, Faults: 12}
	switch os.Getenv("CHIPSET_FULL") {
	case "1":
		return Bounds{States: 60_000, Fewer: 200, Heals: 60, Again: 10, Faults: 1000}
	case "faults":
		few.Faults, few.Fewer = 1000, 20
	}
	return few
}

// Seed is CHIPSET_SEED, or always the same.
func Seed() uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("CHIPSET_SEED"), 10, 64); err == nil {
		return seed
	}
	return 1
}

// Sweep plays the scenario on each kind of file system, or those with CHIPSET_KIND in
// their name, and ends the test at the first state that breaks a promise.
func Sweep(t *testing.T, s Scenario) {
	t.Helper()
	var all Figures
	for kind, features := range Kinds() {
		if !strings.Contains(kind, os.Getenv("CHIPSET_KIND")) {
			continue
		}
		figures, err := Explore(t, s, features, nil)
		all.add(figures)
		if err != nil {
			t.Fatalf("%s on %q (CHIPSET_SEED=%d): %v", s.Name, kind, Seed(), err)
		}
	}
	statetest.Figures(t, "%s: %v; seed %d", s.Name, all, Seed())
}

// Explore is Sweep on one kind of file system, and returns the first broken
// promise. weaken may put a worse disk in the way, to see that it is found out.
func Explore(t testing.TB, s Scenario, features disk.Features, weaken func(disk.Disk) disk.Disk) (Figures, error) {
	t.Helper()
	x := &explorer{
		scenario: s, features: features, weaken: weaken, bounds: bounds(), place: place(t),
		rnd: rand.New(rand.NewPCG(Seed(), uint64(len(s.Name)))), seed: maphash.MakeSeed(),
	}
	err := x.all()
	return x.figures, err
}

// place is a folder in memory where there is one.
func place(t testing.TB) string {
	t.Helper()
	at, err := os.MkdirTemp("/dev/shm", "chipset-model-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(at) })
	return at
}

// Promised asks about each promise, in their order, and returns the first error.
func (c *Crash) Promised(kept func(fact string) error) error {
	for _, fact := range c.facts {
		if err := kept(fact); err != nil {
			return fmt.Errorf("%s: %w", fact, err)
		}
	}
	return nil
}
