package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/event"
)

type mailSearchOptions struct {
	mailboxFlag
	archived bool
}

// AddFlags registers the flags of mail search.
func (o *mailSearchOptions) AddFlags(fs *pflag.FlagSet) {
	o.mailboxFlag.AddFlags(fs)
	fs.BoolVar(&o.archived, "archived", false, "search the archive too")
}

func newMailSearchCmd(a *app) *cobra.Command {
	var opts mailSearchOptions
	return withFlags(&opts, &cobra.Command{
		Use:     "search TEXT",
		Short:   "Search mail by subject, body, sender, type, thread or bead",
		Long:    "Find mail with a text in its subject, body, sender, type, thread, id or bead.\nCase does not matter. Nothing is marked.",
		Example: "  chipset mail search conflict --archived",
		Args:    nargs(1, 1, "one text (quote it)"),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, args []string) error {
			owner, err := opts.owner(a, r)
			if err != nil {
				return err
			}
			box := r.Mailbox(owner)
			entries, bad, err := box.List()
			if err != nil {
				return err
			}
			if opts.archived {
				old, alsoBad, err := box.Archive()
				if err != nil {
					return err
				}
				entries, bad = append(old, entries...), append(alsoBad, bad...)
				mail.Sort(entries)
			}
			warnAll(a, bad)
			return a.showMailList(slices.DeleteFunc(entries, func(e mail.Entry) bool { return !mentions(&e, strings.ToLower(args[0])) }))
		}),
	})
}

func mentions(e *mail.Entry, lower string) bool {
	fields := []string{e.Subject, e.Body, string(e.From), string(e.Type), e.Thread, e.ID, string(e.Name)}
	if e.Ref != nil {
		fields = append(fields, string(e.Ref.BeadID), string(e.Ref.AssignmentID))
	}
	return slices.ContainsFunc(fields, func(f string) bool { return strings.Contains(strings.ToLower(f), lower) })
}

type mailArchiveOptions struct {
	mailboxFlag
	olderThan string
	unread    bool
}

// AddFlags registers the flags of mail archive.
func (o *mailArchiveOptions) AddFlags(fs *pflag.FlagSet) {
	o.mailboxFlag.AddFlags(fs)
	fs.StringVar(&o.olderThan, "older-than", "", "archive mail older than this `duration` (default: mail.retention in chipset.yaml)")
	fs.BoolVar(&o.unread, "unread", false, "archive unread mail too; it will not be delivered any more")
}

func newMailArchiveCmd(a *app) *cobra.Command {
	var opts mailArchiveOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "archive",
		Short: "Archive old read mail, and print the names",
		Long: `Move read mail that is older than the retention to archive/, and print the
names, which stay the same. Unread mail is moved only with --unread. Archived
mail stays searchable.`,
		Example: "  chipset mail archive --older-than 0s",
		Args:    nargs(0, 0, ""),
		RunE: with(a.openActor, func(ctx context.Context, me *actor.Actor, _ []string) error {
			owner, err := opts.owner(a, me.Rig)
			if err != nil {
				return err
			}
			age := defaultRetention
			if me.Def != nil {
				age = me.Def.Mail.Retention
			}
			if opts.olderThan != "" {
				if age, err = parseAge(opts.olderThan); err != nil {
					return usagef("--older-than: %v", err)
				}
			}
			moved, err := me.ArchiveMail(ctx, owner, age, opts.unread)
			var all []outcome
			for _, name := range moved {
				all = append(all, outcome{Did: "archived", Name: name, AgentID: owner})
			}
			return a.named(all, err)
		}),
	})
}

// defaultRetention is used where no definition says otherwise.
const defaultRetention = 24 * time.Hour

func newMailTraceCmd(a *app) *cobra.Command {
	var opts mailboxFlag
	return withFlags(&opts, &cobra.Command{
		Use:   "trace MESSAGE",
		Short: "Show what happened to a message",
		Long: `Show what happened to a message, from the event log: when it was stored, shown
to a model in full (injected), followed by an answer of that model (seen),
marked as read (handled), and archived; by whom, and in which session. The last
line is its present status. --json prints the events.`,
		Example: "  chipset mail trace mayor/2026-03-05T10-30-00.000000000Z-polecat-alpha.json",
		Args:    nargs(1, 1, "the name of a message"),
		RunE: with(a.openState, func(_ context.Context, r *rig.Rig, args []string) error {
			owner, e, err := opts.find(a, r, args[0])
			if err != nil {
				return err
			}
			// A name that another writer gave may be off by the second it cut off.
			since := e.Timestamp.Add(-time.Minute)
			events, _, _, err := r.Events.Read(event.Position{}, since)
			if err != nil {
				return err
			}
			subject := event.MailSubject(owner, string(e.Name))
			history := slices.DeleteFunc(events, func(ev event.Event) bool { return ev.Subject != subject })
			if a.json {
				return printList(a, history)
			}
			if len(history) == 0 || history[0].Type != "mail.sent" {
				a.printf("%s  stored by another writer, from %s\n", localTime(e.Timestamp), e.From)
			}
			for _, ev := range history {
				a.printf("%s  %s\n", localTime(ev.Time), clean(traceLine(&ev)))
			}
			switch {
			case e.Archived:
				a.printf("now: archived\n")
			case e.Read:
				a.printf("now: read\n")
			default:
				a.printf("now: unread by %s\n", owner)
			}
			return nil
		}),
	})
}

// how returns by what means a message was shown to a model, in parentheses.
func how(e *event.Event) string {
	if e.Text == "" {
		return "" // an event of an earlier version
	}
	return " (" + e.Text + ")"
}

func traceLine(e *event.Event) string {
	switch e.Type {
	case "mail.sent":
		return fmt.Sprintf("stored: %s → %s, %s", e.From, e.To, e.Text)
	case "mail.injected":
		return strings.TrimSpace(fmt.Sprintf("injected: shown to %s %s", e.Agent, e.Session)) + how(e)
	case "mail.seen":
		return strings.TrimSpace(fmt.Sprintf("seen: %s has answered since %s", e.Agent, e.Session)) + how(e)
	case "mail.handled":
		return fmt.Sprintf("handled: marked as read by %s", e.Agent)
	case "mail.archived":
		return fmt.Sprintf("archived by %s", e.Agent)
	}
	return strings.TrimSpace(e.Type + " " + e.Text)
}
