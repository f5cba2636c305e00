package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/run"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
)

type upOptions struct {
	polecats   int
	resized    bool // --polecats was given
	untilIdle  bool
	timeout    time.Duration
	logFormat  string
	forceCount bool
	standby    bool
	plain      bool
}

// AddFlags puts the options on a command.
func (o *upOptions) AddFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.polecats, "polecats", 0, "run a pool of `N` polecats instead of the definition's")
	fs.BoolVar(&o.untilIdle, "until-idle", false, "end when nothing is left to do (exit 7 when beads wait for a person)")
	fs.BoolVar(&o.forceCount, "force-count", false, forceCountUsage())
	fs.BoolVar(&o.standby, "standby", false, "if another process runs the rig, wait to take over")
	fs.BoolVar(&o.plain, "plain", false, "print plain lines, also on a terminal")
	o.addCommon(fs)
}

func forceCountUsage() string {
	return fmt.Sprintf("allow more than %d polecats", definition.MaxPolecats)
}

func (o *upOptions) addCommon(fs *pflag.FlagSet) {
	fs.DurationVar(&o.timeout, "timeout", 0, "end with exit 6 after this `duration`")
	fs.StringVar(&o.logFormat, "log-format", "text", "print log lines as `text|json`; --json means json")
}

func newUpCmd(a *app) *cobra.Command {
	var o upOptions
	return withFlags(&o, &cobra.Command{
		Use:   "up",
		Short: "Run the whole rig: mayor, polecats, refinery and witness",
		Long: `Run every agent of the rig in this process. An agent that another process
already runs is left alone, and taken over when that process ends. After Ctrl-C
nothing new is started, and running work may finish. A second Ctrl-C, or TERM,
ends the rig within seconds; the next start continues the workers' sessions
where they stopped. Decisions that wait for you are printed at once, each with
the command that answers it. On a terminal, two lines stay at the bottom: who is
working, what waits for you, what has landed. If another process already runs
the whole rig, the exit code is 4.`,
		Example: "  chipset up\n  chipset up --until-idle --timeout 2h\n  chipset up --polecats 8 --log-format json",
		Args:    nargs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.resized = cmd.Flags().Changed("polecats")
			return runUp(cmd.Context(), a, o)
		},
	})
}

func runUp(ctx context.Context, a *app, o upOptions) error {
	say, err := a.linePrinter(o.logFormat)
	if err != nil {
		return err
	}
	r, err := a.openRig(ctx)
	if err != nil {
		return err
	}
	began := r.Clock.Now()
	var terminal io.Writer
	if _, is := a.terminal(); is && o.logFormat == "text" && !a.json && a.env("TERM") != "dumb" {
		a.footer = &footer{w: a.stdout, none: o.plain}
		terminal = a.footer
	}
	a.tellCopied(r)
	if !o.resized {
		o.polecats = len(r.Def.AgentsOf(definition.RolePolecat))
	}
	def, err := r.Def.WithPolecats(o.polecats, o.forceCount)
	if err != nil {
		return withHint(err, fmt.Sprintf("--force-count allows up to %d", definition.MaxForcedPolecats))
	}
	named := r.Def // a smaller pool runs fewer polecats and retires none
	if len(def.AgentsOf(definition.RolePolecat)) > len(named.AgentsOf(definition.RolePolecat)) {
		named = def
	}
	if err := r.Prepare(ctx, named); err != nil {
		return err
	}
	say("sandbox of workers and tests: %s", sandbox.Describe(sandbox.Mode(def.Sandbox), def.Network.Restricted))
	agents, err := agentsOf(def)
	if err != nil {
		return err
	}
	if beads, _, err := r.Beads.Summaries(); err == nil && len(beads) == 0 && !o.untilIdle {
		say("no work yet: chipset work add \"What is to be done\" in another terminal")
	}
	err = a.runAgents(ctx, r, say, run.UpOptions{UntilIdle: o.untilIdle, Timeout: o.timeout, Agents: agents, Sessions: true, Standby: o.standby, Needs: true, Terminal: terminal, Preflight: true})
	if !errors.Is(err, state.ErrConflict) && !errors.Is(err, state.ErrNoTree) {
		a.summarize(ctx, r, say, began)
	}
	return err
}

// summarize prints what the rig has done since an instant, even after an interrupt, which has ended ctx.
func (a *app) summarize(ctx context.Context, r *rig.Rig, say func(string, ...any), since state.Time) {
	summary, err := view.Summarize(context.WithoutCancel(ctx), r, since)
	if err != nil {
		a.warnf("summary: %v", err)
		return
	}
	say("%s", summary)
}

// tellCopied warns that the rig runs on a copy of its definition.
func (a *app) tellCopied(r *rig.Rig) {
	if r.DefCopied {
		a.warnf("%s is gone from the checkout; using the one of the last start", rig.DefinitionName)
	}
}

// agentsOf returns the agents of a definition that have a process.
func agentsOf(def *definition.Definition) ([]state.AgentID, error) {
	var ids []state.AgentID
	for _, agent := range def.Agents() {
		if agent.Role == definition.RoleCrew {
			continue
		}
		id, err := state.ParseAgentID(agent.ID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// notified returns the value of $CHIPSET_NOTIFY.
func (a *app) notified() (run.Notification, error) {
	switch value := a.env(envNotify); value {
	case "":
		return run.Notified, nil
	case "off":
		return run.Unnotified, nil
	default:
		return run.Notified, usagef("$%s is %q; the only value is off", envNotify, value)
	}
}

func (a *app) runAgents(ctx context.Context, r *rig.Rig, say func(string, ...any), opts run.UpOptions) error {
	notified, err := a.notified()
	if err != nil {
		return err
	}
	p, err := run.NewProcess(r, notified, say)
	if err != nil {
		return err
	}
	defer p.Close()
	drain := make(chan struct{})
	a.interrupts.onFirst(func() { close(drain) })
	opts.Drain = drain
	if a.footer != nil && !a.footer.none {
		defer a.footer.follow(ctx, a, p)()
	}
	err = run.Up(ctx, p, opts)
	var waiting *run.Waiting
	switch {
	case errors.As(err, &waiting):
		hint := "chipset inbox says why, with the commands that answer it"
		if needs, failed := a.needs(ctx, r); failed == nil && len(needs) == 0 {
			hint = "nothing waits for a decision of yours; chipset why BEAD says what a bead waits for"
		}
		return withHint(exitWith(codeWaiting, err), hint)
	case errors.Is(err, run.ErrTimeout):
		return exitWith(codeTimeout, err)
	}
	return err
}

// linePrinter returns a function that prints the lines of a running rig, one at a time.
func (a *app) linePrinter(format string) (func(string, ...any), error) {
	if a.json {
		format = "json"
	}
	var mu sync.Mutex
	switch format {
	case "text":
		return func(text string, args ...any) {
			line := a.clock().Format("15:04:05.000") + "  " + clean(fmt.Sprintf(text, args...))
			if a.footer != nil {
				a.footer.print(line)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			a.printf("%s\n", line)
		}, nil
	case "json":
		return func(text string, args ...any) {
			line, err := state.EncodeLine(map[string]string{"time": a.clock.Now().String(), "text": fmt.Sprintf(text, args...)})
			if err != nil {
				return // two strings always encode
			}
			mu.Lock()
			defer mu.Unlock()
			a.printf("%s", line)
		}, nil
	}
	return nil, usagef("--log-format %q is not text or json", format)
}
