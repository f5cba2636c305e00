package doctor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest"
)

// asked is how large the tests are to be. It is read before the tests are isolated
// from the environment.
var asked = map[string]string{
	"CHIPSET_SEED":         os.Getenv("CHIPSET_SEED"),
	"CHIPSET_DAMAGES":      os.Getenv("CHIPSET_DAMAGES"),
	"CHIPSET_COMBINATIONS": os.Getenv("CHIPSET_COMBINATIONS"),
}

// number is a size of the test from the environment, or its default.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if n, err := strconv.Atoi(asked[name]); err == nil {
		return n
	}
	return otherwise
}

// random is seeded by CHIPSET_SEED; the same seed draws the same damages.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(number(t, "CHIPSET_SEED", 1))
	t.Logf("CHIPSET_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// drawn are the damages of this run: of those that are no tear of one file each second, all with CHIPSET_FULL, and of the
// tears as many as CHIPSET_DAMAGES says.
func drawn(t *testing.T) []damage {
	all := allDamages()
	n := number(t, "CHIPSET_DAMAGES", 12)
	tears := all[len(single):]
	random(t).Shuffle(len(tears), func(i, j int) { tears[i], tears[j] = tears[j], tears[i] })
	var some []damage
	for i, d := range single {
		if statetest.Drawn(t, i, 2) {
			some = append(some, d)
		}
	}
	return append(some, tears[:min(n, len(tears))]...)
}

func TestMidflightIsInOrder(t *testing.T) {
	f := midflight(t)
	if found := f.doctor(false); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	for _, who := range allWorkers {
		if !f.keepsWork(who) {
			t.Errorf("the work of %s is not there to begin with", who)
		}
	}
}

// Every damage is named by its rule, and is healed or described; nothing that was
// acknowledged is lost; a second --fix finds nothing to do.
func TestDamages(t *testing.T) {
	damages := drawn(t)
	t.Logf("%d damages of %d", len(damages), len(allDamages()))
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			f := midflight(t)
			d.spoil(f)
			f.reopen()
			before := f.files()
			found := f.doctor(false)
			for rule := range strings.FieldsSeq(d.named) {
				if !slices.ContainsFunc(found, func(s Finding) bool { return s.Rule == rule }) {
					t.Errorf("%s is not named\n%s", rule, told(found))
				}
			}
			isDescribed(t, found)
			fixed := f.doctor(true)
			f.checkHealed(before, d.stays)
			if t.Failed() {
				t.Logf("repaired:\n%s", told(fixed))
			}
		})
	}
}

// isDescribed wants every finding to say what, where, why and what is done about it.
func isDescribed(t testing.TB, found []Finding) {
	t.Helper()
	for _, s := range found {
		rule, listed := ruleOf(s.Rule)
		if !listed || s.Path == "" || s.Detail == "" || s.Repair == "" || s.Severity.rank() > rule.Severity.rank() {
			t.Errorf("not described: %+v (rule %+v)", s, rule)
		}
		if s.Fixed && strings.HasPrefix(rule.Repair, byHand) {
			t.Errorf("repaired, though %s is for a person: %+v", s.Rule, s)
		}
	}
}

// checkHealed wants nothing to be lost, and nothing to stand but what may stay.
func (f *fixture) checkHealed(before files, stays string) {
	f.T.Helper()
	f.reopen()
	found := f.doctor(true)
	isDescribed(f.T, found)
	may := append(strings.Fields(stays), "quarantine")
	for _, s := range found {
		if s.Fixed {
			f.T.Errorf("a second --fix still repairs: %s %s: %s", s.Rule, s.Path, s.Detail)
		}
		if !slices.Contains(may, s.Rule) {
			f.T.Errorf("still there: %s %s: %s (%s)", s.Rule, s.Path, s.Detail, s.Hint)
		}
	}
	if gone := f.lost(before); len(gone) > 0 {
		f.T.Errorf("lost: %v", gone)
	}
	for _, who := range allWorkers {
		if !f.keepsWork(who) {
			f.T.Errorf("the uncommitted work of %s is gone", who)
		}
	}
}

func told(found []Finding) string {
	var out strings.Builder
	for _, s := range found {
		fmt.Fprintf(&out, "  %s %s %v: %s (%s)\n", s.Rule, s.Path, s.Fixed, s.Detail, s.Hint)
	}
	return out.String()
}
