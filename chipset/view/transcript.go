package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
)

// SessionOf returns the session of the present worker of an agent or a bead, or else of the
// last one. Errors: state.ErrNotFound if there was none.
func SessionOf(r *rig.Rig, agent state.AgentID, id state.BeadID) (state.SessionID, error) {
	hooks, _, err := r.Hooks.All()
	if err != nil {
		return "", err
	}
	for i := range hooks {
		w := hooks[i].WorkItem
		if w != nil && w.Session != "" && (hooks[i].AgentID == agent || id != "" && w.BeadID == id) {
			return w.Session, nil
		}
	}
	ends, _, err := r.Retire.Select(func(e *retire.Record) bool {
		return e.Session != "" && (e.AgentID == agent || id != "" && e.BeadID == id)
	})
	if err != nil {
		return "", err
	}
	if len(ends) == 0 {
		return "", state.Absent(fmt.Sprintf("%s%s: no worker has started yet", agent, id))
	}
	last := slices.MaxFunc(ends, func(a, b retire.Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.AssignmentID, b.AssignmentID))
	})
	return last.Session, nil
}

// Transcript reads what a worker's client prints, as it grows.
type Transcript struct {
	tree *state.Tree
	path state.Path
	// at is the position of the next read.
	at    int64
	begun bool
	cut   bool
	lines *agentcli.Lines
	found []agentcli.Passage
}

const (
	// TranscriptEnd is how much of the end of a transcript a person sees at first, in bytes.
	TranscriptEnd = 256 << 10
	// transcriptRead bounds one read, in bytes.
	transcriptRead = 4 << 20
)

// NewTranscript opens the transcript of a session. The first read starts end bytes before
// its end; 0 reads all of it.
func NewTranscript(r *rig.Rig, session state.SessionID, end int64) *Transcript {
	t := &Transcript{tree: r.Tree, path: rig.Transcript(session), at: -end}
	narrator := clients.Narrate(func(p []agentcli.Passage) { t.found = append(t.found, p...) })
	t.lines = &agentcli.Lines{To: narrator.Line}
	return t
}

// Raw makes every line a passage without interpreting it, and returns the transcript.
func (t *Transcript) Raw() *Transcript {
	t.lines.To = func(line []byte) {
		t.found = append(t.found, agentcli.Passage{Kind: agentcli.Said, Text: string(line)})
	}
	return t
}

// More returns the complete lines that were printed since the last call, and whether there
// are more. A transcript that does not exist yet is empty.
func (t *Transcript) More() (passages []agentcli.Passage, more bool, err error) {
	data, from, err := t.tree.ReadPart(t.path, t.at, transcriptRead)
	if errors.Is(err, state.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	t.at = from + int64(len(data))
	if !t.begun && from > 0 {
		data = data[slices.Index(data, '\n')+1:] // the rest of a line
		t.cut = true
	}
	t.begun = true
	_, _ = t.lines.Write(data) // it never fails
	passages, t.found = t.found, nil
	return passages, len(data) == transcriptRead, nil
}

// Cut reports whether the first read left out the beginning of the transcript.
func (t *Transcript) Cut() bool { return t.cut }

// Rest returns the last line of a finished transcript if it has no newline.
func (t *Transcript) Rest() []agentcli.Passage {
	t.lines.Flush()
	rest := t.found
	t.found = nil
	return rest
}

// Marked returns the lines of a passage. Each starts with a mark of its kind, two columns
// wide; the further lines of a text are indented instead.
func Marked(p agentcli.Passage) []string {
	lines := strings.Split(p.Text, "\n")
	for i, line := range lines {
		if i > 0 && (p.Kind == agentcli.Said || p.Kind == agentcli.Called || p.Kind == agentcli.Noted) {
			lines[i] = "  " + line
		} else {
			lines[i] = mark(p.Kind) + line
		}
	}
	return lines
}

func mark(k agentcli.PassageKind) string {
	switch k {
	case agentcli.Said:
		return "  "
	case agentcli.Called:
		return "▸ "
	case agentcli.Returned:
		return "│ "
	case agentcli.Erred:
		return "✗ "
	case agentcli.Removed:
		return "- "
	case agentcli.Added:
		return "+ "
	case agentcli.Noted:
		return "· "
	}
	return "  "
}
