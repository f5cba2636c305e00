package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed equivalent.txt
var equivalentTable string

const (
	// required is the share of the systematic mutants that the tests must catch, unless it is said otherwise.
	required = 0.9
	// fewest is how many must have been tried before the share says something.
	fewest = 10
)

// guarded are the packages whose mistakes cost somebody their work, each with the
// packages whose tests judge what survives its own.
func guarded() map[string][]string {
	return map[string][]string{
		"state":                  {"mail", "hook", "nudge"},
		"state/agent":            {"chipset/history"},
		"state/audit":            {"chipset/history"},
		"state/convoy":           {"chipset/history"},
		"state/disk":             {"state"},
		"state/event":            nil,
		"state/bead":             {"chipset/history", "chipset/execute/carry"},
		"state/dispatch":         {"chipset/history"},
		"state/handoff":          {"chipset/history"},
		"state/incident":         {"chipset/history"},
		"state/mergequeue":       {"chipset/history", "chipset/execute/carry"},
		"state/need":             nil,
		"state/pause":            {"chipset/history"},
		"state/permission":       nil,
		"state/retire":           {"chipset/history"},
		"mail":                   {"chipset/actor"},
		"hook":                   {"chipset/history"},
		"nudge":                  nil,
		"roles":                  nil,
		"roles/backlog":          {"roles/mayor"},
		"roles/mayor":            nil,
		"roles/polecat":          nil,
		"roles/refinery":         nil,
		"roles/witness":          nil,
		"chipset/flow":           {"chipset/execute/carry", "chipset/execute"},
		"chipset/execute":        nil,
		"chipset/execute/carry":  {"chipset/execute"},
		"chipset/execute/policy": {"chipset/execute"},
		"chipset/git":            {"chipset/execute/carry", "chipset/execute"},
		"chipset/git/repair":     {"chipset/execute/carry", "chipset/execute"},
	}
}

// systematic chooses the mutants that the operators make.
type systematic struct {
	on    bool
	since string
	// with are packages whose tests judge besides those of guarded.
	with     []string
	required float64
}

// selection says which variants are tried, and how long.
type selection struct {
	match  string
	sample int
	seed   uint64
	jobs   int
	limit  time.Duration
	list   bool
}

// run judges the chosen variants, one package after the other, and reports whether enough of them are caught.
func (s *systematic) run(ctx context.Context, module string, out io.Writer, sel selection) (bool, error) {
	all, err := s.variants(ctx, module)
	if err != nil {
		return false, err
	}
	var limit *budget
	if sel.limit > 0 {
		limit = &budget{left: sel.limit}
		if sel.sample == 0 {
			sel.sample = len(all) // in no order, so that those that are reached are a sample, too
		}
	}
	chosen, err := choose(all, func(v variant) string { return v.name }, sel.match, sel.sample, sel.seed)
	if err != nil {
		return false, err
	}
	var order []string
	of := map[string][]variant{}
	for _, v := range chosen {
		dir := path.Dir(v.file)
		if of[dir] == nil {
			order = append(order, dir)
		}
		of[dir] = append(of[dir], v)
		if sel.list {
			say(out, "%s\tline %d\n", v.name, v.line)
		}
	}
	count := map[verdict]int{}
	for _, dir := range order {
		if sel.list || !limit.spend(0) {
			break
		}
		c := &court{module: module, pkg: dir, jobs: sel.jobs, out: out, budget: limit, variants: of[dir]}
		if err := c.session(ctx, slices.Concat(guarded()[dir], s.with), count); err != nil {
			return false, err
		}
	}
	return s.enough(out, count), ctx.Err()
}

// session judges the variants of a package, prints those that survived, and counts.
func (c *court) session(ctx context.Context, judges []string, count map[verdict]int) (err error) {
	if c.dir, err = os.MkdirTemp("", "chipset-mutants-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	begin := time.Now()
	if err := c.judge(ctx, judges); err != nil {
		return err
	}
	own, late, unheard := map[verdict]int{}, 0, 0
	for i, v := range c.variants {
		if c.late[i] {
			late++
		}
		own[c.verdict[i]]++
		count[c.verdict[i]]++
		if c.verdict[i] == survived {
			why := ""
			switch {
			case c.unheard[i]:
				unheard++
				why = "; there was no time for the tests of other packages"
			case !c.reached[i]:
				why = "; no test reaches it"
			}
			say(c.out, "%s  %s  (line %d%s)\n", survived, v.name, v.line, why)
		}
	}
	say(c.out, "%s: %d of %d caught (%d because the tests did not end; %d others were judged by the tests beside the package alone), in %s; %d others do not compile, %d were not tried\n",
		c.pkg, own[caught], own[caught]+own[survived], late, unheard, time.Since(begin).Round(time.Second), own[broken], own[""])
	return nil
}

func (s *systematic) variants(ctx context.Context, module string) ([]variant, error) {
	equivalent, err := parseEquivalent(equivalentTable)
	if err != nil {
		return nil, err
	}
	changed, err := s.changedLines(ctx, module)
	if err != nil {
		return nil, err
	}
	var all []variant
	for dir := range guarded() {
		files, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			file := path.Join(dir, filepath.Base(name))
			built, err := build.Default.MatchFile(filepath.Dir(name), filepath.Base(name))
			if err != nil {
				return nil, err
			}
			if !built || !product(file) {
				continue
			}
			found, err := generate(module, file)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	all = slices.DeleteFunc(all, func(v variant) bool {
		return equivalent[v.name] != "" || changed != nil && !changed[v.file][v.line]
	})
	slices.SortFunc(all, func(a, b variant) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// parseEquivalent reads the list of mutants that change nothing anybody can see: a
// name, a tab, and why.
func parseEquivalent(text string) (map[string]string, error) {
	list := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("equivalent.txt: %q has no reason", line)
		}
		list[name] = why
	}
	return list, nil
}

// changedLines are those of each file that changed since a revision, nil for all.
func (s *systematic) changedLines(ctx context.Context, module string) (map[string]map[int]bool, error) {
	if s.since == "" {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, "git", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--end-of-options", s.since, "--", "*.go")
	cmd.Dir = module
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("git diff %s: %w", s.since, err)
	}
	return parseDiff(string(out)), nil
}

// parseDiff reads the new line numbers of a unified diff without context.
func parseDiff(diff string) map[string]map[int]bool {
	hunk := regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
	lines := map[string]map[int]bool{}
	file := ""
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
			lines[file] = map[int]bool{}
		}
		m := hunk.FindStringSubmatch(line)
		if m == nil || file == "" {
			continue
		}
		from, _ := strconv.Atoi(m[1])
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		for i := range n {
			lines[file][from+i] = true
		}
	}
	return lines
}

// enough reports whether as many are caught as must be, of those that compile.
func (s *systematic) enough(out io.Writer, count map[verdict]int) bool {
	real := count[caught] + count[survived]
	if real == 0 {
		return true
	}
	share := float64(count[caught]) / float64(real)
	say(out, "%.1f%% of %d are caught; %.0f%% must be\n", 100*share, real, 100*s.required)
	return real < fewest || share >= s.required
}
