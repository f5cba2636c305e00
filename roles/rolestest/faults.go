package rolestest

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/roles"
)

// Seen are the types of the actions that transcripts have led to.
type Seen map[string]bool

var errFault = errors.New("a fault that the test injects")

// Faults makes each action of a decision fail once, and checks that nothing is
// retired whose effect is not durable, that all other groups are carried out, and
// that the next state counts if, and only if, the work was.
func Faults[S any](t testing.TB, seen Seen, d *roles.Decision[S]) {
	t.Helper()
	groups := append(d.Groups[:len(d.Groups):len(d.Groups)], d.Work)
	for g, group := range groups {
		for i, broken := range group {
			seen[fmt.Sprintf("%T", broken)] = true
			var done []string
			at := 0
			out := roles.CarryOut(context.Background(), d, func(_ context.Context, a roles.Action) error {
				if at == position(groups, g, i) {
					at += len(group) - i
					return errFault
				}
				at++
				done = append(done, fmt.Sprintf("%T", a))
				return nil
			})
			var want []string
			for k, other := range groups {
				for n, a := range other {
					if k == g && n >= i {
						break
					}
					want = append(want, fmt.Sprintf("%T", a))
				}
			}
			if strings.Join(done, " ") != strings.Join(want, " ") || out.Worked != (g < len(groups)-1) {
				t.Errorf("%T fails: done %v, worked %t, want %v", broken, done, out.Worked, want)
			}
			if retires(broken) {
				continue
			}
			for _, later := range group[:i] {
				if retires(later) && g < len(groups)-1 {
					t.Errorf("%T comes after %T, which retires its cause", broken, later)
				}
			}
		}
	}
}

// retires reports whether an action retires a cause.
func retires(a roles.Action) bool {
	switch a.(type) {
	case roles.MarkRead, roles.MarkSeen:
		return true
	}
	return false
}

// position is where an action stands among all of them.
func position(groups []roles.Group, g, i int) int {
	for _, group := range groups[:g] {
		i += len(group)
	}
	return i
}

// covered checks that every action that the package in the working directory
// defines was among those seen.
func (s Seen) covered(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source: %v", err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "IsAction" {
				continue
			}
			if action := fmt.Sprintf("%s.%s", file.Name, f.Recv.List[0].Type); !s[action] {
				t.Errorf("no transcript leads to %s", action)
			}
		}
	}
}
