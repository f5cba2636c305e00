package chipsettest_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

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

// take is what one run of an act is good for: the fault that it meets, and the power cuts that may come then.
type take struct {
	fault  powercut.Fault
	cuts   []cutting
	second *second // with one cut alone
}

// crash is the state of one of the cuts.
func (p take) crash(name string, c cutting) crash {
	return crash{act: name, cutting: c, fault: p.fault, second: p.second}
}

// manyCuts are drawn of the moments of a recording, where they cost nothing; fewCuts of every other run.
const (
	manyCuts = 8
	fewCuts  = 4
)

// universe lists every fault at every operation, with the cuts after it, in the order in which a sweep takes them:
// first no fault at all and the cuts right behind the last acknowledgement, then the rest at random.
func universe(ops []powercut.Op, rnd *rand.Rand) []take {
	var all []take
	for _, op := range ops {
		for _, kind := range powercut.Kinds() {
			if !kind.Applies(op.Class) {
				continue
			}
			p := take{fault: powercut.Fault{Kind: kind, At: op.N}, cuts: cuts(fewCuts, rnd)}
			if recorded(p.fault) {
				p.cuts = cuts(manyCuts, rnd)
			}
			all = append(all, p)
			// And one of them with a second fault, in the recovery.
			kinds := powercut.Kinds()
			p.cuts = p.cuts[:1]
			p.second = &second{again: rnd.IntN(2) == 0, mode: powercut.Mode(rnd.IntN(4)),
				fault: powercut.Fault{Kind: kinds[rnd.IntN(len(kinds))], At: 1 + rnd.IntN(len(ops))}}
			all = append(all, p)
		}
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return append([]take{{cuts: cuts(manyCuts, rnd)}}, all...)
}

// cuts draws n of them: everything lost, everything kept, and parts of it. The first is any of them.
func cuts(n int, rnd *rand.Rand) []cutting {
	all := make([]cutting, n)
	for i := range all {
		all[i] = cutting{mode: powercut.Mode(i), seed: rnd.Uint64N(1e6)}
		if i > int(powercut.Scatter) {
			all[i].mode = []powercut.Mode{powercut.Ordered, powercut.Scatter}[rnd.IntN(2)]
		}
	}
	rnd.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// recorded reports whether the moment of a fault can be seen in a run without any.
func recorded(f powercut.Fault) bool {
	return f.Kind == powercut.None || f.Kind == powercut.KillBefore || f.Kind == powercut.KillAfter
}
