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
	seed := uint64(defaultSeed)
	if text := os.Getenv("CHIPSET_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("CHIPSET_SEED=%s is not a number", text)
		}
		seed = n
	}
	t.Logf("CHIPSET_SEED=%d", seed)
	return seed
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
