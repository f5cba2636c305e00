package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/state"
)

// page is a page of the manual that is being written: roff for man(1), markdown for docs/commands.md.
type page interface {
	// heading begins a part; level 2 is a group of commands, 3 a command, and so on.
	heading(level int, text string)
	// text writes prose whose lines are broken already, code what is typed or printed.
	text(s string)
	code(language, s string)
}

// describe writes the help of a command and those below it.
func describe(p page, cmd *cobra.Command, level int) {
	p.heading(level, cmd.CommandPath())
	p.text(strings.TrimSuffix(cmd.Short, ".") + ".")
	if cmd.Long != "" {
		p.code("text", cmd.Long)
	}
	if !cmd.HasSubCommands() {
		p.code("", cmd.UseLine())
		if usage := ownFlags(cmd).FlagUsages(); usage != "" {
			p.code("", usage)
		}
		p.code("sh", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			describe(p, sub, level+1)
		}
	}
}

// ownFlags returns the flags of a command that are not global.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && cmd.InheritedFlags().Lookup(f.Name) == nil {
			flags.AddFlag(f)
		}
	})
	return flags
}

// roff is the format of man(1).
type roff struct{ bytes.Buffer }

func (b *roff) heading(level int, text string) {
	macro := ".SH"
	if level > 3 {
		macro = ".SS"
	}
	fmt.Fprintf(b, "%s %s\n", macro, escapeRoff(text))
}
func (b *roff) text(s string) { fmt.Fprintf(b, ".PP\n%s\n", escapeRoff(s)) }
func (b *roff) code(_, s string) {
	fmt.Fprintf(b, ".PP\n.RS 4\n.nf\n%s\n.fi\n.RE\n", escapeRoff(strings.TrimSuffix(s, "\n")))
}

// escapeRoff keeps text from being read as requests of roff, and writes what is not ASCII as roff does.
func escapeRoff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

// manPages returns the man pages by their file names: one for chipset, and one for each command
// that help --all lists.
func manPages(root *cobra.Command) map[string][]byte {
	pages := map[string][]byte{"chipset.1": manPage(root, func(p page) {
		p.heading(3, "DESCRIPTION")
		p.text(root.Long)
		for _, g := range root.Groups() {
			p.heading(3, g.Title)
			for _, cmd := range root.Commands() {
				if cmd.GroupID == g.ID {
					p.text("chipset-" + cmd.Name() + "(1): " + cmd.Short)
				}
			}
		}
		p.heading(3, "GLOBAL FLAGS")
		p.code("", root.PersistentFlags().FlagUsages())
	})}
	for _, cmd := range root.Commands() {
		if !cmd.Hidden {
			pages["chipset-"+cmd.Name()+".1"] = manPage(cmd, func(p page) { describe(p, cmd, 3) })
		}
	}
	return pages
}

func manPage(cmd *cobra.Command, body func(p page)) []byte {
	var b roff
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %s 1 \"\" chipset chipset\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), escapeRoff(name), escapeRoff(cmd.Short))
	body(&b)
	return b.Bytes()
}

func newManCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "man DIRECTORY",
		Annotations: map[string]string{ownFormat: ""},
		Short:       "Write the man pages into a directory",
		Example:     "  chipset man /usr/local/share/man/man1",
		Args:        nargs(1, 1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.abs(args[0])
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return &state.Unknown{Kind: "directory", Name: args[0]}
			}
			for name, text := range manPages(cmd.Root()) {
				if err := state.ReplaceOutside(filepath.Join(dir, name), text); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
