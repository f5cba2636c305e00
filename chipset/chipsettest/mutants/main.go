package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	if os.Getenv("CHIPSET_FULL") == "" {
		_ = os.Setenv("CHIPSET_FULL", "git") // no mutant passes because its fault was not drawn
	}
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run tries the chosen mutants and reports whether each was caught.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	match := flags.String("run", "", "only the mutants whose name matches this `regexp`")
	sample := flags.Int("sample", 0, "only `N` of them, drawn by the seed; 0 is all")
	seed := flags.Uint64("seed", 1, "what the sample is drawn with")
	jobs := flags.Int("j", 2, "how many run side by side")
	list := flags.Bool("list", false, "only list them")
	limit := flags.Duration("time", 0, "begin no other after this `duration`, and judge those that were begun; 0 is until all are tried")
	var s systematic
	flags.BoolVar(&s.on, "systematic", false, "every mutant that the operators make of the packages, instead of those of mutants.txt")
	flags.Float64Var(&s.required, "atleast", required, "of these, the `share` that must be caught; of fewer than 10, none must")
	with := flags.String("with", "", "of these, what survives is tried with the tests of these `packages` as well: \"chipset/doctor,chipset/chipsettest:Demo|Land\"")
	flags.StringVar(&s.since, "since", "", "of these, only the ones in lines that changed since this git `revision`")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	module, err := moduleDir(ctx)
	if err != nil {
		return false, err
	}
	if s.on {
		s.with = strings.FieldsFunc(*with, func(r rune) bool { return r == ',' })
		return s.run(ctx, module, out, selection{match: *match, sample: *sample, seed: *seed, jobs: max(1, *jobs), limit: *limit, list: *list})
	}
	all, err := parse(table)
	if err != nil {
		return false, err
	}
	if *limit > 0 && *sample == 0 {
		*sample = len(all) // in no order, so that those that are reached are a sample, too
	}
	chosen, err := choose(all, func(m mutant) string { return m.name }, *match, *sample, *seed)
	if err != nil {
		return false, err
	}
	if *list {
		for _, m := range chosen {
			say(out, "%-44s  %s\n", m.name, m.why)
		}
		return true, nil
	}
	bench := &bench{module: module, out: out}
	if bench.dir, err = os.MkdirTemp("", "chipset-mutants-"); err != nil {
		return false, err
	}
	defer os.RemoveAll(bench.dir)
	begin := time.Now()
	over := func() bool { return ctx.Err() != nil || *limit > 0 && time.Since(begin) > *limit }
	bench.all(ctx, chosen, max(1, *jobs), over)
	tried := 0
	for _, n := range bench.count {
		tried += n
	}
	say(out, "%d of %d mutants in %s (sample %d, seed %d): %d caught, %d survived, %d broken, %d skipped\n", tried, len(chosen),
		time.Since(begin).Round(time.Second), *sample, *seed, bench.count[caught], bench.count[survived], bench.count[broken], bench.count[skipped])
	return bench.count[caught] == len(chosen), ctx.Err()
}

// choose takes those whose name matches, or a sample of them in no order.
func choose[T any](all []T, nameOf func(T) string, match string, sample int, seed uint64) ([]T, error) {
	name, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m T) bool { return !name.MatchString(nameOf(m)) })
	if len(all) == 0 && match != "" {
		return nil, errors.New("no mutant has such a name")
	}
	if sample > 0 {
		rnd := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // chance is no secret here
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:min(sample, len(all))]
	}
	return all, nil
}

func moduleDir(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(mod))), nil
}

// verdict is what became of a mutant.
type verdict string

const (
	caught   verdict = "caught"
	survived verdict = "SURVIVED"
	broken   verdict = "BROKEN" // it does not apply, does not compile, or no test ran
	skipped  verdict = "SKIPPED"
)

// bench is where mutants are tried.
type bench struct {
	module, dir string

	mu    sync.Mutex
	out   io.Writer
	count map[verdict]int
}

// all tries the mutants one after the other, until over says that it is enough.
func (b *bench) all(ctx context.Context, chosen []mutant, jobs int, over func() bool) {
	b.count = map[verdict]int{}
	queue := make(chan int)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for i := range queue {
				b.one(ctx, i, &chosen[i])
			}
		})
	}
	for i := range chosen {
		if over() {
			break
		}
		queue <- i
	}
	close(queue)
	workers.Wait()
}

func (b *bench) one(ctx context.Context, i int, m *mutant) {
	begin := time.Now()
	result, told := b.try(ctx, i, m)
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[result]++
	say(b.out, "%-8s %5.1fs  %-44s  %s\n", result, time.Since(begin).Seconds(), m.name, m.why)
	if result != caught {
		say(b.out, "    %s\n", strings.ReplaceAll(strings.TrimSpace(told), "\n", "\n    "))
	}
}

// try runs the tests of a mutant.
func (b *bench) try(ctx context.Context, i int, m *mutant) (verdict, string) {
	data, err := m.apply(b.module)
	if err != nil {
		return broken, err.Error()
	}
	overlay, err := b.overlay(i, m, data)
	if err != nil {
		return broken, err.Error()
	}
	return b.test(ctx, m, overlay)
}

// test runs tests with an overlay.
func (b *bench) test(ctx context.Context, m *mutant, overlay string) (verdict, string) {
	// Without the tables of a debugger the linker is done in half the time.
	args := append([]string{"test", "-count=1", "-vet=off", "-v", "-failfast", "-timeout=180s", "-ldflags=-s -w"}, m.test...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.module
	cmd.Env = append(append(os.Environ(), m.env...), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	output, err := cmd.CombinedOutput()
	if len(output) == 0 && err != nil {
		return broken, err.Error()
	}
	return judge(output, err != nil), tail(output)
}

// overlay writes the changed file and the list that puts it in the place of
// the one in the module.
func (b *bench) overlay(i int, m *mutant, data []byte) (string, error) {
	at := filepath.Join(b.dir, fmt.Sprint(i))
	if err := os.WriteFile(at+".go", data, 0o600); err != nil {
		return "", err
	}
	original := filepath.Join(b.module, filepath.FromSlash(m.file))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: at + ".go"}})
	if err != nil {
		return "", err
	}
	return at + ".json", os.WriteFile(at+".json", list, 0o600)
}

// say prints; who can't read it any more misses nothing else.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// judge reads what go test printed.
func judge(output []byte, failed bool) verdict {
	text := string(output)
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case has("[build failed]"), has("[setup failed]"), has("no tests to run"):
		return broken
	case failed:
		return caught
	case has("--- SKIP") && !has("--- PASS"):
		return skipped
	}
	return survived
}

// tail is the end of an output, for a person.
func tail(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
