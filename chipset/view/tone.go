package view

import (
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Tone is what a line of a transcript or of a patch is, for whoever colours it.
type Tone int

const (
	// Plain is what an agent said, and what a patch leaves as it is.
	Plain Tone = iota
	// Heading names a file of a patch.
	Heading
	// Step is a call of a tool, a place in a file, or a commit.
	Step
	// Faint is a result, or a note of the client.
	Faint
	// Wrong is an error.
	Wrong
	// Removed is a line that a patch takes away.
	Removed
	// Added is one that it brings.
	Added
)

// PassageTone is that of a passage's lines.
func PassageTone(k agentcli.PassageKind) Tone {
	switch k {
	case agentcli.Said:
		return Plain
	case agentcli.Called:
		return Step
	case agentcli.Returned, agentcli.Noted:
		return Faint
	case agentcli.Erred:
		return Wrong
	case agentcli.Removed:
		return Removed
	case agentcli.Added:
		return Added
	}
	return Plain
}

// PatchTone is that of a line of a patch.
func PatchTone(line string) Tone {
	for _, row := range []struct {
		begin string
		tone  Tone
	}{{"diff ", Heading}, {"index ", Heading}, {"+++ ", Heading}, {"--- ", Heading}, {"@@", Step}, {"+", Added}, {"-", Removed}} {
		if strings.HasPrefix(line, row.begin) {
			return row.tone
		}
	}
	return Plain
}
