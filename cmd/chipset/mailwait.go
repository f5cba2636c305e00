package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// waitTick is how often a waiting command looks when notification is lost.
const waitTick = time.Second

// waitFor calls look until it says that it found something, after every change
// in one of the folders. what names the command; timeout 0 waits for ever. Errors: errTimeout, that of
// look, the context's.
func waitFor(ctx context.Context, r *rig.Rig, what string, timeout time.Duration, look func() (bool, error), folders ...state.Path) error {
	var news <-chan struct{}
	// Without notification the tick must do.
	if w, err := state.NewWatcher(r.Tree); err == nil {
		defer w.Close()
		if ch, err := w.Subscribe(folders...); err == nil {
			news = ch
		}
	}
	var over <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		if found, err := look(); found || err != nil {
			return err
		}
		select {
		case <-news:
		case <-tick.C:
		case <-over:
			return fmt.Errorf("%s: %w: nothing within %s", what, errTimeout, timeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type mailWaitOptions struct {
	timeout    time.Duration
	kind, from string
}

// AddFlags registers the flags of mail wait.
func (o *mailWaitOptions) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.timeout, "timeout", 0, "give up after this `duration` (default: never)")
	fs.StringVar(&o.kind, "type", "", "only mail of this `type`")
	fs.StringVar(&o.from, "from", "", "only mail from this `agent`")
}

func newMailWaitCmd(a *app) *cobra.Command {
	var opts mailWaitOptions
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait for unread mail; prints the name of the first message",
		Long: `Wait until there is unread mail in one's own mailbox, and print the name of the message
to take first. Mail that is there already counts; nothing is marked. The mail of an
agent's machinery counts only when --type asks for it. Exit 6 when the time is up.`,
		Example: "  chipset mail wait --timeout 10m\n  chipset mail wait --type plan_approval_response --timeout 1h",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runMailWait(cmd.Context(), opts, a) },
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runMailWait(ctx context.Context, opts mailWaitOptions, a *app) error {
	if opts.timeout < 0 {
		return usagef("mail wait: --timeout %s is negative", opts.timeout)
	}
	r, id, err := a.openSpeaker(ctx)
	if err != nil {
		return err
	}
	if opts.from != "" {
		from, err := lookup(r, opts.from)
		if err != nil {
			return err
		}
		opts.from = string(from)
	}
	box := r.Mailbox(id)
	return waitFor(ctx, r, "mail wait", opts.timeout, func() (bool, error) {
		unread, _, err := box.Unread()
		if err != nil {
			return false, err
		}
		unread = slices.DeleteFunc(unread, func(e mail.Entry) bool { return !opts.wants(id, &e) })
		if len(unread) == 0 {
			return false, nil
		}
		mail.ProcessingOrder(unread, r.Mayor())
		a.printf("%s\n", unread[0].Name)
		return true, nil
	}, box.Dir())
}

func (o *mailWaitOptions) wants(reader state.AgentID, e *mail.Entry) bool {
	switch {
	case o.from != "" && string(e.From) != o.from:
		return false
	case o.kind != "":
		return string(e.Type) == o.kind
	}
	return retires(reader, e.Type)
}
