package agentcli

import (
	"bytes"
	"time"

	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

// Reader interprets a session's output, a line at a time. The output is hostile input:
// it may contain text of others, which is only ever counted or quoted.
type Reader interface {
	// Line takes one whole line without its end.
	Line(line []byte)
	// Figures are those of the session so far, all its runs together.
	Figures() Figures
	// Used returns what the session has used so far, by model, "" if the client names none. An entry without a
	// cost holds tokens whose cost the client has not named, so a model may have two entries.
	Used() []spend.Model
	// Session returns the client's own ID of the session, "" while it is not known.
	Session() string
	// Trying returns the fault because of which the client is retrying a request, or has
	// failed without ending; zero if neither.
	Trying() fault.Fault
	// Waits reports whether the client is waiting for its service: its run has not ended, and
	// no tool is running. It is false for a client whose output does not show that.
	Waits() bool
	// End judges a run that exited with this code at this time. It is the one place that
	// knows what the client's errors mean. A time of day in the output is in the zone of at.
	End(code int, at time.Time) End
	// Resumed tells the reader that another run of the same session begins.
	Resumed()
}

// Verdict is how a run ended, as the client's output tells.
type Verdict string

const (
	// ByExitCode: the output says nothing, the exit code counts.
	ByExitCode Verdict = ""
	// Finished: the agent ended its turn by itself, without an error.
	Finished Verdict = "finished"
	// Unfinished: the run ended before its turn did. The session can be resumed.
	Unfinished Verdict = "unfinished"
	// Refused: the run ended after a permission was refused.
	Refused Verdict = "refused"
	// Broken: the run failed for a reason that resuming would not change.
	Broken Verdict = "broken"
	// Gone: the client could not load the session that it should resume.
	Gone Verdict = "gone"
)

// End is how a run ended.
type End struct {
	Verdict Verdict
	// Reason is one sentence, "" for Finished and ByExitCode.
	Reason string
	// Fault is what kept the client from its work, if its own words or exit code tell. What an agent
	// or a tool prints never counts. The zero Fault is none.
	Fault fault.Fault
	// Said is the last text of the agent or its client.
	Said string
}

// Limits of what is kept of an output.
const (
	// maxLine bounds a line that is parsed; longer ones hold files and pictures,
	// never a figure.
	maxLine = 4 << 20
	// maxSaid bounds a quotation in bytes, maxNoise the number of lines kept that are not JSON.
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
