package bd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// MaxLine bounds a line, in bytes: what a bead may hold, and what escaping adds.
const MaxLine = 4 << 20

// Line is an issue and its line number.
type Line struct {
	Number int
	Issue  Issue
}

// Problem is an error in a line.
type Problem struct {
	Line int
	Err  error
}

func (p Problem) Error() string { return fmt.Sprintf("line %d: %v", p.Line, p.Err) }

// Unwrap returns Err.
func (p Problem) Unwrap() error { return p.Err }

// Problems are the errors of an import, in the order of the lines. They wrap
// actor.ErrInvalid for JSON that is not an issue, state.ErrNotFound for an unknown
// dependency, state.ErrConflict for a cycle and for a duplicate ID, and
// state.ErrTooLarge.
type Problems []Problem

// mostProblems is how many problems are listed.
const mostProblems = 20

func (ps Problems) Error() string {
	var b strings.Builder
	for i, p := range ps {
		if i == mostProblems {
			fmt.Fprintf(&b, "\n… and %d lines more", len(ps)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.Error())
	}
	return b.String()
}

// Unwrap returns each problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i := range ps {
		errs[i] = ps[i]
	}
	return errs
}

// Read reads every line. Empty lines and a byte order mark are skipped. The error is a
// Problems, or the error of the reader.
func Read(from io.Reader) ([]Line, error) {
	in := bufio.NewReaderSize(from, 64<<10)
	var lines []Line
	var bad Problems
	for n := 1; ; n++ {
		text, tooLong, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		text = bytes.TrimSpace(text)
		switch {
		case tooLong:
			bad = append(bad, Problem{n, fmt.Errorf("%w: more than %d bytes", state.ErrTooLarge, MaxLine)})
		case len(text) > 0:
			i, why := Decode(text)
			if why != nil {
				bad = append(bad, Problem{n, why})
			} else {
				lines = append(lines, Line{n, i})
			}
		}
		if err != nil {
			break
		}
	}
	if len(bad) > 0 {
		return nil, bad
	}
	return lines, nil
}

func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > MaxLine; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// Decode reads one line. Errors: actor.ErrInvalid, state.ErrTooLarge.
func Decode(line []byte) (Issue, error) {
	var i Issue
	var broken *state.Corruption
	if err := state.Decode("line", line, &i); errors.As(err, &broken) {
		why := strings.Replace(broken.Reason, "the file ", "it ", 1)
		switch {
		case line[0] == '[':
			why = "it begins a JSON array; an issue a line is wanted, as bd export prints them"
		case bytes.HasPrefix(line, []byte("<<<<<<<")), bytes.HasPrefix(line, []byte("=======")), bytes.HasPrefix(line, []byte(">>>>>>>")):
			why = "it is a conflict marker of git"
		}
		return i, actor.Invalidf("%s", why)
	} else if err != nil {
		return i, err
	}
	if i.ignored() != "" && i.ID == "" {
		return i, nil
	}
	return i, i.check()
}

// check reports what no bead could hold.
func (i *Issue) check() error {
	if err := actor.OneLine("the id", i.ID, 255); err != nil {
		return err
	}
	for n := range i.Dependencies {
		if err := actor.OneLine("depends_on_id", i.Dependencies[n].DependsOnID, 255); err != nil {
			return err
		}
	}
	if i.Status == statusTombstone || i.ignored() != "" {
		return nil
	}
	if i.Priority < 0 || i.Priority > 4 {
		return actor.Invalidf("priority is %d, not 0 to 4", i.Priority)
	}
	var b bead.Bead
	i.fill(&b, false)
	return actor.CheckBead(&b)
}
