package chipsettest_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/statetest"
	"github.com/gastown-chipset/chipset/state/statetest/powercut"
)

// tally is what a sweep has done, for the line it ends with.
type tally struct {
	states, different, faults, kills, cuts, double, acked, possible int
}

func (n *tally) add(o tally) {
	n.states, n.different, n.faults, n.kills = n.states+o.states, n.different+o.different, n.faults+o.faults, n.kills+o.kills
	n.cuts, n.double, n.acked, n.possible = n.cuts+o.cuts, n.double+o.double, n.acked+o.acked, n.possible+o.possible
}

// subject is an act that was prepared: its image, its operations, and the runs to come.
type subject struct {
	act
	call   invocation
	image  *powercut.Tree
	before view
	ops    []powercut.Op
	queue  []take
	// judged are the disks that were looked at, with what was acknowledged then.
	judged map[judgement]bool
	// normal are the rules that doctor names after the act without any fault: what
	// it leaves to a role that does not run.
	normal map[string]bool
}

// prepare makes the image of an act and counts its operations once without a fault.
func (b *bench) prepare(a act, seed uint64) *subject {
	b.t.Helper()
	b.unpack(b.fresh)
	s := &subject{act: a, judged: map[judgement]bool{}}
	if s.whole == 0 {
		s.whole = 1
	}
	s.call = a.prepare(b)
	s.image = b.pack()
	s.before = b.view()
	b.insert(s.image)
	o := b.run(s.call, powercut.Fault{})
	if n, err := s.effect(b.view()); o.code != 0 || err != nil || n != s.whole {
		b.t.Fatalf("%s without any fault: exit %d, effect %d, %v\n%s%s", a.name, o.code, n, err, o.out, o.errs)
	}
	s.ops = o.ops
	s.normal = map[string]bool{}
	for _, f := range findings(b.t, b.run(run("doctor", "--json"), powercut.Fault{})) {
		s.normal[f.Rule] = true
	}
	name := fnv.New64a()
	name.Write([]byte(a.name))
	s.queue = universe(o.ops, rand.New(rand.NewPCG(seed, name.Sum64())))
	return s
}

// TestSweepOfTheRealBinary runs every durable operation of the real binary on a
// disk that fails and loses its power. CHIPSET_STATES bounds how many states
// are tried, drawn evenly over all operations; CHIPSET_SEED chooses others;
// CHIPSET_STATE plays one again.
func TestSweepOfTheRealBinary(t *testing.T) {
	sweep(t, acts(), statetest.Number(t, "CHIPSET_STATES", 60), false)
}

// TestSweepOfTheShortCuts does the same to the ways of publishing that are taken
// on file systems known to keep the promise with fewer syncs.
func TestSweepOfTheShortCuts(t *testing.T) {
	sweep(t, mailActs(), statetest.Number(t, "CHIPSET_STATES", 60)/3, true)
}

// TestSweepOfWholeRigs does the same to whole rigs, from a bead on a hook to
// its commit on the target branch. A state takes seconds, so there are fewer.
func TestSweepOfWholeRigs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole rigs for several seconds")
	}
	sweep(t, rigActs(), 1+statetest.Number(t, "CHIPSET_STATES", 60)/50, false)
}

// fixedSeed is CHIPSET_SEED, or the same one always.
func fixedSeed(t *testing.T) uint64 { return uint64(statetest.Number(t, "CHIPSET_SEED", 1)) }

// disksPerProcessor is more than one because a disk and the program on it wait for each other at every call.
const disksPerProcessor = 2

// sweep shares the acts among several disks. With few states every act is prepared
// all the same: at least a cut behind its acknowledgement is tried.
func sweep(t *testing.T, all []act, states int, shortCuts bool) {
	statetest.RequireFUSE(t)
	flags := ""
	if shortCuts {
		flags = "-X github.com/gastown-chipset/chipset/state/disk.assumed=unnamed,barrier,ordered,journal"
	}
	bin, seed := chipsettest.Build(t, flags), fixedSeed(t)
	if line := os.Getenv("CHIPSET_STATE"); line != "" {
		newBench(t, bin, shortCuts).replay(all, line, seed)
		return
	}
	began, share := time.Now(), (states+len(all)-1)/len(all)
	todo := make(chan act, len(all))
	for _, a := range all {
		todo <- a
	}
	close(todo)
	var mu sync.Mutex
	var n tally
	var disks sync.WaitGroup
	for i := range min(disksPerProcessor*runtime.GOMAXPROCS(0), len(all)) {
		// Not t.Parallel, which lets no more run than there are processors.
		disks.Go(func() {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				b := newBench(t, bin, shortCuts)
				for a := range todo {
					one := b.sweep(b.prepare(a, seed), share)
					mu.Lock()
					n.add(one)
					mu.Unlock()
				}
			})
		})
	}
	disks.Wait()
	statetest.Figures(t, "CHIPSET_SEED=%d: %d states of %d, %d different, of %d acts, %.0f a minute: %d faults met, %d kills, %d power cuts, %d double faults, %d acknowledged",
		seed, n.states, n.possible, n.different, len(all), float64(n.states)/time.Since(began).Minutes(),
		n.faults, n.kills, n.cuts, n.double, n.acked)
}

// sweep plays as many states of an act.
func (b *bench) sweep(s *subject, states int) tally {
	var n tally
	for _, p := range s.queue {
		n.possible += len(p.cuts)
	}
	var chosen, seen []take
	for i, p := range s.queue {
		if states <= 0 {
			break
		}
		room := states
		if i == 0 {
			room = (states + 1) / 2 // not all of few behind the last acknowledgement
		}
		p.cuts = p.cuts[:min(room, len(p.cuts))]
		states -= len(p.cuts)
		if recorded(p.fault) && p.second == nil {
			seen = append(seen, p)
		} else {
			chosen = append(chosen, p)
		}
	}
	b.record(s, seen, &n)
	for _, p := range chosen {
		b.play(s, p, &n)
	}
	return n
}

func (b *bench) replay(all []act, line string, seed uint64) {
	c, err := parseCrash(line)
	if err != nil {
		b.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a act) bool { return a.name == c.act })
	if i < 0 {
		b.t.Skipf("no act %q here", c.act)
	}
	s, p := b.prepare(all[i], seed), take{fault: c.fault, cuts: []cutting{c.cutting}, second: c.second}
	if recorded(p.fault) && p.second == nil {
		b.record(s, []take{p}, &tally{})
	} else {
		b.play(s, p, &tally{})
	}
}

// trial is one state while it is checked.
type trial struct {
	*bench
	*subject
	crash
	tally  *tally
	acked  int
	story  []string
	failed bool
	// orderly is the disk on which doctor --fix found nothing, if it did.
	orderly *powercut.Digest
}

func (tr *trial) say(format string, args ...any) {
	tr.story = append(tr.story, fmt.Sprintf(format, args...))
}

func (tr *trial) fail(format string, args ...any) {
	tr.failed = true
	tr.say("FAILED "+format, args...)
}

// judge holds the disk that a cut left, which is in its place, against the promises, and has it healed.
func (tr *trial) judge() {
	tr.t.Helper()
	tr.look("after the cut")
	if tr.second != nil {
		tr.strike()
		tr.unpack(tr.fs.Image())
	}
	tr.heal()
	if tr.failed {
		tr.t.Errorf("CHIPSET_STATE=%s\n\t%s", tr.crash, strings.Join(tr.story, "\n\t"))
	}
}

// do runs one command and notes how it ended. One that failed says why.
func (tr *trial) do(what string, c invocation, f powercut.Fault) outcome {
	o := tr.run(c, f)
	tr.tally.met(f, o)
	tr.tell(what, f, o)
	return o
}

// met counts a fault that was met.
func (n *tally) met(f powercut.Fault, o outcome) {
	if !o.hit {
		return
	}
	n.faults++
	if f.Kind == powercut.KillBefore || f.Kind == powercut.KillAfter {
		n.kills++
	}
}

// tell notes how a command ended.
func (tr *trial) tell(what string, f powercut.Fault, o outcome) {
	tr.say("%s (%s): exit %d, printed %q, %q", what, f, o.code, o.out, o.errs)
	for _, op := range o.ops {
		tr.say("    %s", op)
	}
	if o.code > 0 && o.errs == "" {
		tr.fail("%s: exit %d without a word", what, o.code)
	}
	if strings.Contains(o.errs, "panic:") || strings.Contains(o.errs, "goroutine ") {
		tr.fail("%s: it panicked", what)
	}
}

func (tr *trial) ack(o outcome) {
	switch {
	case tr.acks != nil:
		tr.acked = max(tr.acked, tr.acks(o))
	case o.code == 0 || o.out != "":
		tr.acked = 1
	}
	if tr.hint {
		tr.acked = 0
	}
	if tr.acked > 0 {
		tr.tally.acked++
	}
}

func (tr *trial) power(what string, c cutting) {
	tr.bench.cut(c)
	tr.tally.cuts++
	tr.say("the power is cut after %s: %s", what, c.mode)
}

// look holds the disk against what must be true at any moment.
func (tr *trial) look(when string) int {
	v := tr.view()
	for _, line := range v.torn(tr.before) {
		tr.fail("%s: torn: %s", when, line)
	}
	for _, line := range v.changed(tr.before, tr.touches) {
		tr.fail("%s: not its business: %s", when, line)
	}
	if tr.git != nil {
		if err := tr.git(tr.world, v, tr.acked); err != nil {
			tr.fail("%s: %v", when, err)
		}
	}
	n, err := tr.effect(v)
	switch {
	case err != nil:
		tr.fail("%s: %v", when, err)
	case n < tr.acked:
		tr.fail("%s: %d acknowledged, %d there", when, tr.acked, n)
	case n > tr.whole:
		tr.fail("%s: done %d times", when, n)
	}
	return n
}

// strike lets the recovery fail as well, on the power-cut disk.
func (tr *trial) strike() {
	tr.tally.double++
	c, what := run("doctor", "--fix"), "doctor --fix"
	if tr.second.again {
		c, what = tr.call, "the act again"
		if !tr.repeatable && tr.look("before "+what) > 0 {
			return
		}
	}
	if tr.bare && !tr.second.again {
		return // it would take the act back
	}
	o := tr.do(what, c, tr.second.fault)
	if tr.second.again {
		tr.ack(o)
	}
	tr.power(what, cutting{mode: tr.second.mode, seed: tr.seed + 1})
	tr.look("after the second cut")
}

// heal does what the next start does, without any fault: doctor --fix repairs,
// the act is done again if it is not there, and in the end all is in order. By
// the seed, the act comes first or second.
func (tr *trial) heal() {
	steps := []func(){tr.fix, tr.again}
	if tr.bare || tr.seed%2 == 0 {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		step()
	}
	if tr.orderly == nil || *tr.orderly != tr.pack().Digest() || tr.seed/2%8 == 0 {
		tr.examine()
	} // else nothing has changed since doctor --fix found nothing: without it doctor finds as much
	if tr.bare {
		return // doctor has taken it back
	}
	if n := tr.look("in the end"); n != tr.whole && !tr.hint {
		tr.fail("in the end: %d of %d there", n, tr.whole)
	}
}

// examine asks doctor for what is not in order.
func (tr *trial) examine() {
	o := tr.do("doctor", run("doctor", "--json"), powercut.Fault{})
	for _, f := range findings(tr.t, o) {
		if f.Severity != "info" && (tr.bare || !tr.normal[f.Rule]) && f.Rule != "quarantine" && f.Rule != "event-line" {
			tr.fail("doctor still finds %s: %s: %s", f.Severity, f.Path, f.Detail)
		}
	}
	if o.code != 0 {
		tr.fail("doctor: exit %d", o.code)
	}
}

type finding struct{ Rule, Path, Detail, Severity string }

func findings(t *testing.T, o outcome) []finding {
	t.Helper()
	var found []finding
	if err := json.Unmarshal([]byte(o.out), &found); err != nil {
		t.Errorf("doctor --json: %v: %s%s", err, o.out, o.errs)
	}
	return found
}

func (tr *trial) fix() {
	before := tr.pack().Digest()
	o := tr.do("doctor --fix", run("doctor", "--fix"), powercut.Fault{})
	if o.code != 0 {
		tr.fail("doctor --fix: exit %d", o.code)
	}
	if o.out == "everything is in order\n" && tr.pack().Digest() == before {
		tr.orderly = &before
	}
	if !tr.bare {
		tr.look("after doctor --fix")
	}
}

func (tr *trial) again() {
	n := tr.look("before it is done again")
	if !tr.repeatable && n > 0 {
		return
	}
	o := tr.do("again", tr.call, powercut.Fault{})
	if o.code != 0 && o.code != 4 {
		tr.fail("done again: exit %d", o.code)
	}
	if n := tr.look("after it was done again"); tr.bare && n != tr.whole {
		tr.fail("done again: %d of %d there", n, tr.whole)
	}
}
