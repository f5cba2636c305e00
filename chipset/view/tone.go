package view

import (
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
)

// Tone is the meaning of a line of a transcript or a patch, by which boards choose its colour.
type Tone int

const (
	// Plain is what an agent said, or an unchanged line of a patch.
	Plain Tone = iota
	// Heading names a file of a patch.
	Heading
	// Step is a tool call, a place in a file, or a commit.
	Step
	// Faint is a result, or a note of the client.
	Faint
	// Wrong is an error.
	Wrong
	// Removed is a line that a patch removes.
	Removed
	// Added is a line that a patch adds.
	Added
)

// PassageTone returns the tone of a passage's lines.
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

// PatchTone returns the tone of a line of a patch.
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
