package statetest

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// defaultSeed makes every run of a random test the same one.
const defaultSeed = 1

// Seed is CHIPSET_SEED, or the same number each time. It is printed, so that a
// failure can be had again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := Number(t, seedName, defaultSeed)
	t.Logf("%s=%d", seedName, seed)
	return uint64(seed)
}

const seedName = "CHIPSET_SEED"

// Number is a size of a test from the environment, otherwise where it says nothing.
func Number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is not a number", name, text)
	}
	return n
}

// Drawn reports whether the nth case is tried: each where CHIPSET_FULL is set, otherwise one of few, of which CHIPSET_SEED says which.
func Drawn(t testing.TB, n, few int) bool {
	t.Helper()
	return os.Getenv("CHIPSET_FULL") != "" || (n+Number(t, seedName, defaultSeed))%few == 0
}

// Check is rapid.Check with that seed. checks is how many sequences are tried
// unless -rapid.checks says otherwise.
func Check(t *testing.T, checks int, property func(*rapid.T)) {
	t.Helper()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.seed": strconv.FormatUint(Seed(t), 10), "rapid.checks": strconv.Itoa(checks), "rapid.nofailfile": "true"} {
		if given[name] {
			continue
		}
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set(name, old) }()
	}
	rapid.Check(t, property)
}
