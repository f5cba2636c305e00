package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// errHops is returned for a reply to a message that may make no more hops.
var errHops = errors.New("its hops (ttl) are used up")

type mailReplyOptions struct {
	body, bodyFile, subject, kind, priority string
	bodyGiven                               bool
}

// AddFlags registers the flags of mail reply.
func (o *mailReplyOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.body, "body", "b", "", "the body, as `text`")
	fs.StringVar(&o.bodyFile, "body-file", "", "read the body from a `file`; - is standard input")
	fs.StringVarP(&o.subject, "subject", "s", "", "the subject (default: Re: that of the message)")
	fs.StringVar(&o.kind, "type", "", "the `type` (default: the response to a request, else coordination)")
	fs.StringVar(&o.priority, "priority", "", "`urgent`, normal or low (default: that of the message)")
}

func newMailReplyCmd(a *app) *cobra.Command {
	var opts mailReplyOptions
	cmd := &cobra.Command{
		Use:   "reply NAME --body B",
		Short: "Answer a message of one's own mailbox",
		Long: `Answer a message of one's own mailbox: recipient, subject, thread, reference, task and
callback come from it. The message that was answered is then marked read, as by mail read.`,
		Example: "  chipset mail reply 2026-03-05T10-30-00.000000000Z-mayor.json --body \"Will do\"",
		Args:    nargs(1, 1, "the name of a message"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.bodyGiven = cmd.Flags().Changed("body")
			if !opts.bodyGiven && opts.bodyFile == "" {
				return usagef("mail reply: --body or --body-file is required")
			}
			return runMailReply(cmd.Context(), opts, args[0], a)
		},
	}
	opts.AddFlags(cmd.Flags())
	return cmd
}

func runMailReply(ctx context.Context, opts mailReplyOptions, given string, a *app) error {
	r, speaker, err := a.openSpeaker(ctx)
	if err != nil {
		return err
	}
	_, e, err := mailboxFlag{mailbox: string(speaker)}.find(a, r, given)
	if err != nil {
		return err
	}
	body, err := textInput{flag: "--body", fileFlag: "--body-file", text: opts.body, file: opts.bodyFile, textGiven: opts.bodyGiven}.read(ctx, a, mail.MaxSize)
	if err != nil {
		return err
	}
	m, err := opts.answer(&e, speaker)
	if err != nil {
		return err
	}
	m.Body = body
	if err := checkMessage(m, speaker); err != nil {
		return err
	}
	name, err := r.Send(ctx, m)
	if err != nil {
		return err
	}
	a.printf("%s\n", name)
	if !e.Read && retires(speaker, e.Type) {
		if err := r.MarkRead(ctx, speaker, &e); err != nil {
			return fmt.Errorf("the reply is sent, but %s is not marked: %w", e.Name, err)
		}
	}
	return nil
}

// answer is the reply to a message, without its body.
func (o *mailReplyOptions) answer(e *mail.Entry, speaker state.AgentID) (mail.Message, error) {
	m := mail.Message{From: speaker, To: e.From, Subject: o.subject, Type: mail.Type(o.kind), Priority: mail.Priority(o.priority),
		Thread: e.Thread, InReplyTo: string(e.Name), Ref: e.Ref, Task: e.Task, Callback: e.Callback}
	if m.Subject == "" {
		m.Subject = e.Subject
		if !strings.HasPrefix(strings.ToLower(m.Subject), "re:") {
			m.Subject = "Re: " + m.Subject
		}
	}
	if m.Thread == "" {
		m.Thread = string(e.Name)
	}
	if m.Priority == "" {
		m.Priority = e.Priority
		switch m.Priority {
		case mail.Urgent, mail.Normal, mail.Low:
		default: // another writer's own word
			m.Priority = mail.Normal
		}
	}
	if m.Type == "" {
		m.Type = responseTo(e.Type)
	}
	// Only who counts hops is held to them: an ordinary conversation has no end.
	if e.TTL != nil || len(e.Trace) > 0 {
		m.Trace = append(append([]state.AgentID{}, e.Trace...), speaker)
	}
	if e.TTL != nil {
		if *e.TTL <= 0 {
			return m, fmt.Errorf("reply to %s: %w", e.Name, errHops)
		}
		left := *e.TTL - 1
		m.TTL = &left
	}
	return m, nil
}

func responseTo(t mail.Type) mail.Type {
	switch t {
	case mail.ShutdownRequest:
		return mail.ShutdownResponse
	case mail.PlanRequest:
		return mail.PlanResponse
	case mail.PermissionRequest:
		return mail.PermissionResponse
	default:
		return mail.Coordination
	}
}
