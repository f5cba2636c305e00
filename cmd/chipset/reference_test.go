package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/commands.md again")

// reference is docs/commands.md.
func reference(root *cobra.Command) []byte {
	var b markdown
	b.WriteString("# The command line\n\nThis page is generated from the command tree: `go test ./cmd/chipset -run TestCommandReference -update`\nwrites it, and the tests fail when it is stale.\n")
	b.text(root.Long)
	fmt.Fprintf(&b, "\nGlobal flags:\n")
	b.code("", root.PersistentFlags().FlagUsages())
	for _, g := range root.Groups() {
		b.heading(2, g.Title)
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID {
				describe(&b, cmd, 3)
			}
		}
	}
	b.heading(2, "For agents and machinery")
	b.text("These commands may also be called without the word `agent` or `dev`, as prompts and plugins do: `chipset done`.")
	for _, m := range machineries() {
		describe(&b, subcommand(root, m.name), 3)
	}
	return b.Bytes()
}

// markdown is the format of docs/commands.md.
type markdown struct{ bytes.Buffer }

func (b *markdown) heading(level int, text string) {
	fmt.Fprintf(b, "\n%s %s\n", strings.Repeat("#", level), text)
}
func (b *markdown) text(s string) { fmt.Fprintf(b, "\n%s\n", s) }
func (b *markdown) code(language, s string) {
	fmt.Fprintf(b, "\n```%s\n%s\n```\n", language, strings.TrimSuffix(s, "\n"))
}

// TestCommandReference holds docs/commands.md to the command tree.
// go test ./cmd/chipset -run TestCommandReference -update writes it.
func TestCommandReference(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "commands.md")
	want := reference(testTree())
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/commands.md is stale; run go test ./cmd/chipset -run TestCommandReference -update (-want +got):\n%s", diff)
	}
}

// TestManPages wants a page of man(1) for every command that the help lists, in which no text is
// taken for a request of roff.
func TestManPages(t *testing.T) {
	pages := manPages(testTree())
	for _, name := range []string{"chipset.1", "chipset-work.1", "chipset-agent.1", "chipset-up.1"} {
		if !bytes.HasPrefix(pages[name], []byte(".TH CHIPSET")) {
			t.Errorf("%s: %.40q", name, pages[name])
		}
	}
	for name, text := range pages {
		for line := range strings.Lines(string(text)) {
			macro, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			if line[0] == '\'' || line[0] == '.' && !strings.Contains(" .TH .SH .SS .PP .RS .RE .nf .fi ", " "+macro+" ") {
				t.Errorf("%s: %q is read as a request", name, line)
			}
		}
	}
	if got, want := escapeRoff(".a\n'b\n-c\\d…"), "\\&.a\n\\&'b\n\\-c\\ed\\[u2026]"; got != want {
		t.Errorf("escaped: %q, want %q", got, want)
	}
}

func testTree() *cobra.Command {
	return newRootCmd(&app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{},
		env: func(string) string { return "" }, cwd: "/", clock: time.Now})
}

// TestEveryCommandHelps checks that every command has a summary that says what it does, a
// description that fits a terminal, and an example that its own parser accepts.
func TestEveryCommandHelps(t *testing.T) {
	notImperative := regexp.MustCompile(`^(The|A|An|What|Which|Only|How) |^\S+: `)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || notImperative.MatchString(cmd.Short) {
			t.Errorf("%s: the summary %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.HasParent() && utf8.RuneCountInString(cmd.Short) > 63 { // what the overview has room for
			t.Errorf("%s: the summary %q is too long", cmd.CommandPath(), cmd.Short)
		}
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s: wider than a terminal: %q", cmd.CommandPath(), line)
			}
		}
		if cmd.HasSubCommands() {
			return
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: no example of itself in %q", cmd.CommandPath(), cmd.Example)
		}
		for line := range strings.Lines(cmd.Example) {
			checkExample(t, strings.TrimSpace(line))
		}
	}
	visit(testTree())
}

// checkExample wants the flags of an example to exist and its arguments to be enough.
func checkExample(t *testing.T, line string) {
	t.Helper()
	if _, after, piped := strings.Cut(line, "| "); piped {
		line = after
	}
	line, _, _ = strings.Cut(line, " > ")
	words := splitWords(line)
	if len(words) == 0 || words[0] != "chipset" {
		t.Errorf("example %q is no chipset command", line)
		return
	}
	cmd, rest, err := testTree().Find(words[1:])
	if err != nil {
		t.Errorf("example %q: %v", line, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("example %q: %v", line, err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("example %q: %v", line, err)
	}
}

// splitWords splits at spaces outside of double quotes.
func splitWords(line string) []string {
	var words []string
	quoted := false
	for _, w := range strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	}) {
		words = append(words, strings.ReplaceAll(w, `"`, ""))
	}
	return words
}
