package chipsettest_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// listedAct is a row of the list in docs/SECURITY.md.
type listedAct struct{ by, name, happens string }

// listedActs are all acts of the siege.
func listedActs() []listedAct {
	var all []listedAct
	for _, a := range slices.Concat(gitActs(), treeActs(), fileActs(), limitActs()) {
		happens := "its bead lands, and nothing else happens"
		if a.persons {
			happens += " (without a sandbox)"
		}
		switch {
		case a.waits:
			happens = "waits for your approval"
		case a.refused != "":
			happens = "refused: “" + a.refused + "”"
		case a.told != "":
			happens = "you are told: “" + a.told + "”"
		}
		if a.stopped {
			happens += "; in a sandbox the worker can't do it"
		}
		all = append(all, listedAct{"a worker's files and git", a.name, happens})
	}
	for _, name := range promptActs() {
		all = append(all, listedAct{"a worker's words", name, "reaches the next model escaped"})
	}
	for _, a := range speechActs() {
		happens := "refused"
		if !a.fails {
			happens = "goes out under its own name, as data"
		}
		all = append(all, listedAct{"a worker's commands", a.name, happens})
	}
	for _, a := range boxActs() {
		happens := "refused in the sandbox, possible without one"
		if !a.fails {
			happens = "**not held**: it can, where your user can"
		}
		all = append(all, listedAct{"a worker in the sandbox", a.name, happens})
	}
	for _, a := range networkActs() {
		happens := "refused where the command has its own network"
		if !a.fails {
			happens = "it can"
		}
		all = append(all, listedAct{"a worker with network.allow", a.name, happens})
	}
	for _, a := range repositoryActs() {
		all = append(all, listedAct{"a repository", a.name, "an error, soon; nothing runs"})
	}
	for _, name := range slices.Sorted(maps.Keys(cloneActs())) {
		all = append(all, listedAct{"a repository", name, "an error: the rig is not trusted"})
	}
	for _, a := range pageActs() {
		all = append(all, listedAct{"a page, a program", a.name, fmt.Sprintf("HTTP %d", a.want)})
	}
	for _, name := range modeActs() {
		all = append(all, listedAct{"another user", otherUser(name), "permission denied: folders are 0700"})
	}
	return all
}

// The list in docs/SECURITY.md is that of the acts. CHIPSET_UPDATE=1 writes it.
func TestSiegeIsListed(t *testing.T) {
	const page, begin, end = "../../docs/SECURITY.md", "<!-- acts -->\n", "<!-- end of acts -->\n"
	var rows []string // by whom and what happens
	acts, seen := map[string][]string{}, map[string]bool{}
	for _, a := range listedActs() {
		if seen[a.name] {
			t.Errorf("two acts are called %q", a.name)
		}
		seen[a.name] = true
		row := a.by + " | " + a.happens
		if acts[row] == nil {
			rows = append(rows, row)
		}
		acts[row] = append(acts[row], a.name)
	}
	var list strings.Builder
	list.WriteString("\n| by | what happens | acts |\n| --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&list, "| %s | %s |\n", row, strings.Join(acts[row], "; "))
	}
	list.WriteString("\n")
	if len(seen) < 100 {
		t.Errorf("%d acts: a siege has at least 100", len(seen))
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the list", page)
	}
	want := before + begin + list.String() + end + after
	if want == string(data) {
		return
	}
	if os.Getenv("CHIPSET_UPDATE") == "" {
		t.Fatalf("%s does not list the acts as they are; CHIPSET_UPDATE=1 writes the list:\n%s", page, list.String())
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
