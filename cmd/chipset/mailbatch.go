package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// maxBatchLine bounds one line of a batch: a message, and what escaping adds.
const maxBatchLine = 8 * mail.MaxSize

func runMailBatch(ctx context.Context, cmd *cobra.Command, args []string, a *app) error {
	stray := ""
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "batch" && cmd.InheritedFlags().Lookup(f.Name) == nil {
			stray = "--" + f.Name
		}
	})
	if len(args) > 0 {
		stray = args[0]
	}
	if stray != "" {
		return usagef("--batch reads everything from standard input; leave out %s", stray)
	}
	me, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	// Lines are read ahead while those before them are made durable, so that a
	// fast writer is answered in groups and a slow one line by line.
	ahead := make(chan batchLine, batchMost)
	go readLines(ctx, a.stdin, ahead)
	var failed tally
	for {
		lines, err := take(ctx, ahead)
		for _, s := range sendLines(ctx, me, lines) {
			failed.line(a, string(s.name), "", s.err)
		}
		if err := failed.flush(a); err != nil {
			return err
		}
		switch {
		case errors.Is(err, io.EOF):
			return failed.err("mail send --batch")
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("mail send --batch: standard input: %w", err)
		}
	}
}

// readLine reads one line. What exceeds maxBatchLine is skipped, not stored.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxBatchLine {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// batchLine is one line of standard input, or what ended it.
type batchLine struct {
	text    []byte
	tooLong bool
	err     error
}

// batchMost is how many lines are made durable together at most.
const batchMost = 1024

// readLines sends every line that is not empty, and at last the error that ended
// the input.
func readLines(ctx context.Context, from io.Reader, to chan<- batchLine) {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		text, tooLong, err := readLine(in)
		if text = bytes.TrimSpace(text); tooLong || len(text) > 0 {
			select {
			case to <- batchLine{text: text, tooLong: tooLong}:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			select {
			case to <- batchLine{err: err}:
			case <-ctx.Done():
			}
			return
		}
	}
}

// take waits for a line, and returns it with all others that are available. The error
// is the one that ended the input.
func take(ctx context.Context, ahead <-chan batchLine) ([]batchLine, error) {
	var lines []batchLine
	for {
		var l batchLine
		if len(lines) == 0 {
			select {
			case l = <-ahead:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		} else {
			select {
			case l = <-ahead:
			default:
				return lines, nil
			}
		}
		if l.err != nil {
			return lines, l.err
		}
		if lines = append(lines, l); len(lines) == batchMost {
			return lines, nil
		}
	}
}

// sent is the result for a line.
type sent struct {
	name mail.Name
	err  error
}

func sendLines(ctx context.Context, me *actor.Actor, lines []batchLine) []sent {
	out := make([]sent, len(lines))
	var ms []mail.Message
	var at []int
	for i, l := range lines {
		m, err := l.message(me)
		if err != nil {
			out[i].err = err
			continue
		}
		ms, at = append(ms, m), append(at, i)
	}
	names, errs := me.SendAll(ctx, ms)
	for k, i := range at {
		out[i] = sent{name: names[k], err: errs[k]}
	}
	return out
}

// message decodes a line, which must not be from another agent.
func (l *batchLine) message(me *actor.Actor) (mail.Message, error) {
	var m mail.Message
	if l.tooLong {
		return m, fmt.Errorf("message: %w: a line of more than %d bytes", state.ErrTooLarge, maxBatchLine)
	}
	var broken *state.Corruption
	if err := state.Decode("message", l.text, &m); errors.As(err, &broken) {
		return m, usagef("message: %s", strings.Replace(broken.Reason, "the file ", "the line ", 1))
	} else if err != nil {
		return m, err
	}
	if m.From != "" && m.From != me.ID {
		return m, state.Conflictf("message", "from %s, but you speak as %s", m.From, me.ID)
	}
	if m.To == "" {
		return m, usagef("message: no recipient (to)")
	}
	return m, nil
}
