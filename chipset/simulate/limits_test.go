package simulate

import (
	"testing"
	"time"
)

// Where the design bends, as docs/simulation.md says: one refinery
// lands one request a test. Polecats beyond that wait, and a batch buys more.
func TestRefineryIsTheLimit(t *testing.T) {
	got := map[[2]int]*Report{}
	sizes, batches := []int{8, 128}, []int{1, 16}
	if testing.Verbose() { // the whole table of docs/simulation.md
		sizes, batches = []int{2, 4, 8, 16, 32, 64, 128}, []int{1, 4, 16}
	}
	for _, batch := range batches {
		for _, n := range sizes {
			o := Defaults()
			o.Polecats, o.Beads, o.Batch, o.Needs, o.Patrol = n, 100+10*n, batch, 0, time.Minute
			r := run(t, o)
			got[[2]int{n, batch}] = r
			t.Logf("%d polecats, merge.batch %d: %.0f landed in an hour, %.2f h from done to landed", n, batch, r.PerHour, r.Landing.P50/3600)
		}
	}
	if r := got[[2]int{128, 1}]; r.PerHour > 120 || r.Refinery < 0.9 || r.Workers > 0.4 {
		t.Errorf("128 polecats land %.0f an hour with the refinery busy %.2f and workers %.2f", r.PerHour, r.Refinery, r.Workers)
	}
	if one, many := got[[2]int{128, 1}].PerHour, got[[2]int{128, 16}].PerHour; many < 2.5*one {
		t.Errorf("batches of 16 land %.0f an hour, single requests %.0f", many, one)
	}
	if r := got[[2]int{8, 1}]; r.Refinery > 0.6 || r.Landing.P50 > 120 {
		t.Errorf("8 polecats keep the refinery busy %.2f, and wait %.0f s", r.Refinery, r.Landing.P50)
	}
}

// Red work costs a batch its bisection, and flaky tests cost it the more.
func TestWhatRedWorkCostsABatch(t *testing.T) {
	at := map[[2]int]float64{}
	reds, batches := []int{0, 30}, []int{1, 16}
	if testing.Verbose() {
		reds, batches = []int{0, 10, 20, 30}, []int{1, 4, 16}
	}
	for _, batch := range batches {
		for _, red := range reds {
			o := Defaults()
			o.Polecats, o.Beads, o.Batch, o.Needs, o.Red, o.Patrol, o.Person = 64, 500, batch, 0, float64(red)/100, time.Minute, time.Hour
			r := run(t, o)
			at[[2]int{batch, red}] = float64(r.Tests.Green+r.Tests.Red+r.Tests.Tip) / float64(max(1, r.Landed))
			t.Logf("merge.batch %d, %d%% red: %.2f tests a bead", batch, red, at[[2]int{batch, red}])
		}
	}
	if clean := at[[2]int{16, 0}]; clean > 0.5 {
		t.Errorf("%.2f tests a bead in clean batches of 16", clean)
	}
	if one, many := at[[2]int{1, 30}], at[[2]int{16, 30}]; one < 1.5 || many < at[[2]int{16, 0}]*3 {
		t.Errorf("with a third of red work: %.2f tests a bead alone, %.2f in batches", one, many)
	}
}

// A queue that grows faster than it lands makes its own conflicts: whoever waits
// long meets more that landed meanwhile.
func TestDeepQueuesConflict(t *testing.T) {
	attempts := map[[2]int]float64{}
	sizes := []int{8, 64}
	if testing.Verbose() {
		sizes = []int{8, 16, 32, 64}
	}
	for _, batch := range []int{1, 16} {
		for _, n := range sizes {
			o := Defaults()
			o.Polecats, o.Beads, o.Batch, o.Needs, o.Conflict, o.Overlap, o.Patrol = n, 10*n, batch, 0, 0, 0.001, time.Minute
			r := run(t, o)
			attempts[[2]int{n, batch}] = perEach(r.Attempts, r.Landed)
			t.Logf("%d polecats, merge.batch %d: %.2f attempts a bead", n, batch, attempts[[2]int{n, batch}])
		}
	}
	if shallow, deep := attempts[[2]int{8, 1}], attempts[[2]int{64, 1}]; deep < shallow*1.1 {
		t.Errorf("%.2f attempts a bead with 8 polecats, %.2f with 64", shallow, deep)
	}
	if one, many := attempts[[2]int{64, 1}], attempts[[2]int{64, 16}]; many > one {
		t.Errorf("%.2f attempts a bead alone, %.2f in batches", one, many)
	}
}
