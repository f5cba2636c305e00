package agentcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Reader makes sense of a session's output, a line at a time. What others wrote
// may stand in it: nothing of it is taken for more than a figure or a quotation.
type Reader interface {
	// Line takes one whole line without its end.
	Line(line []byte)
	// Figures are those of the session so far, all its runs together.
	Figures() Figures
	// Session is the client's own name for the session, "" while it is not known.
	Session() string
	// End judges how the run ended that has exited with this code.
	End(code int) End
	// Resumed begins another run of the same session.
	Resumed()
}

// Verdict is what a client says about the end of its run.
type Verdict string

const (
	// ByExitCode: it says nothing, the exit code counts.
	ByExitCode Verdict = ""
	// Finished: the agent has ended its turn by itself, without an error.
	Finished Verdict = "finished"
	// Unfinished: it was made to end before it was through, and could go on.
	Unfinished Verdict = "unfinished"
	// Refused: it has ended, but was refused what it asked permission for.
	Refused Verdict = "refused"
	// Broken: it could not go on, for a reason that going on would not change.
	Broken Verdict = "broken"
)

// End is how a run ended.
type End struct {
	Verdict Verdict
	// Reason is one sentence, "" for Finished and ByExitCode.
	Reason string
	// Said is the last that the agent, or its client, had to say.
	Said string
}

// Limits of what is kept of an output.
const (
	// maxLine bounds a line that is looked into; longer ones hold files and
	// pictures, never a figure.
	maxLine = 4 << 20
	// maxSaid bounds a quotation, maxNoise the lines that are no JSON.
	maxSaid  = 1 << 10
	maxNoise = 8
)

// Lines cuts a stream into lines.
type Lines struct {
	// To takes each whole line.
	To   func(line []byte)
	rest []byte
	// skipping is true inside a line that is too long.
	skipping bool
}

// Write never fails.
func (l *Lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		switch {
		case l.skipping:
			l.skipping = false
		case len(l.rest) > 0:
			l.To(append(l.rest, p[:i]...))
		default:
			l.To(p[:i])
		}
		l.rest, p = l.rest[:0], p[i+1:]
	}
	if l.skipping || len(l.rest)+len(p) > maxLine {
		l.skipping, l.rest = true, nil
		return n, nil
	}
	l.rest = append(l.rest, p...)
	return n, nil
}

// Flush hands over a last line that has no end.
func (l *Lines) Flush() {
	if len(l.rest) > 0 && !l.skipping {
		l.To(l.rest)
	}
	l.rest, l.skipping = nil, false
}

// transcript is what all readers of JSON lines keep.
type transcript struct {
	figures Figures
	session string
	// said is the last text of the agent, noise the last lines that are no JSON.
	said  string
	noise []string
}

func (t *transcript) Figures() Figures { return t.figures }
func (t *transcript) Session() string  { return t.session }

// decode reads a line into v, and keeps what is no JSON object as noise.
func (t *transcript) decode(line []byte, v any) bool {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return false
	}
	if line[0] == '{' && json.Unmarshal(line, v) == nil {
		return true
	}
	if line[0] != '{' {
		t.noise = append(t.noise, clip(string(line)))
		if len(t.noise) > maxNoise {
			t.noise = slices.Delete(t.noise, 0, 1)
		}
	}
	return false
}

func (t *transcript) say(text string) {
	if text = strings.TrimSpace(text); text != "" {
		t.said = clip(text)
	}
}

// named remembers the session, once: what an agent prints later can't change it.
func (t *transcript) named(id string) {
	if t.session == "" && plausible(id) {
		t.session = id
	}
}

func (t *transcript) tool(name string) {
	t.figures.Tools++
	if name != "" {
		t.figures.Tool = clip(name)
	}
}

// lastWords are what a failed run leaves to quote.
func (t *transcript) lastWords() string {
	if len(t.noise) > 0 {
		return strings.Join(t.noise, "\n")
	}
	return t.said
}

// plausible tells an ID that may be put on a command line.
func plausible(id string) bool {
	if id == "" || len(id) > 128 || id[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r != '-' && r != '_' && r != '.'
	})
}

func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxSaid {
		return s
	}
	return strings.ToValidUTF8(s[:maxSaid], "") + "…"
}

// apiError judges an error of the model's interface by its HTTP status, 0 where
// there was no answer at all. The client has tried several times already.
func apiError(status int, message string) End {
	what := "the model's API could not be reached"
	if status > 0 {
		what = fmt.Sprintf("API error %d", status)
	}
	end := End{Verdict: Unfinished, Reason: strings.TrimSpace(what + ": " + clip(message))}
	transient := status == 0 || status == 408 || status == 409 || status == 425 || status == 429 || status >= 500
	if !transient {
		end.Verdict = Broken
	}
	return end
}
