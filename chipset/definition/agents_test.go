package definition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func agentIDs(def *Definition) []string {
	var ids []string
	for _, agent := range def.Agents() {
		ids = append(ids, agent.ID)
	}
	return ids
}

// withEntries is a definition with the entries given after mayor and witness.
func withEntries(entries ...string) string {
	return "agents:\n  agents:\n    - {name: mayor, role: mayor}\n    - {name: witness, role: witness}\n    - {" +
		strings.Join(entries, "}\n    - {") + "}\n"
}

func TestExpansion(t *testing.T) {
	for _, test := range []struct {
		name    string
		entries []string
		want    string
	}{
		{"a single one keeps its name", []string{"name: polecat-alpha, role: polecat"}, "polecat-alpha refinery"},
		{"count 1 keeps its name", []string{"name: worker, role: polecat, count: 1"}, "worker refinery"},
		{"the pool of one", []string{"name: polecat-pool, role: polecat"}, "polecat-alpha refinery"},
		{"any name with a count", []string{"name: workers, role: polecat, count: 2"}, "polecat-alpha polecat-bravo refinery"},
		{"two pools", []string{"name: a, role: polecat, count: 2", "name: polecat-pool, role: polecat, count: 2"},
			"polecat-alpha polecat-bravo polecat-charlie polecat-delta refinery"},
		{"the same pool twice", []string{"name: polecat-pool, role: polecat", "name: polecat-pool, role: polecat"}, "polecat-alpha polecat-bravo refinery"},
		{"a name that is taken", []string{"name: polecat-pool, role: polecat, count: 2", "name: polecat-alpha, role: polecat"},
			"polecat-bravo polecat-charlie polecat-alpha refinery"},
		{"own refinery", []string{"name: mill, role: refinery", "name: p, role: polecat"}, "mill p"},
		{"crew", []string{"name: p, role: polecat", "name: ops, role: crew", "name: desk, role: crew, count: 2"}, "p ops desk-1 desk-2 refinery"},
	} {
		t.Run(test.name, func(t *testing.T) {
			def := mustParse(t, withEntries(test.entries...))
			if got := strings.Join(agentIDs(def), " "); got != "mayor witness "+test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestBeyondZulu(t *testing.T) {
	def := mustParse(t, withEntries("name: polecat-pool, role: polecat, count: 30"))
	polecats := def.AgentsOf(RolePolecat)
	if polecats[25].ID != "polecat-zulu" || polecats[26].ID != "polecat-27" || polecats[29].ID != "polecat-30" {
		t.Errorf("got %v", agentIDs(def))
	}
	if polecats[29].Line != 5 {
		t.Errorf("line %d, want 5", polecats[29].Line)
	}
}

func TestWithPolecats(t *testing.T) {
	def := mustParse(t, withEntries("name: polecat-bravo, role: polecat, skills: [one]", "name: ops, role: crew", "name: polecat-pool, role: polecat, count: 2, skills: [two]"))
	for n, want := range map[int]string{
		1: "polecat-bravo ops",
		2: "polecat-bravo ops polecat-alpha",
		3: "polecat-bravo ops polecat-alpha polecat-charlie",
		5: "polecat-bravo ops polecat-alpha polecat-charlie polecat-delta polecat-echo",
	} {
		changed, err := def.WithPolecats(n, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(agentIDs(changed), " "); got != "mayor witness "+want+" refinery" {
			t.Errorf("%d: got %s", n, got)
		}
		if last := changed.AgentsOf(RolePolecat)[n-1]; n == 5 && (len(last.Skills) != 1 || last.Skills[0] != "two") {
			t.Errorf("added polecat has the skills %v", last.Skills)
		}
	}
	if len(def.AgentsOf(RolePolecat)) != 3 {
		t.Error("WithPolecats changed its receiver")
	}
	for _, n := range []int{-1, 0, 31} {
		if _, err := def.WithPolecats(n, false); !errors.Is(err, ErrPolecatCount) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

func TestForceCount(t *testing.T) {
	text := withEntries("name: polecat-pool, role: polecat, count: 40") + "dispatch: {max_parallel: 40}\n"
	def, problems := ParseWith("f", []byte(text), Options{ForceCount: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := len(def.AgentsOf(RolePolecat)); got != 40 || def.Dispatch.MaxParallel != 40 {
		t.Errorf("%d polecats, %d parallel", got, def.Dispatch.MaxParallel)
	}
	if _, err := def.WithPolecats(100, true); err != nil {
		t.Error(err)
	}
	if _, err := def.WithPolecats(1001, true); !errors.Is(err, ErrPolecatCount) {
		t.Errorf("1001: %v", err)
	}
}

// TestAgentsAreUnique: whatever pools and names are mixed, an accepted definition
// has legal IDs, each of them once, and the number asked for.
func TestAgentsAreUnique(t *testing.T) {
	names := []string{"polecat-pool", "polecat-alpha", "polecat-bravo", "polecat-27", "worker", "ops", "ops-1"}
	rapid.Check(t, func(t *rapid.T) {
		var entries []string
		for range rapid.IntRange(1, 5).Draw(t, "entries") {
			entries = append(entries, fmt.Sprintf("name: %s, role: %s, count: %d", rapid.SampledFrom(names).Draw(t, "name"),
				rapid.SampledFrom([]string{"polecat", "crew"}).Draw(t, "role"), rapid.IntRange(1, 29).Draw(t, "count")))
		}
		def, problems := Parse("f", []byte(withEntries(entries...)))
		if def == nil {
			if problems.Err() == nil {
				t.Fatal("refused without an error")
			}
			return
		}
		n := rapid.IntRange(1, 30).Draw(t, "polecats")
		resized, err := def.WithPolecats(n, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(resized.AgentsOf(RolePolecat)); got != n {
			t.Fatalf("%d polecats, want %d", got, n)
		}
		for _, def := range []*Definition{def, resized} {
			ids := agentIDs(def)
			slices.Sort(ids)
			if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) {
				t.Fatalf("an ID comes twice: %v", ids)
			}
			for _, id := range ids {
				if !legalID(id) {
					t.Fatalf("agent %q", id)
				}
			}
		}
	})
}

func TestAgentsCannotChangeTheDefinition(t *testing.T) {
	def := mustParse(t, withEntries("name: polecat-pool, role: polecat, count: 2, skills: [one]"))
	def.AgentsOf(RolePolecat)[0].Skills[0] = "changed"
	if diff := cmp.Diff([]string{"one"}, def.AgentsOf(RolePolecat)[1].Skills); diff != "" {
		t.Error(diff)
	}
}
