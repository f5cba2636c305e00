package history

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestRandomHistories: what the stores do is legal however many steps lie between two
// snapshots, and each single illegal edit is found, at its file and nowhere else.
func TestRandomHistories(t *testing.T) {
	y := newYard(t)
	steps := 0
	found := map[string]int{}
	before := y.tree()
	y.land() // hardly any bead gets that far by chance
	// The rest is drawn, and goes on until every edit had something to fit.
	for round := 0; round < 60 || len(found) < len(edits()) && round < 300; round++ {
		for range 1 + y.rnd.IntN(12) {
			y.act()
			steps++
		}
		after := y.tree()
		if wrong := judge(t, before, after); len(wrong) > 0 {
			t.Fatalf("a legal history: %v", wrong)
		}
		for name, edit := range edits() {
			p, edited := y.edit(after, edit)
			if edited == nil {
				continue
			}
			if wrong := judge(t, after, edited); len(wrong) != 1 || wrong[0].Path != p {
				t.Errorf("%s of %s: found %v\n%s\n%s", name, p, wrong, after[p], edited[p])
			}
			found[name]++
		}
		before = after
	}
	for name := range edits() {
		if found[name] == 0 {
			t.Errorf("%s: never tried", name)
		}
	}
	t.Logf("%d legal steps, edits found: %v", steps, found)
}

// edit tries an edit on the files in random order until it fits one.
func (y *yard) edit(now tree, edit func(y *yard, now tree, p string) tree) (string, tree) {
	paths := slices.Sorted(maps.Keys(now))
	y.rnd.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, p := range paths {
		if edited := edit(y, now, p); edited != nil {
			return p, edited
		}
	}
	return "", nil
}

// edits are single illegal changes; each returns nil for a file that it does not fit.
func edits() map[string]func(y *yard, now tree, p string) tree {
	replace := func(pattern, old, new string) func(*yard, tree, string) tree {
		return func(_ *yard, now tree, p string) tree {
			if ok, _ := path.Match(pattern, p); !ok || !strings.Contains(now[p], old) {
				return nil
			}
			return now.with(p, strings.Replace(now[p], old, new, 1))
		}
	}
	vanish := func(patterns ...string) func(*yard, tree, string) tree {
		return func(_ *yard, now tree, p string) tree {
			for _, pattern := range patterns {
				if ok, _ := path.Match(pattern, p); ok {
					return now.without(p)
				}
			}
			return nil
		}
	}
	const inboxes, archives = "mail/*/*.json", "mail/*/archive/*.json"
	return map[string]func(*yard, tree, string) tree{
		"message body":          replace(inboxes, `"body": "`, `"body": "x`),
		"archived body":         replace(archives, `"body": "`, `"body": "x`),
		"message unread again":  replace(inboxes, `"read": true`, `"read": false`),
		"archived unread again": replace(archives, `"read": true`, `"read": false`),
		"message priority":      replace(inboxes, `"priority": "normal"`, `"priority": "urgent"`),
		"message gone":          vanish(inboxes),
		"archived message gone": vanish(archives),
		"hook gone":             vanish("hooks/*.json"),
		"bead gone":             vanish("work/*.json"),
		"nudge gone":            vanish("nudge/*/from/*.json"),
		"events gone":           vanish("events/*.jsonl"),
		"agent gone":            vanish("agents/*.json"),
		"rig gone":              vanish("rig.json"),
		"bead title":            replace("work/*.json", `"title": "`, `"title": "x`),
		"bead reopened":         replace("work/*.json", `"status": "merged"`, `"status": "open"`),
		"bead merged":           replace("work/*.json", `"status": "open"`, `"status": "merged"`),
		"bead born earlier":     replace("work/*.json", `"created_at": "2026`, `"created_at": "2025`),
		"hook activated":        replace("hooks/*.json", `"status": "pending"`, `"status": "active"`),
		"hook active again":     replace("hooks/*.json", `"status": "completed"`, `"status": "active"`),
		"hook of another bead":  replace("hooks/*.json", `"bead_id": "gt-abc12"`, `"bead_id": "gt-abc13"`),
		"nudge set back":        replace("nudge/*/from/*.json", `"timestamp": "2026`, `"timestamp": "2025`),
		"nudge changed":         replace("nudge/*/from/*.json", `"health_check"`, `"abort"`),
		"event changed":         replace("events/*.jsonl", `"type":"`, `"type":"x`),
		"gen fell":              changeGen("hooks/*.json", -1),
		"gen of a bead fell":    changeGen("work/*.json", -1),
		"torn message":          tear(inboxes),
		"torn bead":             tear("work/*.json"),
		"log cut":               tear("events/*.jsonl"),
		"moved out of the archive": func(_ *yard, now tree, p string) tree {
			if ok, _ := path.Match(archives, p); !ok {
				return nil
			}
			return now.without(p).with(path.Join(path.Dir(path.Dir(p)), path.Base(p)), now[p])
		},
	}
}

func changeGen(pattern string, by int) func(*yard, tree, string) tree {
	gen := regexp.MustCompile(`"gen": ([1-9]\d*)`)
	return func(_ *yard, now tree, p string) tree {
		m := gen.FindStringSubmatch(now[p])
		if ok, _ := path.Match(pattern, p); !ok || m == nil {
			return nil
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil
		}
		return now.with(p, strings.Replace(now[p], m[0], `"gen": `+strconv.Itoa(n+by), 1))
	}
}

func tear(pattern string) func(*yard, tree, string) tree {
	return func(y *yard, now tree, p string) tree {
		if ok, _ := path.Match(pattern, p); !ok || len(now[p]) < 2 {
			return nil
		}
		return now.with(p, now[p][:1+y.rnd.IntN(len(now[p])-2)])
	}
}
