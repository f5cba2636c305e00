package main

import (
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each mutant still applies to the code as it is, and is still Go.
func TestEveryMutantApplies(t *testing.T) {
	all, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Errorf("only %d mutants", len(all))
	}
	module, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		data, err := m.apply(module)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, data, 0); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		for _, arg := range m.test {
			if dir, isPackage := strings.CutPrefix(arg, "./"); isPackage {
				if _, err := os.Stat(filepath.Join(module, dir)); err != nil {
					t.Errorf("%s: %v", m.name, err)
				}
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const good = "== name\nfile.go\n./pkg\nwhy\n<<<<\nold\n====\nnew\n>>>>\n"
	if all, err := parse("a comment\n" + good); err != nil || len(all) != 1 || all[0].old != "old" || all[0].new != "new" {
		t.Fatalf("%+v, %v", all, err)
	}
	if all, err := parse(strings.Replace(good, "\nnew", "", 1)); err != nil || all[0].new != "" {
		t.Errorf("an edit that only takes away: %+v, %v", all, err)
	}
	for what, bad := range map[string]string{
		"no end":        strings.Replace(good, ">>>>", "", 1),
		"no reason":     strings.Replace(good, "why\n", "", 1),
		"no change":     strings.Replace(good, "new", "old", 1),
		"the same name": good + good,
	} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%s: was taken", what)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for output, want := range map[string]verdict{
		"ok  \tpkg\t0.1s\n":                                        survived,
		"--- FAIL: TestX\nFAIL\tpkg\t0.1s\n":                       caught,
		"FAIL\tpkg [build failed]\n":                               broken,
		"panic: test timed out after 2m\nFAIL\tpkg\n":              caught,
		"ok  \tpkg\t0.1s [no tests to run]\n":                      broken,
		"--- SKIP: TestX\n\troot\nok  \tpkg\t0.1s\n":               skipped,
		"FAIL\tpkg [setup failed]\n":                               broken,
		"# pkg\nvet: ./a.go:1: undefined\nFAIL pkg [build failed]": broken,
	} {
		if got := judge([]byte(output), strings.Contains(output, "FAIL")); got != want {
			t.Errorf("%q: %s, want %s", output, got, want)
		}
	}
}

// Few mutants say nothing of the share that is caught, and one that does not compile says
// nothing at all.
func TestEnough(t *testing.T) {
	for _, c := range []struct {
		caught, survived, broken int
		want                     bool
	}{
		{0, 0, 9, true}, {0, 9, 0, true}, {5, 5, 90, false}, {8, 2, 0, true}, {7, 3, 0, false},
	} {
		s := systematic{required: 0.8}
		if got := s.enough(io.Discard, map[verdict]int{caught: c.caught, survived: c.survived, broken: c.broken}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Once it is enough, no other mutant is begun.
func TestOver(t *testing.T) {
	b := &bench{module: t.TempDir(), dir: t.TempDir(), out: io.Discard}
	left := 2
	b.all(t.Context(), make([]mutant, 5), 1, func() bool { left--; return left < 0 })
	if n := b.count[broken]; n != 2 {
		t.Errorf("%d were tried", n)
	}
}
