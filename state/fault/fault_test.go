package fault

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
)

// kinds are the constants of this package, as the compiler sees them.
func kinds(t *testing.T) (all []Kind) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Kind" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, Kind(text))
		}
		return true
	})
	return all
}

// TestEveryKindHasAClass: a kind that Class forgets would be nobody's fault.
func TestEveryKindHasAClass(t *testing.T) {
	t.Parallel()
	all := kinds(t)
	if len(all) < 20 {
		t.Fatalf("only %d kinds found", len(all))
	}
	for _, k := range all {
		f := New(k, "the reason")
		if err := f.Check(); err != nil {
			t.Errorf("%s: %v", k, err)
		}
		if f.Class == "" || f.IsZero() {
			t.Errorf("%s has no class", k)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		f    Fault
		bad  string
	}{
		{"zero", Fault{}, ""},
		{"a kind of a newer binary", Fault{Class: Environment, Kind: "sun_spots", Reason: "r"}, ""},
		{"a class of nobody", Fault{Class: "fate", Kind: RateLimit, Reason: "r"}, "unknown class"},
		{"no class", Fault{Kind: RateLimit, Reason: "r"}, "unknown class"},
		{"another class", Fault{Class: Work, Kind: RateLimit, Reason: "r"}, "has the class capacity"},
		{"no kind", Fault{Class: Work, Reason: "r"}, "kind"},
		{"a kind that is a path", Fault{Class: Work, Kind: "../x", Reason: "r"}, "kind"},
		{"a long kind", Fault{Class: Work, Kind: Kind(strings.Repeat("a", maxKind+1)), Reason: "r"}, "kind"},
		{"no reason", Fault{Class: Capacity, Kind: RateLimit, Reason: " "}, "one line"},
		{"two lines", Fault{Class: Capacity, Kind: RateLimit, Reason: "a\nb"}, "one line"},
		{"an escape", Fault{Class: Capacity, Kind: RateLimit, Reason: "a\x1b[2J"}, "one line"},
		{"a long reason", Fault{Class: Capacity, Kind: RateLimit, Reason: strings.Repeat("a", MaxReason+1)}, "one line"},
	}
	for _, tt := range tests {
		err := tt.f.Check()
		if (err == nil) != (tt.bad == "") || err != nil && !strings.Contains(err.Error(), tt.bad) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestNewIsAlwaysSound: whatever a client prints, the reason made of it can be stored.
func TestNewIsAlwaysSound(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"", "\n\n", "one\ntwo", "\x1b[31mred\x00", "\xff\xfe", strings.Repeat("ä", MaxReason), strings.Repeat("a", MaxReason)} {
		f := New(RateLimit, reason)
		if err := f.Check(); err != nil {
			t.Errorf("%q: %v: %q", reason, err, f.Reason)
		}
	}
}

func TestOfError(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want Kind
	}{
		{fmt.Errorf("write: %w", unix.ENOSPC), DiskFull},
		{fmt.Errorf("write: %w", unix.EDQUOT), DiskFull},
		{&os.PathError{Op: "open", Path: "/x", Err: unix.EACCES}, NoPermission},
		{&os.PathError{Op: "open", Path: "/x", Err: unix.EPERM}, NoPermission},
		{&os.PathError{Op: "open", Path: "/x", Err: unix.EROFS}, NoPermission},
		{errors.New("no space left on device, says the worker"), WorktreeFailed},
	}
	for _, tt := range tests {
		if f := OfError(tt.err, WorktreeFailed); f.Kind != tt.want || f.Class != Environment || f.Reason != tt.err.Error() {
			t.Errorf("%v: %+v", tt.err, f)
		}
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	f := New(UsageLimit, "the usage limit is reached")
	f.Until = state.At(time.Date(2026, 11, 22, 22, 30, 0, 0, time.UTC))
	data, err := f.MarshalJSON()
	if want := `{"class":"capacity","kind":"usage_limit","until":"2026-11-22T22:30:00.000000000Z","reason":"the usage limit is reached"}`; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}
