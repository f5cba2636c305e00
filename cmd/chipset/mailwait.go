package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/wording"
)

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
	return withFlags(&opts, &cobra.Command{
		Use:   "wait",
		Short: "Wait for unread mail, and print the name of the first message",
		Long: `Wait until there is unread mail in your mailbox, and print the name of the
message to handle first. If there is unread mail already, return at once.
Nothing is marked. Mail for an agent's role process counts only with --type.
Exit 6 when the time is up.`,
		Example: "  chipset mail wait --timeout 10m\n  chipset mail wait --type plan_approval_response --timeout 1h",
		Args:    nargs(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runMailWait(cmd.Context(), opts, a) },
	})
}

func runMailWait(ctx context.Context, opts mailWaitOptions, a *app) error {
	s, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	if opts.kind != "" && !slices.Contains(mail.Types(), mail.Type(opts.kind)) && !strings.HasPrefix(opts.kind, "x-") {
		return usagef("--type %q is not one of %s, or your own x-…", opts.kind, wording.Join(mail.Types(), ", "))
	}
	filter := actor.MailFilter{Type: mail.Type(opts.kind)}
	if opts.from != "" {
		if filter.From, err = actor.Lookup(s.Rig, opts.from); err != nil {
			return err
		}
	}
	e, err := s.WaitMail(ctx, opts.timeout, filter)
	return a.did(&e, err, "%s\n", e.Name)
}
