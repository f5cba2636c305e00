package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bench"
	"github.com/gastown-chipset/chipset/state/disk"
)

// Options are the options of Run.
type Options struct {
	// Dir is on the file system to measure.
	Dir string
	// Quick measures for seconds instead of a minute, with rough figures.
	Quick bool
	Clock state.Clock
	// Command starts a process that runs Echo, with "--echo" and a tree, or Sender, with
	// "--sender" and its arguments; nil leaves other processes out.
	Command Command
	// Say reports progress.
	Say func(format string, args ...any)
}

// Report is the result of Run.
type Report struct {
	Dir      string        `json:"dir"`
	Features disk.Features `json:"features"`
	Sends    []SendRow     `json:"sends"`
	Polls    []PollRow     `json:"polls"`
	Wakes    []WakeRow     `json:"wakes"`
	// Drift is the speed of the plain protocol at the end relative to that at the start. If
	// it is far from 1, the disk was busy with other work, and the figures are worth little.
	Drift float64 `json:"drift"`
}

// Run measures with scratch data in the folder, and removes the data.
func Run(ctx context.Context, opts Options) (report *Report, err error) {
	scratch, remove, err := bench.Scratch(opts.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	y, err := newYard(ctx, scratch, opts.Clock)
	if err != nil {
		return nil, err
	}
	report = &Report{Dir: opts.Dir, Features: disk.OS{}.Features(scratch), Sends: []SendRow{}, Polls: []PollRow{}, Wakes: []WakeRow{}}
	total, rounds, wakes, sizes := 1000, 5, 300, []int{1000, 10_000, 100_000}
	if opts.Quick {
		total, rounds, wakes, sizes = 200, 1, 50, []int{100, 1000}
	}
	before, err := y.plain(1, total)
	if err != nil {
		return nil, err
	}
	if err := report.send(ctx, y, opts, total, rounds); err != nil {
		return nil, err
	}
	for _, n := range sizes {
		opts.Say("polls, %d messages", n)
		row, err := y.poll(ctx, n, rounds)
		if err != nil {
			return nil, err
		}
		report.Polls = append(report.Polls, row)
	}
	if err := report.wake(ctx, y, opts, wakes); err != nil {
		return nil, err
	}
	after, err := y.plain(1, total)
	report.Drift = after / before
	return report, err
}

// crowded is how many processes send at once.
const crowded = 8

func (r *Report) send(ctx context.Context, y *yard, opts Options, total, rounds int) error {
	add := func(row SendRow, measure func(row SendRow) (SendRow, error)) error {
		opts.Say("sends, %s", row.text())
		row, err := measure(row)
		r.Sends = append(r.Sends, row)
		return err
	}
	for _, row := range []SendRow{{Senders: 1}, {Senders: 8}, {Senders: 64}, {Senders: 0}, {Senders: 8, Dirty: true}, {Senders: 64, Dirty: true}} {
		err := add(row, func(row SendRow) (SendRow, error) {
			if row.Dirty {
				return y.dirtySends(ctx, row.Senders, total, rounds)
			}
			return y.sends(ctx, row.Senders, total, rounds)
		})
		if err != nil {
			return err
		}
	}
	if opts.Command == nil {
		return nil
	}
	return add(SendRow{Senders: 1, Processes: crowded}, func(row SendRow) (SendRow, error) {
		return y.crowd(ctx, row.Processes, total, rounds, opts.Command)
	})
}

func (r *Report) wake(ctx context.Context, y *yard, opts Options, n int) error {
	opts.Say("wake-ups")
	row, err := y.wakeHere(ctx, n)
	if err != nil {
		return err
	}
	r.Wakes = append(r.Wakes, row)
	if opts.Command == nil {
		return nil
	}
	row, err = y.wakeThere(ctx, n, opts.Command)
	r.Wakes = append(r.Wakes, row)
	return err
}

func sendersText(n int) string {
	switch n {
	case 0:
		return "one batch"
	case 1:
		return "1 sender"
	}
	return fmt.Sprintf("%d senders", n)
}

// text describes the row.
func (s *SendRow) text() string {
	text := sendersText(s.Senders)
	if s.Processes > 1 {
		text = fmt.Sprintf("%d processes of one sender", s.Processes)
	}
	if s.Dirty {
		text += ", dirty page cache"
	}
	return text
}

// WriteText writes the report as tables for a person.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\t\n", args...) } // Flush tells
	line("durable sends per second\tplain protocol\tcheapest calls\tchipset\tto plain\tto cheapest")
	for _, s := range r.Sends {
		cheapest, of := "", ""
		if s.Cheapest > 0 {
			cheapest, of = fmt.Sprintf("%.0f", s.Cheapest), fmt.Sprintf("%.2f", s.OfCheapest)
		}
		line("%s\t%.0f\t%s\t%.0f\t%.1f ×\t%s", s.text(), s.Plain, cheapest, s.Own, s.Ratio, of)
	}
	line("\t\t\t\t\t")
	line("finding 10 unread among, in ms\tread everything\tcommand, first\tcommand, again\trunning role\tto everything")
	for _, p := range r.Polls {
		line("%d\t%.2f\t%.2f\t%.2f\t%.3f\t%.0f ×", p.Messages, p.Naive, p.First, p.Again, p.Running, p.Naive/p.Running)
	}
	line("\t\t\t\t\t")
	line("wake-up between, in ms\tfrom acknowledgement, p50\tp99\tfrom start, p50\tp99\tthe send alone")
	for _, k := range r.Wakes {
		line("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f", k.Between, k.P50, k.P99, k.Whole50, k.Whole99, k.Send)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nAt the end the plain protocol ran at %.2f times its speed at the start.\n", r.Drift)
	return err
}
