package doctor

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

// spoilMany does some damages at once, and returns their names.
func (f *fixture) spoilMany(rnd *rand.Rand) []string {
	f.T.Helper()
	all := allDamages()
	var names []string
	for n := 3 + rnd.IntN(23); len(names) < n; {
		d := all[rnd.IntN(len(all))]
		if rnd.IntN(2) == 0 {
			d = single[rnd.IntN(len(single))]
		}
		if f.try(d.spoil) {
			names = append(names, d.name)
		}
	}
	return names
}

// checkSettled wants the tree to be described, and nothing to be lost.
func (f *fixture) checkSettled(before files) {
	f.T.Helper()
	f.reopen()
	found, err := examine(f.T.Context(), f.Rig, true, 0)
	if err != nil {
		f.T.Logf("the doctor was kept from looking: %v", err)
	}
	isDescribed(f.T, found)
	for _, s := range found {
		if s.Fixed {
			f.T.Errorf("--fix still repairs: %s %s: %s", s.Rule, s.Path, s.Detail)
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

// Many damages at once are healed or described as well, and lose nothing.
func TestDamagesTogether(t *testing.T) {
	t.Parallel()
	eachCombination(t, number(t, "CHIPSET_COMBINATIONS", 6), func(t *testing.T, rnd *rand.Rand) {
		f := midflight(t)
		names := f.spoilMany(rnd)
		f.reopen()
		before := f.files()
		_, err := examine(t.Context(), f.Rig, true, 0)
		if err != nil {
			t.Logf("the doctor was kept from looking: %v", err)
		}
		f.checkSettled(before)
		if t.Failed() {
			t.Log(strings.Join(names, "; "))
		}
	})
}

// eachCombination runs a test n times, each with random numbers of its own.
func eachCombination(t *testing.T, n int, test func(t *testing.T, rnd *rand.Rand)) {
	seed := uint64(number(t, "CHIPSET_SEED", 1))
	t.Logf("CHIPSET_SEED=%d", seed)
	for i := range n {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			test(t, rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
}

// A doctor that is killed at any moment is run again, and heals the rest.
func TestDoctorKilled(t *testing.T) {
	t.Parallel()
	bin := chipsettest.Build(t)
	eachCombination(t, number(t, "CHIPSET_COMBINATIONS", 6)/3+1, func(t *testing.T, rnd *rand.Rand) {
		f := midflight(t)
		names := f.spoilMany(rnd)
		before := f.files()
		kills := 0
		for range 4 {
			cmd := exec.Command(bin, "doctor", "--fix", "--dir", f.Dir)
			must(t, cmd.Start())
			// The moment of the kill is what is random here; nothing is waited for.
			timer := time.AfterFunc(time.Duration(rnd.IntN(500))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			var exit *exec.ExitError
			if errors.As(err, &exit) && !exit.Exited() {
				kills++
			}
		}
		out, err := exec.Command(bin, "doctor", "--fix", "--dir", f.Dir).CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		f.Now = time.Now()
		f.checkSettled(before)
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(names, "; "), out)
		}
		t.Logf("%d kills", kills)
	})
}
