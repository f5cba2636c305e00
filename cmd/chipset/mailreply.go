package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/mail"
)

type mailReplyOptions struct {
	body, bodyFile, subject, kind, priority string
	state                                   string
	bodyGiven                               bool
}

// AddFlags registers the flags of mail reply.
func (o *mailReplyOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.body, "body", "b", "", "the body, as `text`")
	fileFlag(fs, &o.bodyFile, "body-file", "", "read the body from a `file`; - is standard input")
	fs.StringVarP(&o.subject, "subject", "s", "", "the subject, one `line` (default: Re: that of the message)")
	fs.StringVar(&o.kind, "type", "", "the `type` (default: the response to a request, else coordination)")
	fs.StringVar(&o.state, "state", "", "move the task of the message to `accepted|working|completed|rejected|failed`")
	fs.StringVar(&o.priority, "priority", "", "how soon it is read, `urgent|normal|low` (default: that of the message)")
}

func newMailReplyCmd(a *app) *cobra.Command {
	var opts mailReplyOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "reply MESSAGE --body B",
		Short: "Reply to a message in your mailbox",
		Long: `Reply to a message in your mailbox. Recipient, subject, thread, reference, task
and callback come from that message, which is then marked as read, as with mail
read.`,
		Example: "  chipset mail reply 2026-03-05T10-30-00.000000000Z-mayor.json --body \"Will do\"",
		Args:    nargs(1, 1, "the name of a message"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.bodyGiven = cmd.Flags().Changed("body")
			if !opts.bodyGiven && opts.bodyFile == "" {
				return usagef("--body or --body-file is required")
			}
			return runMailReply(cmd.Context(), opts, args[0], a)
		},
	})
}

func runMailReply(ctx context.Context, opts mailReplyOptions, given string, a *app) error {
	me, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	e, err := me.Own(strings.TrimPrefix(given, string(me.ID)+"/"))
	if err != nil {
		return err
	}
	body, err := textInput{flag: "--body", fileFlag: "--body-file", text: opts.body, file: opts.bodyFile, textGiven: opts.bodyGiven}.read(ctx, a, mail.MaxSize)
	if err != nil {
		return err
	}
	name, err := me.Reply(ctx, &e, actor.Answer{Body: body, Subject: opts.subject, Type: mail.Type(opts.kind), Priority: mail.Priority(opts.priority), State: mail.TaskState(opts.state)})
	return a.sent(err, outcome{Did: "sent", Name: name, To: string(e.From)})
}
