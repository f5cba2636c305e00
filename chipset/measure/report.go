package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"text/tabwriter"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bench"
	"github.com/gastown-chipset/chipset/state/disk"
)

// Options say how much to measure.
type Options struct {
	// Dir lies on the file system that is measured.
	Dir string
	// Quick is a few seconds with rough figures instead of a minute.
	Quick bool
	Clock state.Clock
	// Echo starts a process that runs Echo on a tree; nil leaves that out.
	Echo func(ctx context.Context, root string) *exec.Cmd
	// Say tells what is being measured.
	Say func(format string, args ...any)
}

// Report is what was found.
type Report struct {
	Dir      string        `json:"dir"`
	Features disk.Features `json:"features"`
	Sends    []SendRow     `json:"sends"`
	Polls    []PollRow     `json:"polls"`
	Wakes    []WakeRow     `json:"wakes"`
	// Drift is the plain protocol at the end to that at the beginning: far from 1
	// the disk had a noisy spell, and the run is worth little.
	Drift float64 `json:"drift"`
}

// Run measures on scratch data below the folder, and removes it again.
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
	for _, senders := range []int{1, 8, 64, 0} {
		opts.Say("sends, %s", sendersText(senders))
		row, err := y.sends(ctx, senders, total, rounds)
		if err != nil {
			return nil, err
		}
		report.Sends = append(report.Sends, row)
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

func (r *Report) wake(ctx context.Context, y *yard, opts Options, n int) error {
	opts.Say("wake-up")
	row, err := y.wakeHere(ctx, n)
	if err != nil {
		return err
	}
	r.Wakes = append(r.Wakes, row)
	if opts.Echo == nil {
		return nil
	}
	row, err = y.wakeThere(ctx, n, opts.Echo)
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

// WriteText writes the report as tables for a person.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\t\n", args...) } // Flush tells
	line("durable sends per second\tplain protocol\tcheapest calls\tchipset\tto plain\tof cheapest")
	for _, s := range r.Sends {
		cheapest, of := "", ""
		if s.Cheapest > 0 {
			cheapest, of = fmt.Sprintf("%.0f", s.Cheapest), fmt.Sprintf("%.2f", s.OfCheapest)
		}
		line("%s\t%.0f\t%s\t%.0f\t%.1f ×\t%s", sendersText(s.Senders), s.Plain, cheapest, s.Own, s.Ratio, of)
	}
	line("\t\t\t\t\t")
	line("find 10 unread among, ms\tread everything\tcommand, first\tcommand, again\trunning role\tto everything")
	for _, p := range r.Polls {
		line("%d\t%.2f\t%.2f\t%.2f\t%.3f\t%.0f ×", p.Messages, p.Naive, p.First, p.Again, p.Running, p.Naive/p.Running)
	}
	line("\t\t\t\t\t")
	line("wake-up between, ms\tfrom acknowledgement p50\tp99\tfrom start p50\tp99\tthe send itself")
	for _, k := range r.Wakes {
		line("%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f", k.Between, k.P50, k.P99, k.Whole50, k.Whole99, k.Send)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nThe plain protocol at the end ran at %.2f of its speed at the beginning.\n", r.Drift)
	return err
}
