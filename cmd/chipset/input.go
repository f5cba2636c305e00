package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/simulate"
	"github.com/gastown-chipset/chipset/state"
)

// textInput is text from one of an argument, a file, or standard input.
type textInput struct {
	// flag and fileFlag name the flags in errors, such as "--body".
	flag, fileFlag string
	text, file     string
	textGiven      bool
}

// read returns the text. limit is its greatest size, in bytes.
func (t textInput) read(ctx context.Context, a *app, limit int64) (string, error) {
	if t.file == "" {
		return actor.Text(t.flag, t.text, limit)
	}
	if t.textGiven {
		return "", usagef("%s and %s can't be combined", t.flag, t.fileFlag)
	}
	data, err := a.readInput(ctx, t.fileFlag, t.file, limit+1)
	if err != nil {
		return "", err
	}
	what := t.fileFlag + " " + t.file
	if int64(len(data)) > limit {
		return "", fmt.Errorf("%s: %w: more than %d bytes", what, state.ErrTooLarge, limit)
	}
	return actor.Text(what, string(data), limit)
}

// openInput is openFile where - is standard input.
func (a *app) openInput(flag, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.stdin), nil
	}
	return a.openFile(flag, name)
}

// openFile opens a file that a flag names. In a command that a broker runs, the caller
// has opened it.
func (a *app) openFile(flag, name string) (*os.File, error) {
	if a.given != nil {
		if f := a.given[name]; f != nil {
			return f, nil
		}
		return nil, usagef("%s: %s was not handed over to the broker", flag, name)
	}
	f, err := os.Open(a.abs(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s %s: %w", flag, name, state.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return f, nil
}

// fileFlag registers a flag that names a file to read; - is standard input.
func fileFlag(fs *pflag.FlagSet, to *string, name, short, usage string) {
	fs.StringVarP(to, name, short, "", usage)
	_ = cobra.MarkFlagFilename(fs, name) // fails only for a flag that there is not
}

// readInput reads at most limit bytes of a file that a flag names; - is standard input. The file
// may be a pipe, as from <(…): if nobody writes to it, the end of ctx ends the wait.
func (a *app) readInput(ctx context.Context, flag, name string, limit int64) ([]byte, error) {
	return untilDone(ctx, func() ([]byte, error) {
		f, err := a.openInput(flag, name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, limit))
		if err != nil {
			err = fmt.Errorf("%s: %w", flag, err)
		}
		return data, err
	})
}

// untilDone waits for read, or for the end of ctx. A read that can't be interrupted
// is abandoned: it holds no more than its limit, and ends with the process.
func untilDone[T any](ctx context.Context, read func() (T, error)) (data T, err error) {
	done := make(chan struct{})
	var got T
	var gotErr error
	go func() {
		got, gotErr = read()
		close(done)
	}()
	select {
	case <-ctx.Done():
		return data, ctx.Err()
	case <-done:
		return got, gotErr
	}
}

// parseAge parses a duration, including days such as 7d.
func parseAge(s string) (time.Duration, error) {
	d, err := simulate.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 1h30m or 7d", s)
	}
	return d, nil
}

// parseSince parses an instant: how long ago, RFC 3339, or a day in local time.
func parseSince(s string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	age, err := parseAge(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a duration such as 1h, an RFC 3339 time or a day", s)
	}
	return now.Add(-age), nil
}

// localTime formats an instant for people.
func localTime(t state.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
