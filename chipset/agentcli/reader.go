package agentcli

import (
	"bytes"
	"time"

	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

// Reader makes sense of a session's output, a line at a time. What others wrote
// may stand in it: nothing of it is taken for more than a figure or a quotation.
type Reader interface {
	// Line takes one whole line without its end.
	Line(line []byte)
	// Figures are those of the session so far, all its runs together.
	Figures() Figures
	// Used is what the session has used so far, by model, "" where the client names none. An entry without a
	// cost has tokens of which the client has not said what they cost; there may be two of one model.
	Used() []spend.Model
	// Session is the client's own name for the session, "" while it is not known.
	Session() string
	// Trying is the fault of the service that the client tries to overcome just now, or
	// zero: its last words were that it tries again.
	Trying() fault.Fault
	// Waits reports whether the client waits for its service, as far as its lines tell: its run
	// has not ended, and no tool of its agent runs. It is false for a client that does not tell.
	Waits() bool
	// End judges how the run ended that has exited with this code, at this time. It is the one place
	// that knows what the client's errors mean. A time of day that the client names is meant in the
	// zone of at.
	End(code int, at time.Time) End
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
	// Gone: it could not load the session that it was to go on with.
	Gone Verdict = "gone"
)

// End is how a run ended.
type End struct {
	Verdict Verdict
	// Reason is one sentence, "" for Finished and ByExitCode.
	Reason string
	// Fault is what kept the client from its work, where its own words or exit code tell; what an agent
	// or a tool prints never does. The zero Fault says nothing.
	Fault fault.Fault
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
