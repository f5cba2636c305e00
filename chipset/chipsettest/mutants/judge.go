package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// court judges the variants of one package: they are compiled into one test binary, each behind a
// switch. Every test is run once by itself, to see which switches it reaches; then each variant is
// tried with the tests that reach it, quick ones first.
type court struct {
	module, dir string // dir holds what is built
	pkg         string // the package, relative to the module
	jobs        int
	out         io.Writer
	budget      *budget

	variants []variant
	verdict  []verdict // of each; "" while nothing has caught it
	reached  []bool    // by any test
	unheard  []bool    // it survived the package's own tests, and there was no time for those of others
	late     []bool    // its tests did not end in time, which catches it as well
}

// budget is the time that trying variants may take, or nil for any. Compiling and looking what
// tests reach is not counted.
type budget struct {
	mu   sync.Mutex
	left time.Duration
}

// spend reports whether anything is left.
func (b *budget) spend(d time.Duration) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= d
	return b.left > 0
}

// switches is the file that the package gets beside its own.
const switches = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantNumber, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantTrace     = os.Getenv("MUTANT_TRACE")
	mutantSeen      [%d]atomic.Bool
)

func mutantOn(n int) bool {
	if mutantTrace != "" && !mutantSeen[n].Swap(true) {
		f, err := os.OpenFile(mutantTrace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = f.WriteString(strconv.Itoa(n) + "\n")
			_ = f.Close()
		}
	}
	return n == mutantNumber
}

func mutantError(n int, err error) error {
	if mutantOn(n) {
		return nil
	}
	return err
}
`

// overlay writes the package with all variants that are not broken, and the list that puts these
// files in the place of its own. Variants are numbered from 1.
func (c *court) overlay() (string, error) {
	replace := map[string]string{}
	files := map[string][]int{}
	for i, v := range c.variants {
		if c.verdict[i] != broken {
			files[v.file] = append(files[v.file], i)
		}
	}
	name := ""
	for file, indices := range files {
		slices.SortFunc(indices, func(a, b int) int { return cmp.Compare(c.variants[a].order, c.variants[b].order) })
		original := filepath.Join(c.module, filepath.FromSlash(file))
		source, err := os.ReadFile(original)
		if err != nil {
			return "", err
		}
		if m := regexp.MustCompile(`(?m)^package (\w+)`).FindSubmatch(source); m != nil {
			name = string(m[1])
		}
		var variants []variant
		var numbers []int
		for _, i := range indices {
			variants, numbers = append(variants, c.variants[i]), append(numbers, i+1)
		}
		replace[original] = filepath.Join(c.dir, path.Base(file))
		if err := os.WriteFile(replace[original], weave(source, variants, numbers), 0o600); err != nil {
			return "", err
		}
	}
	extra := filepath.Join(c.dir, "mutant_switches.go")
	replace[filepath.Join(c.module, filepath.FromSlash(c.pkg), "mutant_switches.go")] = extra
	if err := os.WriteFile(extra, fmt.Appendf(nil, switches, name, len(c.variants)+1), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	return filepath.Join(c.dir, "overlay.json"), os.WriteFile(filepath.Join(c.dir, "overlay.json"), list, 0o600)
}

// prepare compiles the package and marks the variants that are not Go as broken.
func (c *court) prepare(ctx context.Context) (overlay string, err error) {
	for {
		overlay, err = c.overlay()
		if err != nil {
			return "", err
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-gcflags=-e", "-overlay="+overlay, "./"+c.pkg)
		cmd.Dir = c.module
		output, err := cmd.CombinedOutput()
		if err == nil {
			return overlay, nil
		}
		if !c.dropBroken(output) {
			return "", fmt.Errorf("%s does not compile with its variants: %w\n%s", c.pkg, err, tail(output))
		}
	}
}

// dropBroken marks the variants that errors of the compiler are about: those in the line of an
// error, or in the last line before it that has any. It reports whether there are any.
func (c *court) dropBroken(output []byte) bool {
	number := regexp.MustCompile(`mutant(?:On|Error)\((\d+)`)
	dropped := false
	for _, m := range regexp.MustCompile(`([^\s/]+\.go):(\d+):\d+: `).FindAllSubmatch(output, -1) {
		text, err := os.ReadFile(filepath.Join(c.dir, string(m[1])))
		if err != nil {
			continue
		}
		lines := bytes.Split(text, []byte("\n"))
		at, _ := strconv.Atoi(string(m[2]))
		for at = min(at, len(lines)); at > 0; at-- {
			found := number.FindAllSubmatch(lines[at-1], -1)
			for _, f := range found {
				n, _ := strconv.Atoi(string(f[1]))
				dropped = dropped || c.verdict[n-1] != broken
				c.verdict[n-1] = broken
			}
			if len(found) > 0 {
				break
			}
		}
	}
	return dropped
}

// test is one test of a package, alone.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool // the numbers of variants
}

// suite is the compiled tests of a package.
type suite struct {
	*court
	binary, at string // at is where they run
	tests      string // a regexp of their names
	flags      string // GOFLAGS, for tests that build a program
}

// build compiles the tests of a judge: a package, or "package:regexp" for some of its tests.
func (c *court) build(ctx context.Context, overlay, judge string) (*suite, error) {
	pkg, tests, _ := strings.Cut(judge, ":")
	s := &suite{court: c, binary: filepath.Join(c.dir, strings.ReplaceAll(pkg, "/", "_")+".test"), at: filepath.Join(c.module, filepath.FromSlash(pkg)),
		tests: cmp.Or(tests, "^(Test|Fuzz|Example)"), flags: strings.TrimSpace(os.Getenv("GOFLAGS") + " -overlay=" + overlay)}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", s.binary, "./"+pkg)
	cmd.Dir = c.module
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test -c ./%s: %w\n%s", pkg, err, tail(output))
	}
	return s, nil
}

// run runs tests with a variable in their environment and reports whether they passed, and whether
// their time was up. Whatever is left then is killed.
func (s *suite) run(ctx context.Context, limit time.Duration, variable string, tests []string) (ok, late bool, err error) {
	temp, err := os.MkdirTemp("", "m")
	if err != nil {
		return false, false, err
	}
	defer os.RemoveAll(temp)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "-test.failfast", "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.Dir = s.at
	cmd.Env = append(os.Environ(), variable, "TMPDIR="+temp, "GOFLAGS="+s.flags)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return err == nil, err != nil && ctx.Err() != nil, nil
}

// observe runs each test alone. One that fails although nothing is weakened judges nothing.
func (s *suite) observe(ctx context.Context) ([]test, error) {
	if _, err := os.Stat(s.binary); errors.Is(err, os.ErrNotExist) {
		return nil, nil // a package without tests
	}
	cmd := exec.CommandContext(ctx, s.binary, "-test.list="+s.tests)
	cmd.Dir = s.at
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list of the tests: %w", err)
	}
	names := strings.Fields(string(output))
	all := make([]test, len(names))
	var failed error
	s.each(len(names), func(i int) bool {
		trace := filepath.Join(s.dir, "trace"+strconv.Itoa(i))
		begin := time.Now()
		ok, _, err := s.run(ctx, 10*time.Minute, "MUTANT_TRACE="+trace, names[i:i+1])
		if err != nil {
			failed = err
		}
		if !ok {
			say(s.out, "%s fails by itself and judges nothing\n", names[i])
			return ctx.Err() == nil
		}
		all[i] = test{name: names[i], took: time.Since(begin), reaches: map[int]bool{}}
		text, err := os.ReadFile(trace)
		_ = os.Remove(trace)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = err
		}
		for _, n := range strings.Fields(string(text)) {
			number, _ := strconv.Atoi(n)
			all[i].reaches[number] = true
		}
		return true
	})
	slices.SortFunc(all, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return all, failed
}

// each calls do for 0 to n-1, some side by side, until it returns false.
func (c *court) each(n int, do func(i int) bool) {
	var workers sync.WaitGroup
	queue := make(chan int)
	stop := make(chan struct{})
	var once sync.Once
	for range c.jobs {
		workers.Go(func() {
			for i := range queue {
				if !do(i) {
					once.Do(func() { close(stop) })
				}
			}
		})
	}
loop:
	for i := range n {
		select {
		case queue <- i:
		case <-stop:
			break loop
		}
	}
	close(queue)
	workers.Wait()
}

// hear tries the variants that nothing has caught yet with the tests of a package.
func (c *court) hear(ctx context.Context, s *suite, tests []test) error {
	var failed error
	heard := make([]bool, len(c.variants))
	c.each(len(c.variants), func(i int) bool {
		if !c.budget.spend(0) {
			return false
		}
		if c.verdict[i] == caught || c.verdict[i] == broken {
			return true
		}
		begin := time.Now()
		result := survived
		for _, group := range groups(tests, i+1) {
			c.reached[i] = true
			ok, late, err := s.run(ctx, group.limit, "MUTANT="+strconv.Itoa(i+1), group.names)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				failed = err
				return false
			}
			if c.late[i] = late; !ok {
				result = caught
				break
			}
		}
		c.verdict[i], heard[i] = result, true
		c.budget.spend(time.Since(begin))
		return true
	})
	for i, v := range c.verdict {
		c.unheard[i] = v == survived && !heard[i]
	}
	return failed
}

// group is tests that run in one process.
type group struct {
	names []string
	limit time.Duration
}

// groups are the tests that reach a variant: the quick ones together, then the others.
func groups(tests []test, number int) []group {
	const quick = time.Second
	var all []group
	var sum, took time.Duration
	for _, t := range tests {
		if !t.reaches[number] {
			continue
		}
		if sum += t.took; len(all) == 0 || len(all) == 1 && sum > quick && took > 0 {
			all, took = append(all, group{}), 0
		}
		g := &all[len(all)-1]
		g.names = append(g.names, t.name)
		took += t.took
		g.limit = 15*time.Second + 5*took
	}
	return all
}

// judge tries the variants with the tests of the package and, those that survive them, with those of
// the judges.
func (c *court) judge(ctx context.Context, judges []string) error {
	c.verdict, c.reached = make([]verdict, len(c.variants)), make([]bool, len(c.variants))
	c.late, c.unheard = make([]bool, len(c.variants)), make([]bool, len(c.variants))
	overlay, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	for _, pkg := range append([]string{c.pkg}, judges...) {
		if !slices.ContainsFunc(c.verdict, func(v verdict) bool { return v == "" || v == survived }) {
			break
		}
		if pkg != c.pkg && !c.budget.spend(0) {
			for i, v := range c.verdict {
				c.unheard[i] = v == survived
			}
			break
		}
		s, err := c.build(ctx, overlay, pkg)
		if err != nil {
			return err
		}
		tests, err := s.observe(ctx)
		if err != nil {
			return err
		}
		if err := c.hear(ctx, s, tests); err != nil {
			return err
		}
	}
	return ctx.Err()
}
