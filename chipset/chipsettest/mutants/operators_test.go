package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sample = `package p

func (s *Store) put(n int) error {
	if n > 1 && s.open {
		s.count += n
	}
	lock := s.lock()
	defer lock.Unlock()
	if err := s.write(); err != nil {
		return err
	}
	if err := s.sync(); err != nil {
		return err
	}
	go func() {
		s.tell()
	}()
	return nil
}
`

// Each operator makes its mistake where it can be made, and the file still parses.
func TestOperators(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := generate(dir, "p.go", []string{"./p"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{ // what is changed → what stands there instead
		"p.go: Store.put: negate: n > 1 && s.open":           "if !(n > 1 && s.open) {",
		"p.go: Store.put: logic: &&":                         "if n > 1 || s.open {",
		"p.go: Store.put: boundary: >":                       "if n >= 1 && s.open {",
		"p.go: Store.put: remove: s.count += n":              "\t\t_ = n\n",
		"p.go: Store.put: unlock-early: defer lock.Unlock()": "\n\tlock.Unlock()\n",
		"p.go: Store.put: ignore-error: err != nil":          "s.write(); err != nil && false {",
		"p.go: Store.put: ignore-error: err != nil #2":       "s.sync(); err != nil && false {",
		"p.go: Store.put: swallow-error: err":                "return error(nil)",
		"p.go: Store.put: swallow-error: err #2":             "return error(nil)",
		"p.go: Store.put: remove: s.tell()":                  "go func() {\n\t\t\n\t}()",
	}
	var swapped bool
	for _, m := range all {
		if strings.Contains(m.name, ": swap: ") {
			text := string(m.changed)
			swapped = strings.Index(text, "s.sync()") < strings.Index(text, "s.write()")
			continue
		}
		if text, known := want[m.name]; !known || !strings.Contains(string(m.changed), text) {
			t.Errorf("%s makes\n%s", m.name, m.changed)
		}
		delete(want, m.name)
	}
	if len(want) > 0 {
		t.Errorf("not made: %v", want)
	}
	if !swapped {
		t.Error("the two steps are not swapped")
	}
}

func TestParseEquivalent(t *testing.T) {
	if list, err := parseEquivalent(equivalentTable); err != nil {
		t.Error(err)
	} else if list["a"] != "" {
		t.Error("a mutant that nobody named")
	}
	if list, err := parseEquivalent("# a comment\na: b: c\tthe same to everybody\n"); err != nil || list["a: b: c"] == "" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := parseEquivalent("a: b: c\n"); err == nil {
		t.Error("a mutant without a reason was taken")
	}
}

func TestParseDiff(t *testing.T) {
	lines := parseDiff("--- a/x.go\n+++ b/x.go\n@@ -3 +3,2 @@ func f() {\n+one\n+two\n@@ -9,2 +10,0 @@\n-gone\n@@ -20 +19 @@\n+three\n")
	var got []int
	for n := range lines["x.go"] {
		got = append(got, n)
	}
	slices.Sort(got)
	if !slices.Equal(got, []int{3, 4, 19}) {
		t.Errorf("changed lines %v", got)
	}
}
