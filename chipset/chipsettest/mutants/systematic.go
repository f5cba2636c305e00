package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
// packages whose tests judge it besides its own.
func guarded() map[string][]string {
	return map[string][]string{
		"state":                 {"./mail", "./hook", "./nudge"},
		"state/agent":           nil,
		"state/bead":            {"./chipset/flow"},
		"state/dispatch":        nil,
		"state/handoff":         nil,
		"state/incident":        nil,
		"state/mergequeue":      {"./chipset/flow"},
		"state/need":            nil,
		"state/pause":           nil,
		"state/permission":      nil,
		"state/retire":          nil,
		"mail":                  nil,
		"hook":                  {"./chipset/history"},
		"nudge":                 nil,
		"roles":                 nil,
		"roles/mayor":           nil,
		"roles/polecat":         nil,
		"roles/refinery":        nil,
		"roles/witness":         nil,
		"chipset/flow":          {"./chipset/execute/..."},
		"chipset/execute":       nil,
		"chipset/execute/carry": {"./chipset/execute"},
		"chipset/git":           {"./chipset/execute/..."},
		"chipset/git/repair":    {"./chipset/execute/..."},
	}
}

// systematic chooses the mutants that the operators make.
type systematic struct {
	on       bool
	since    string
	required float64
}

func (s *systematic) mutants(ctx context.Context, module string) ([]mutant, error) {
	equivalent, err := parseEquivalent(equivalentTable)
	if err != nil {
		return nil, err
	}
	changed, err := s.changedLines(ctx, module)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for dir, judges := range guarded() {
		files, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			file := path.Join(dir, filepath.Base(name))
			if !product(file) {
				continue
			}
			found, err := generate(module, file, append([]string{"./" + dir}, judges...))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	all = slices.DeleteFunc(all, func(m mutant) bool {
		return equivalent[m.name] != "" || changed != nil && !changed[m.file][m.line]
	})
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(a.name, b.name) })
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
