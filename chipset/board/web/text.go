package web

import (
	"context"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
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
	// transcriptEnd is how much of a transcript's end is shown, in bytes.
	transcriptEnd = 256 << 10
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

func (t *textData) add(class, line string) {
	if len(line) > lineLength {
		line = strings.ToValidUTF8(line[:lineLength], "") + " …"
	}
	t.Lines = append(t.Lines, textLine{class, cleaned(line)})
}

// sessionOf is the session of the present or the last attempt, or "".
func sessionOf(h *view.BeadHistory) state.SessionID {
	if h.Hook != nil && h.Hook.WorkItem != nil && h.Hook.WorkItem.Session != "" {
		return h.Hook.WorkItem.Session
	}
	for i := len(h.Attempts) - 1; i >= 0; i-- {
		if h.Attempts[i].Session != "" {
			return h.Attempts[i].Session
		}
	}
	return ""
}

// transcriptOf is the end of a session's transcript.
func (s *Server) transcriptOf(id state.SessionID) *textData {
	t := &textData{None: "There is no transcript yet."}
	if id == "" {
		return t
	}
	p := state.LogDir.Join(string(id) + ".log")
	data, begin, err := s.Rig.Tree.ReadPart(p, -transcriptEnd, transcriptEnd)
	if err != nil {
		t.None = err.Error()
		return t
	}
	text := string(data)
	if begin > 0 {
		t.Cut = true
		_, text, _ = strings.Cut(text, "\n")
	}
	t.About = string(p)
	for line := range strings.Lines(text) {
		t.add("", strings.TrimRight(line, "\n"))
	}
	return t
}

// diffOf is what the last attempt of a bead has changed, or what has landed of it.
func (s *Server) diffOf(ctx context.Context, h *view.BeadHistory) (*textData, error) {
	t := &textData{None: "Nothing has been handed in yet."}
	base, head := rangeOf(h)
	if base == "" || head == "" || s.Rig.Git == nil {
		return t, nil
	}
	patch, err := s.Rig.Git.Diff(ctx, git.Hash(base), git.Hash(head))
	if err != nil {
		return nil, err
	}
	t.About, t.None = base+" … "+head, "It has changed nothing."
	for line := range strings.Lines(string(patch)) {
		if len(t.Lines) >= diffLines {
			t.Cut = true
			break
		}
		line = strings.TrimRight(line, "\n")
		t.add(diffClass(line), line)
	}
	return t, nil
}

// rangeOf are the commits between which the work of a bead lies.
func rangeOf(h *view.BeadHistory) (base, head string) {
	for i := len(h.Requests) - 1; i >= 0; i-- {
		q := &h.Requests[i]
		switch {
		case q.Status == mergequeue.Merged && q.Onto != "" && q.MergedSHA != "":
			return q.Onto, q.MergedSHA
		case q.Base != "":
			return q.Base, q.Head
		}
	}
	for i := len(h.Attempts) - 1; i >= 0; i-- {
		if a := &h.Attempts[i]; a.Base != "" && a.Head != "" {
			return a.Base, a.Head
		}
	}
	return "", ""
}

func diffClass(line string) string {
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "index "):
		return "file"
	case strings.HasPrefix(line, "@@"):
		return "hunk"
	case strings.HasPrefix(line, "+"):
		return "add"
	case strings.HasPrefix(line, "-"):
		return "del"
	}
	return ""
}
