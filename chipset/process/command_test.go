package process

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseCommand(t *testing.T) {
	tests := []struct {
		line string
		want []string // nil: a shell
	}{
		{"go test ./...", []string{"go", "test", "./..."}},
		{"  make\tcheck  ", []string{"make", "check"}},
		{`tool 'a b' "c d" e\ f`, []string{"tool", "a b", "c d", "e f"}},
		{`tool '' ""`, []string{"tool", "", ""}},
		{`tool a'b'"c"d`, []string{"tool", "abcd"}},
		{`tool '$HOME' \$HOME "\$HOME"`, []string{"tool", "$HOME", "$HOME", "$HOME"}},
		{`tool "a\n\"b\\"`, []string{"tool", `a\n"b\`}},
		{`tool '*.go' \*.go "?"`, []string{"tool", "*.go", "*.go", "?"}},
		{"tool {prompt} --in={prompt_file}", []string{"tool", "{prompt}", "--in={prompt_file}"}},
		{"tool -x # a comment", []string{"tool", "-x"}},
		{"tool a~b", []string{"tool", "a~b"}},
		{"tool a=b", []string{"tool", "a=b"}},
		{"tool a;", []string{"tool", "a"}},
		{"tool ä 日本", []string{"tool", "ä", "日本"}},
		{"a && b", nil}, {"a || b", nil}, {"a | b", nil}, {"a; b", nil}, {"a\nb", nil}, {"a &", nil}, {"! a", nil},
		{"a >out", nil}, {"a <in", nil}, {"a 2>&1", nil}, {"a <<X\nb\nX\n", nil},
		{"X=1 a", nil}, {"X=1", nil},
		{"a $HOME", nil}, {`a "$HOME"`, nil}, {"a $(b)", nil}, {"a `b`", nil}, {`a "$(b)"`, nil}, {"a $((1+1))", nil},
		{"a *.go", nil}, {"a [ab]", nil}, {"a b?", nil}, {"a ~/x", nil},
		{"a b\\\nc", nil}, {"a #\\\nb", nil},
		{"(a)", nil}, {"{ a; }", nil}, {"if a; then b; fi", nil}, {"f() { a; }", nil},
		{"cd dir", nil}, {"exit 3", nil}, {". ./env", nil}, {"'exit' 3", nil},
	}
	for _, test := range tests {
		want := test.want
		if want == nil {
			want = []string{"sh", "-c", test.line}
		}
		got, err := ParseCommand(test.line)
		if err != nil {
			t.Errorf("%q: %v", test.line, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", test.line, diff)
		}
	}
}

func TestParseCommandErrors(t *testing.T) {
	for line, want := range map[string]error{
		"": ErrNoCommand, "  \n ": ErrNoCommand, "# only a comment": ErrNoCommand, "'' a": ErrNoCommand,
		"a 'b": ErrBadCommand, `a "b`: ErrBadCommand, "a |": ErrBadCommand, "a $(": ErrBadCommand,
		"if a": ErrBadCommand, "a\x00b": ErrBadCommand, ")": ErrBadCommand,
	} {
		if got, err := ParseCommand(line); !errors.Is(err, want) {
			t.Errorf("%q: %q, %v, want %v", line, got, err, want)
		}
	}
}

// A line that is executed directly has exactly the words that a shell gives it.
func TestPlainWordsAreTheShells(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	piece := rapid.SampledFrom([]string{
		"a", "b1", "-x", "./...", "=", "{", "}", ",", "~", "#", "%", "@", "^", ":", "é", " ", "  ", "\t", "\\\n",
		`\a`, `\ `, `\\`, `\'`, `\"`, `\$`, `\*`, "'", `"`, `'x y'`, `"x y"`, `"\a\$\"\\"`, `''`, `""`, "!", "*", "$x", ";", "]",
	})
	rapid.Check(t, func(rt *rapid.T) {
		line := "printf '%s\\0' " + strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(rt, "pieces"), "")
		argv, err := ParseCommand(line)
		if err != nil || argv[0] != "printf" {
			return
		}
		out, err := exec.Command(shell, "-c", line).Output()
		if err != nil {
			rt.Fatalf("%q is %q, but the shell says %v", line, argv, err)
		}
		want := strings.Join(argv[2:], "\x00") + "\x00"
		if string(out) != want {
			rt.Fatalf("%q is %q, but the shell says %q", line, argv[2:], out)
		}
	})
}
