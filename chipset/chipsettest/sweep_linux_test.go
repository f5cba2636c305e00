package chipsettest_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/powercut"
)

// crash is one state of a sweep: what goes wrong at which operation of an act,
// and what the power cut after it leaves.
type crash struct {
	act string
	cutting
	fault powercut.Fault
	// second strikes the recovery; nil for none.
	second *second
}

type cutting struct {
	mode powercut.Mode
	seed uint64
}

func (c cutting) rnd() *rand.Rand { return rand.New(rand.NewPCG(c.seed, 1)) }

// second is a fault during the recovery: of doctor --fix, or of the act done again.
type second struct {
	again bool
	fault powercut.Fault
	mode  powercut.Mode
}

// String is the line that plays the state again.
func (c crash) String() string {
	text := fmt.Sprintf("%s/%s/%s/%d", c.act, c.fault, c.mode, c.seed)
	if c.second != nil {
		where := "doctor"
		if c.second.again {
			where = "again"
		}
		text += fmt.Sprintf("/%s/%s/%s", where, c.second.fault, c.second.mode)
	}
	return text
}

func parseCrash(text string) (crash, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 && len(parts) != 7 {
		return crash{}, fmt.Errorf("%q is no state", text)
	}
	var c crash
	var err error
	c.act = parts[0]
	if c.fault, err = parseFault(parts[1]); err != nil {
		return c, err
	}
	if c.mode, err = parseMode(parts[2]); err != nil {
		return c, err
	}
	if c.seed, err = strconv.ParseUint(parts[3], 10, 64); err != nil || len(parts) == 4 {
		return c, err
	}
	c.second = &second{again: parts[4] == "again"}
	if c.second.fault, err = parseFault(parts[5]); err != nil {
		return c, err
	}
	c.second.mode, err = parseMode(parts[6])
	return c, err
}

func parseFault(text string) (powercut.Fault, error) {
	kind, at, _ := strings.Cut(text, "@")
	n, err := strconv.Atoi(at)
	for _, k := range append(powercut.Kinds(), powercut.None) {
		if k.String() == kind {
			return powercut.Fault{Kind: k, At: n}, err
		}
	}
	return powercut.Fault{}, fmt.Errorf("no fault %q", text)
}

func parseMode(text string) (powercut.Mode, error) {
	for m := powercut.Drop; m <= powercut.Scatter; m++ {
		if m.String() == text {
			return m, nil
		}
	}
	return 0, fmt.Errorf("no mode %q", text)
}

// universe lists every fault at every operation, with every outcome of a cut,
// in the order in which a sweep takes them: first no fault at all and the cut
// right behind the last acknowledgement, then the rest at random.
func universe(name string, ops []powercut.Op, rnd *rand.Rand) []crash {
	modes := []powercut.Mode{powercut.Drop, powercut.Keep, powercut.Ordered}
	var first, all []crash
	for _, mode := range modes {
		first = append(first, crash{act: name, cutting: cutting{mode: mode}})
		for _, op := range ops {
			for _, kind := range powercut.Kinds() {
				if kind.Applies(op.Class) {
					all = append(all, crash{act: name, cutting: cutting{mode: mode}, fault: powercut.Fault{Kind: kind, At: op.N}})
				}
			}
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = append(first, all...)
	for i := range all {
		c := &all[i]
		c.seed = rnd.Uint64N(1e6)
		if c.mode == powercut.Ordered && rnd.IntN(2) == 0 {
			c.mode = powercut.Scatter
		}
		if rnd.IntN(4) == 0 && c.fault.Kind != powercut.None {
			kinds := powercut.Kinds()
			c.second = &second{again: rnd.IntN(2) == 0, mode: powercut.Mode(rnd.IntN(4)),
				fault: powercut.Fault{Kind: kinds[rnd.IntN(len(kinds))], At: 1 + rnd.IntN(len(ops))}}
		}
	}
	return all
}

// tally is what a sweep has done, for the line it ends with.
type tally struct {
	states, faults, kills, cuts, double, acked int
}

// subject is an act that was prepared: its image, its operations, and the states to come.
type subject struct {
	act
	call   invocation
	image  *powercut.Tree
	before view
	ops    []powercut.Op
	queue  []crash
	// normal are the rules that doctor names after the act without any fault: what
	// it leaves to a role that does not run.
	normal map[string]bool
}

// prepare makes the image of an act and counts its operations once without a fault.
func (b *bench) prepare(a act, seed uint64) *subject {
	b.t.Helper()
	b.insert(b.fresh)
	s := &subject{act: a}
	if s.whole == 0 {
		s.whole = 1
	}
	s.call = a.prepare(b)
	s.image = b.fs.Image()
	b.insert(s.image)
	s.before = b.view()
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
	s.queue = universe(a.name, o.ops, rand.New(rand.NewPCG(seed, name.Sum64())))
	return s
}

// TestSweepOfTheRealBinary runs every durable operation of the real binary on a
// disk that fails and loses its power. CHIPSET_STATES bounds how many states
// are tried, drawn evenly over all operations; CHIPSET_SEED chooses others;
// CHIPSET_STATE plays one again.
func TestSweepOfTheRealBinary(t *testing.T) {
	b := newBench(t, "")
	b.sweep(acts(), number(t, "CHIPSET_STATES", 150), fixedSeed(t))
}

// TestSweepOfTheShortCuts does the same to the ways of publishing that are taken
// on file systems known to keep the promise with fewer syncs.
func TestSweepOfTheShortCuts(t *testing.T) {
	b := newBench(t, "-X github.com/gastown-chipset/chipset/state/disk.assumed=unnamed,barrier,ordered,journal")
	b.fresh.AtomicRenames()
	b.sweep(mailActs(), number(t, "CHIPSET_STATES", 150)/3, fixedSeed(t))
}

// TestSweepOfWholeRigs does the same to whole rigs, from a bead on a hook to
// its commit on the target branch. A state takes seconds, so there are fewer.
func TestSweepOfWholeRigs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs whole rigs for several seconds")
	}
	b := newBench(t, "")
	b.sweep(rigActs(), 1+number(t, "CHIPSET_STATES", 150)/25, fixedSeed(t))
}

// fixedSeed is CHIPSET_SEED, or the same one always.
func fixedSeed(t *testing.T) uint64 { return uint64(number(t, "CHIPSET_SEED", 1)) }

func (b *bench) sweep(all []act, states int, seed uint64) {
	t := b.t
	if line := os.Getenv("CHIPSET_STATE"); line != "" {
		b.replay(all, line, seed)
		return
	}
	// With few states every act is prepared all the same: at least the cut behind
	// its acknowledgement is tried.
	subjects := make([]*subject, len(all))
	for i, a := range all {
		subjects[i] = b.prepare(a, seed)
	}
	var n tally
	possible := 0
	for _, s := range subjects {
		possible += len(s.queue)
	}
	for round := 0; n.states < states && round < possible; round++ {
		for _, s := range subjects {
			if round < len(s.queue) && n.states < states {
				b.check(s, s.queue[round], &n)
			}
		}
	}
	t.Logf("CHIPSET_SEED=%d: %d states of %d, %d acts: %d faults met, %d kills, %d power cuts, %d double faults, %d acknowledged",
		seed, n.states, possible, len(all), n.faults, n.kills, n.cuts, n.double, n.acked)
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
	b.check(b.prepare(all[i], seed), c, &tally{})
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
}

func (b *bench) check(s *subject, c crash, n *tally) {
	b.t.Helper()
	tr := &trial{bench: b, subject: s, crash: c, tally: n}
	tr.play()
	n.states++
	if tr.failed {
		b.t.Errorf("CHIPSET_STATE=%s\n\t%s", c, strings.Join(tr.story, "\n\t"))
	}
}

func (tr *trial) say(format string, args ...any) {
	tr.story = append(tr.story, fmt.Sprintf(format, args...))
}

func (tr *trial) fail(format string, args ...any) {
	tr.failed = true
	tr.say("FAILED "+format, args...)
}

// play is the life of one state: the act with its fault, the cut, the recovery.
func (tr *trial) play() {
	tr.insert(tr.image)
	o := tr.do("act", tr.call, tr.fault)
	tr.ack(o)
	tr.power("the act", tr.cutting)
	tr.look("after the cut")
	if tr.second != nil {
		tr.strike()
	}
	tr.heal()
}

// do runs one command and notes how it ended. One that failed says why.
func (tr *trial) do(what string, c invocation, f powercut.Fault) outcome {
	o := tr.run(c, f)
	if o.hit {
		tr.tally.faults++
		if f.Kind == powercut.KillBefore || f.Kind == powercut.KillAfter {
			tr.tally.kills++
		}
	}
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
	return o
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

// strike lets the recovery fail as well.
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
	o := tr.do("doctor", run("doctor", "--json"), powercut.Fault{})
	for _, f := range findings(tr.t, o) {
		if f.Severity != "info" && (tr.bare || !tr.normal[f.Rule]) && f.Rule != "quarantine" && f.Rule != "event-line" {
			tr.fail("doctor still finds %s: %s: %s", f.Severity, f.Path, f.Detail)
		}
	}
	if o.code != 0 {
		tr.fail("doctor: exit %d", o.code)
	}
	if tr.bare {
		return // doctor has taken it back
	}
	if n := tr.look("in the end"); n != tr.whole && !tr.hint {
		tr.fail("in the end: %d of %d there", n, tr.whole)
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
	if o := tr.do("doctor --fix", run("doctor", "--fix"), powercut.Fault{}); o.code != 0 {
		tr.fail("doctor --fix: exit %d", o.code)
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
