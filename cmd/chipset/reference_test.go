package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

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

func testTree() *cobra.Command {
	return newRootCmd(&app{stdin: strings.NewReader(""), stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{},
		env: func(string) string { return "" }, cwd: "/", clock: time.Now})
}

// TestEveryCommandHelps wants a summary and an example of every command, and an
// example that the command's own parser takes.
func TestEveryCommandHelps(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the summary %q", cmd.CommandPath(), cmd.Short)
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

func reference(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# The command line\n\nThis page is generated from the command tree: `go test ./cmd/chipset -run TestCommandReference -update`\nwrites it, and the tests fail when it is stale.\n\n")
	fmt.Fprintf(&b, "%s\n\nGlobal flags:\n\n```\n%s```\n", root.Long, root.PersistentFlags().FlagUsages())
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID && !cmd.Hidden {
				describe(&b, cmd, "###")
			}
		}
	}
	return b.Bytes()
}

func describe(b *bytes.Buffer, cmd *cobra.Command, heading string) {
	fmt.Fprintf(b, "\n%s %s\n\n%s.\n", heading, cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	if cmd.Long != "" {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", cmd.Long)
	}
	if !cmd.HasSubCommands() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", cmd.UseLine())
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && cmd.InheritedFlags().Lookup(f.Name) == nil {
				flags.AddFlag(f)
			}
		})
		if usage := flags.FlagUsages(); usage != "" {
			fmt.Fprintf(b, "\n```\n%s```\n", usage)
		}
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			describe(b, sub, heading+"#")
		}
	}
}
