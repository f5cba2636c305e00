package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

type logOptions struct {
	follow                   bool
	since, agent, bead, kind string
	limit                    int
}

// AddFlags registers the flags of log.
func (o *logOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.follow, "follow", "f", false, "keep printing new events until interrupted")
	fs.StringVar(&o.since, "since", "", "only events since this `time`: how long ago (1h, 7d), RFC 3339, or a day")
	fs.StringVar(&o.agent, "agent", "", "only events of or about this `agent`")
	fs.StringVar(&o.bead, "bead", "", "only events about this `bead`")
	fs.StringVar(&o.kind, "type", "", "only events of this `type`, or of a group of types: mail.sent, mail")
	fs.IntVarP(&o.limit, "limit", "n", 0, "only the latest `N`")
}

func newLogCmd(a *app) *cobra.Command {
	var opts logOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "log",
		Short:   "Print the event log: everything that happened, oldest first",
		Example: "  chipset log --since 1h --type mail\n  chipset log --follow --agent polecat-alpha --json",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runLog(cmd.Context(), opts, a) },
	})
}

func runLog(ctx context.Context, opts logOptions, a *app) error {
	for _, id := range []struct{ flag, value string }{{"--agent", opts.agent}, {"--bead", opts.bead}} {
		if err := state.CheckID(id.value); id.value != "" && err != nil {
			return usagef("%s: %v", id.flag, err)
		}
	}
	if !knownType(opts.kind) {
		return usagef("--type: no events of type %q (docs/state.md lists the types)", opts.kind)
	}
	var since time.Time
	if opts.since != "" {
		var err error
		if since, err = parseSince(opts.since, a.clock()); err != nil {
			return usagef("--since: %v", err)
		}
	}
	r, err := a.openState(ctx)
	if err != nil {
		return err
	}
	if err := opts.checkNames(r); err != nil {
		return err
	}
	reader := &logReader{app: a, rig: r, opts: &opts, since: since}
	if err := reader.more(opts.limit); err != nil || !opts.follow {
		return err
	}
	return actor.Wait(ctx, r, "log", 0, func() (bool, error) {
		return false, reader.more(0)
	}, event.Dir)
}

// checkNames returns a *state.Unknown for an unknown bead or agent.
func (o *logOptions) checkNames(r *rig.Rig) error {
	if o.bead != "" {
		if _, err := r.Beads.Get(o.bead); errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	if o.agent != "" {
		if _, err := actor.Lookup(r, o.agent); errors.Is(err, state.ErrNotFound) {
			return err
		}
	}
	return nil
}

// knownType reports whether a word is a type of events, the group of such types, or "".
func knownType(word string) bool {
	return word == "" || slices.ContainsFunc(event.Types(), func(t string) bool { return t == word || strings.HasPrefix(t, word+".") })
}

// logReader prints what was added to the log since it last looked.
type logReader struct {
	app   *app
	rig   *rig.Rig
	opts  *logOptions
	since time.Time
	at    event.Position
}

func (l *logReader) more(limit int) error {
	events, bad, at, err := l.rig.Events.Read(l.at, l.since)
	if err != nil {
		return err
	}
	l.at = at
	warnAll(l.app, bad)
	chosen := slices.DeleteFunc(events, func(e event.Event) bool { return !l.opts.match(&e) })
	if limit > 0 && len(chosen) > limit {
		chosen = chosen[len(chosen)-limit:]
	}
	for i := range chosen {
		if err := l.print(&chosen[i]); err != nil {
			return err
		}
	}
	return nil
}

func (l *logReader) print(e *event.Event) error {
	if l.app.json {
		line, err := state.EncodeLine(e)
		if err != nil {
			return err
		}
		_, err = l.app.stdout.Write(line)
		return err
	}
	fields := []string{string(e.Agent), string(e.Bead)}
	if e.Subject != "" && e.Subject != string(e.Agent) && e.Subject != string(e.Bead) {
		fields = append(fields, e.Subject)
	}
	if e.From != "" || e.To != "" {
		fields = append(fields, strings.TrimSpace(e.From+" → "+e.To))
	}
	fields = append(fields, e.Text)
	_, err := fmt.Fprintf(l.app.stdout, "%s  %-18s %s\n", localTime(e.Time), clean(e.Type), clean(strings.Join(actor.Words(fields), "  ")))
	return err
}

func (o *logOptions) match(e *event.Event) bool {
	if o.agent != "" && string(e.Agent) != o.agent && e.Subject != o.agent && e.From != o.agent && e.To != o.agent {
		return false
	}
	if o.bead != "" && string(e.Bead) != o.bead {
		return false
	}
	return o.kind == "" || e.Type == o.kind || strings.HasPrefix(e.Type, o.kind+".")
}
