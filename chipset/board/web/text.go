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
	// About says what it is.
	About string
	Lines []textLine
	// Cut is true where the text is longer.
	Cut bool
	// None says why there is nothing.
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

// cleaned is text of several lines without what would turn the direction of others.
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

// transcriptOf is the end of what the worker of an agent or of a bead prints, or printed last.
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

// toneClass is the class of a line of a transcript or of a patch.
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

// diffOf is what a bead has changed by now, or what has landed of it.
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
