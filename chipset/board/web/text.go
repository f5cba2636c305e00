package web

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
)

// textData is a long text, line by line.
type textData struct {
	// About is what the text is.
	About string
	Lines []textLine
	// Cut is true if the text is longer.
	Cut bool
	// None is shown if there is no text.
	None string
}

// textLine is one line with its class.
type textLine struct{ Class, Text string }

const (
	// diffLines is how many lines of a diff are shown.
	diffLines = 4000
	// lineLength bounds a line, in bytes.
	lineLength = 4000
)

// cleaned removes control characters and changes of the writing direction from a text of
// several lines.
func cleaned(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return screen.Printable(r)
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

func (t *textData) add(tone view.Tone, line string) {
	if len(line) > lineLength {
		line = strings.ToValidUTF8(line[:lineLength], "") + " …"
	}
	t.Lines = append(t.Lines, textLine{toneClass(tone), cleaned(line)})
}

// transcriptOf returns the end of the transcript of the present or last worker of an agent or a bead.
func (s *Server) transcriptOf(v *view.View, agent state.AgentID, id state.BeadID) (*textData, error) {
	t := &textData{None: "There is no transcript yet."}
	session, err := view.SessionOf(s.Rig, agent, id)
	if errors.Is(err, state.ErrNotFound) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	transcript := view.NewTranscript(s.Rig, session, view.TranscriptEnd)
	passages, _, err := transcript.More()
	if !slices.ContainsFunc(v.Agents, func(a view.AgentStatus) bool { return a.Session == session }) {
		passages = append(passages, transcript.Rest()...)
	}
	for _, p := range passages {
		for _, line := range view.Marked(p) {
			t.add(view.PassageTone(p.Kind), line)
		}
	}
	t.About, t.Cut = string(rig.Transcript(session)), transcript.Cut()
	return t, err
}

// toneClass is the CSS class of a line of a transcript or a patch.
func toneClass(t view.Tone) string {
	switch t {
	case view.Plain:
		return ""
	case view.Heading:
		return "file"
	case view.Step:
		return "hunk"
	case view.Faint:
		return "faint"
	case view.Wrong, view.Removed:
		return "del"
	case view.Added:
		return "add"
	}
	return ""
}

// diffOf returns the changes of a bead, or what landed of them.
func (s *Server) diffOf(ctx context.Context, id state.BeadID) (*textData, error) {
	t := &textData{None: "Nothing has been changed yet."}
	c, err := view.ChangesOf(ctx, s.Rig, id)
	if errors.Is(err, state.ErrNotFound) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.About = c.Where
	for _, commit := range c.Commits {
		t.add(view.Step, commit.Hash.Short()+" "+commit.Subject)
	}
	for line := range strings.Lines(c.Patch) {
		if len(t.Lines) >= diffLines {
			t.Cut = true
			break
		}
		line = strings.TrimRight(line, "\n")
		t.add(view.PatchTone(line), line)
	}
	return t, nil
}
