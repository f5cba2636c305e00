package clients

import (
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// plainCharacters mean nothing more than themselves to a shell, and to a rule of any client.
const plainCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:@%+-"

// PassingTest is the command line that tests what lands, for [agentcli.Kit]: "" where no sandbox is in force, where the
// definition does not say it, and where a word of it could mean more than itself.
func PassingTest(d *definition.Definition) string {
	if !sandbox.InForce(sandbox.Mode(d.Sandbox)) {
		return ""
	}
	argv := d.Merge.Test.Argv
	if d.Merge.Test.Line != "" {
		argv, _ = process.ParseCommand(d.Merge.Test.Line) // one that can't be run has no words
	}
	special := func(r rune) bool { return !strings.ContainsRune(plainCharacters, r) }
	if slices.ContainsFunc(argv, func(word string) bool { return word == "" || strings.ContainsFunc(word, special) }) {
		return ""
	}
	return strings.Join(argv, " ")
}
