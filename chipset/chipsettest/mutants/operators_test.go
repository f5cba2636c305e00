package main

import (
	"go/parser"
	"go/token"
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

// Each operator makes its mistake where it can be made, and all of them together are still Go.
func TestOperators(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := generate(dir, "p.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{ // what is changed → what stands there instead, alone
		"p.go: Store.put: negate: n > 1 && s.open":           "if (mutantOn(7) != (n > 1 && s.open)) {",
		"p.go: Store.put: logic: &&":                         "if (mutantOn(7) && ((n > 1) || (s.open)) || !mutantOn(7) && (n > 1 && s.open)) {",
		"p.go: Store.put: boundary: >":                       "if (mutantOn(7) && ((n) >= (1)) || !mutantOn(7) && (n > 1)) && s.open {",
		"p.go: Store.put: remove: s.count += n":              "\t\tif !mutantOn(7) {s.count += n}\n",
		"p.go: Store.put: unlock-early: defer lock.Unlock()": "\n\tif mutantOn(7) {lock.Unlock()} else {defer lock.Unlock()}\n",
		"p.go: Store.put: ignore-error: err != nil":          "s.write(); (err != nil && !mutantOn(7)) {",
		"p.go: Store.put: ignore-error: err != nil #2":       "s.sync(); (err != nil && !mutantOn(7)) {",
		"p.go: Store.put: swallow-error: err":                "return mutantError(7, err)",
		"p.go: Store.put: swallow-error: err #2":             "return mutantError(7, err)",
		"p.go: Store.put: remove: s.tell()":                  "go func() {\n\t\tif !mutantOn(7) {s.tell()}\n\t}()",
		"p.go: Store.put: swap: if err := s.write(); err != nil { return err } if err := s.sync(); err…": "if mutantOn(7) {if err := s.write(); err != nil {",
	}
	var numbers []int
	for i, v := range all {
		numbers = append(numbers, i+1)
		text := string(weave([]byte(sample), []variant{v}, []int{7}))
		if change, known := want[v.name]; !known || !strings.Contains(text, change) {
			t.Errorf("%s makes\n%s", v.name, text)
		}
		delete(want, v.name)
	}
	if len(want) > 0 {
		t.Errorf("not made: %v", want)
	}
	text := weave([]byte(sample), all, numbers)
	if _, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}

// A variant is caught by a test that reaches it and fails, survives otherwise, and is none where it is not Go.
func TestJudge(t *testing.T) {
	module := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.24\n",
		"p/p.go": `package p

type yes bool

func Sign(n int) (int, yes) {
	if n < 0 {
		return -1, n > -10
	}
	return 1, true
}

func forgotten() { println("nobody calls this") }
`,
		"p/p_test.go": `package p

import "testing"

func TestSign(t *testing.T) {
	if n, _ := Sign(-5); n != -1 {
		t.Error(n)
	}
}

func TestUnfit(t *testing.T) { t.Error("fails whatever one does") }
`} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(module, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := generate(module, "p/p.go")
	if err != nil {
		t.Fatal(err)
	}
	count := map[verdict]int{}
	var out strings.Builder
	c := &court{module: module, pkg: "p", jobs: 2, out: &out, variants: all}
	if err := c.session(t.Context(), nil, count); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"forgotten: remove: println(\"nobody calls this\")  (line 12; no test reaches it)\n",
		"Sign: boundary: <  (line 6)\n", "TestUnfit fails by itself", "p: 1 of 3 caught (0 because the tests did not end; 0 others were", "; 1 others do not compile, 0 were not tried\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	if count[caught] != 1 || count[survived] != 2 || count[broken] != 1 {
		t.Errorf("%v\n%s", count, out.String())
	}
	c.budget = &budget{}
	if err := c.session(t.Context(), nil, map[verdict]int{}); err != nil || c.verdict[0] != "" {
		t.Errorf("tried although no time was left: %v, %v", c.verdict, err)
	}
	c.verdict[0] = survived // the tests of the package itself, and there is no time for others
	if err := c.hear(t.Context(), &suite{court: c}, nil); err != nil || !c.unheard[0] {
		t.Errorf("not said to be unheard although no time was left: %v, %v", c.verdict, err)
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
