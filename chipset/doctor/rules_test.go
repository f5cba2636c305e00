package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/environment"
)

var update = flag.Bool("update", false, "write the table of docs/doctor.md again")

// Every rule that the code can name is in the table, and the other way round.
func TestEveryRuleIsListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	named := map[string]bool{ruleUnreadable: true, ruleSpecial: true, ruleCanonical: true, "event-line": true,
		environment.ReadOnly: true, environment.DiskLow: true, environment.Diverged: true}
	pattern := regexp.MustCompile(`(?:\badd(?:Settled)?\(|Rule: |rule, p = )"([a-z-]+)"`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		must(t, err)
		for _, m := range pattern.FindAllSubmatch(data, -1) {
			named[string(m[1])] = true
		}
	}
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] {
			t.Errorf("%s is listed twice", r.ID)
		}
		seen[r.ID] = true
		if !named[r.ID] {
			t.Errorf("%s is listed, and nothing checks it", r.ID)
		}
		if r.Area == "" || r.Meaning == "" || r.Repair == "" || r.Severity.rank() < 0 {
			t.Errorf("not whole: %+v", r)
		}
	}
	for id := range named {
		if !seen[id] {
			t.Errorf("%s is checked, and not listed", id)
		}
	}
}

// TestRulesPage holds docs/doctor.md to the rules.
// go test ./chipset/doctor -run TestRulesPage -update writes it.
func TestRulesPage(t *testing.T) {
	const begin, end = "<!-- rules: written by TestRulesPage -->\n", "<!-- end of the rules -->\n"
	path := filepath.Join("..", "..", "docs", "doctor.md")
	data, err := os.ReadFile(path)
	must(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, okToo := strings.Cut(rest, end)
	if !ok || !okToo {
		t.Fatalf("%s has no place for the rules", path)
	}
	want := before + begin + rulesPage() + end + after
	if *update {
		must(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("%s is stale; run go test ./chipset/doctor -run TestRulesPage -update (-want +got):\n%s", path, diff)
	}
}

func rulesPage() string {
	var out strings.Builder
	var areas []string
	for _, r := range Rules() {
		if !slices.Contains(areas, r.Area) {
			areas = append(areas, r.Area)
		}
	}
	for _, area := range areas {
		fmt.Fprintf(&out, "\n### %s\n\n| rule | at worst | what must be true | `--fix` |\n| --- | --- | --- | --- |\n", strings.ToUpper(area[:1])+area[1:])
		for _, r := range Rules() {
			if r.Area == area {
				fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", r.ID, r.Severity, r.Meaning, r.Repair)
			}
		}
	}
	out.WriteString("\n")
	return out.String()
}
