package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

func newMailCmd(a *app) *cobra.Command {
	return newGroupCmd("mail", "Send and read mail between agents",
		newMailSendCmd(a), newMailInboxCmd(a), newMailReadCmd(a), newMailPeekCmd(a), newMailReplyCmd(a), newMailForwardCmd(a),
		newMailWaitCmd(a), newMailSearchCmd(a), newMailArchiveCmd(a), newMailTraceCmd(a))
}

// mailboxFlag names the owner of a mailbox; a message's name AGENT/NAME does so, too.
type mailboxFlag struct{ mailbox string }

// AddFlags registers --mailbox.
func (o *mailboxFlag) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.mailbox, "mailbox", "", "the `agent` that owns the mailbox (default: yourself)")
}

// owner returns the owner of the mailbox.
func (o *mailboxFlag) owner(a *app, r *rig.Rig) (state.AgentID, error) {
	if o.mailbox == "" {
		return a.identity(r)
	}
	owner, err := actor.Lookup(r, o.mailbox)
	if err != nil {
		return "", err
	}
	return owner, a.mayRead(r, owner)
}

// mayRead returns an ErrConflict for a worker that wants to read the mail of another agent.
func (a *app) mayRead(r *rig.Rig, owner state.AgentID) error {
	if a.env(envSession) == "" {
		return nil
	}
	if me, err := a.identity(r); err != nil || me == owner {
		return err
	}
	return state.Conflictf("mailbox "+string(owner), "a worker may read only its own mail")
}

// find returns a message. For the person it looks in all mailboxes.
func (o mailboxFlag) find(a *app, r *rig.Rig, given string) (state.AgentID, mail.Entry, error) {
	if box, rest, found := strings.Cut(given, "/"); found && o.mailbox == "" {
		o.mailbox, given = box, strings.TrimPrefix(rest, "archive/")
	}
	owner, err := o.owner(a, r)
	if err != nil {
		return "", mail.Entry{}, err
	}
	name, err := actor.MessageName(given)
	if err != nil {
		return "", mail.Entry{}, err
	}
	e, err := r.Mailbox(owner).Get(name)
	if !errors.Is(err, state.ErrNotFound) || o.mailbox != "" || owner != state.Human {
		return owner, e, err
	}
	agents, _, listErr := r.Agents.All()
	if listErr != nil {
		return "", e, listErr
	}
	var found []mail.Entry
	for i := range agents {
		if other, err := r.Mailbox(agents[i].ID).Get(name); err == nil {
			found = append(found, other)
		}
	}
	switch len(found) {
	case 0:
		return owner, e, err
	case 1:
		return found[0].To, found[0], nil
	}
	var boxes []string
	for i := range found {
		boxes = append(boxes, string(found[i].To))
	}
	return owner, e, usagef("%s is in %d mailboxes: choose with --mailbox %s", name, len(found), strings.Join(boxes, " or --mailbox "))
}

type mailInboxOptions struct {
	unread, archived, xml bool
	limit                 int
}

// AddFlags registers the flags of mail inbox.
func (o *mailInboxOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.unread, "unread", false, "only unread messages")
	fs.BoolVar(&o.archived, "archived", false, "list the archive instead")
	fs.IntVar(&o.limit, "limit", 0, "only the latest `N`")
	fs.BoolVar(&o.xml, "xml", false, "print XML, with the text of messages escaped")
}

func newMailInboxCmd(a *app) *cobra.Command {
	var opts mailInboxOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "inbox [AGENT]",
		Short: "List a mailbox, newest last",
		Long: `List a mailbox (default: your own), newest last. Nothing is marked or moved.
Messages that can't be read are reported on standard error.`,
		Example: "  chipset mail inbox --unread\n  chipset mail inbox polecat-alpha --limit 5 --json",
		Args:    nargs(0, 1, "one agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.json && opts.xml {
				return usagef("--json and --xml can't be combined")
			}
			return a.onAgent(func(r *rig.Rig, owner state.AgentID) error { return runMailInbox(r, owner, opts, a) })(cmd, args)
		},
	})
}

func runMailInbox(r *rig.Rig, owner state.AgentID, opts mailInboxOptions, a *app) error {
	if err := a.mayRead(r, owner); err != nil {
		return err
	}
	list := r.Mailbox(owner).List
	switch {
	case opts.archived && opts.unread: // which --unread has put there
		list = func() ([]mail.Entry, []*state.Corruption, error) {
			all, bad, err := r.Mailbox(owner).Archive()
			return slices.DeleteFunc(all, func(e mail.Entry) bool { return e.Read }), bad, err
		}
	case opts.archived:
		list = r.Mailbox(owner).Archive
	case opts.unread:
		list = r.Mailbox(owner).Unread
	}
	entries, bad, err := list()
	if err != nil {
		return err
	}
	warnAll(a, bad)
	if opts.limit > 0 && len(entries) > opts.limit {
		entries = entries[len(entries)-opts.limit:]
	}
	if opts.xml {
		return a.printMailXML(entries)
	}
	return a.showMailList(entries)
}

func (a *app) showMailList(entries []mail.Entry) error {
	_, terminal := a.terminal()
	return showList(a, entries, []string{"NAME", "", "FROM", "TYPE", "PRIORITY", "SUBJECT"}, func(e *mail.Entry) []string {
		flag := "unread"
		switch {
		case e.Archived:
			flag = "archived"
		case e.Read:
			flag = "read"
		}
		name := string(e.Name)
		if terminal {
			name = shortName(e, a.clock())
		}
		return []string{name, flag, string(e.From), string(e.Type), string(e.Priority), e.Subject}
	})
}

// shortName returns the name of a message for a terminal, where a table would cut the whole name so that no command
// takes it: of one of the last day the time in it, to the millisecond.
func shortName(e *mail.Entry, now time.Time) string {
	const millisecond = len("15-04-05.000")
	_, clock, _ := strings.Cut(string(e.Name), "T")
	if e.Archived || len(clock) < millisecond || now.Sub(e.Timestamp.Time) > 24*time.Hour {
		return string(e.Name)
	}
	return clock[:millisecond]
}

// xmlMessage is a message as inbox --xml writes it. The body is data: nothing
// in it can end its element.
type xmlMessage struct {
	Name      string `xml:"name,attr"`
	From      string `xml:"from,attr"`
	To        string `xml:"to,attr"`
	Type      string `xml:"type,attr"`
	Priority  string `xml:"priority,attr"`
	Timestamp string `xml:"timestamp,attr"`
	Read      bool   `xml:"read,attr"`
	Thread    string `xml:"thread,attr,omitempty"`
	InReplyTo string `xml:"in_reply_to,attr,omitempty"`
	Bead      string `xml:"bead_id,attr,omitempty"`
	Subject   string `xml:"subject"`
	Body      struct {
		Escaped string `xml:",innerxml"`
	} `xml:"body"`
}

// escapeBody is XML's escaping, with the ends of lines left as they are: agents
// read the body as text.
func escapeBody(body string) (string, error) {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(body)); err != nil {
		return "", err
	}
	return strings.NewReplacer("&#xA;", "\n", "&#x9;", "\t").Replace(b.String()), nil
}

func (a *app) printMailXML(entries []mail.Entry) error {
	doc := struct {
		XMLName xml.Name     `xml:"messages"`
		List    []xmlMessage `xml:"message"`
	}{}
	for i := range entries {
		e := &entries[i]
		m := xmlMessage{Name: string(e.Name), From: string(e.From), To: string(e.To), Type: string(e.Type),
			Priority: string(e.Priority), Timestamp: e.Timestamp.String(), Read: e.Read,
			Thread: e.Thread, InReplyTo: e.InReplyTo, Subject: e.Subject}
		var err error
		if m.Body.Escaped, err = escapeBody(e.Body); err != nil {
			return err
		}
		if e.Ref != nil {
			m.Bead = string(e.Ref.BeadID)
		}
		doc.List = append(doc.List, m)
	}
	data, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	a.printf("%s\n", data)
	return nil
}

func newMailReadCmd(a *app) *cobra.Command {
	return newMailShowCmd(a, true, &cobra.Command{
		Use:   "read MESSAGE…",
		Short: "Show messages, and mark yours as read",
		Long: `Show messages, and mark those in your own mailbox as read. Mail in other
mailboxes is not marked, nor is mail for an agent's role process (assignments,
shutdowns, responses), which marks it itself.`,
		Example: "  chipset mail read 2026-03-05T10-30-00.000000000Z-mayor.json",
	})
}

func newMailPeekCmd(a *app) *cobra.Command {
	return newMailShowCmd(a, false, &cobra.Command{
		Use:     "peek MESSAGE…",
		Short:   "Show messages without marking them",
		Example: "  chipset mail peek 2026-03-05T10-30-00.000000000Z-mayor.json --json",
	})
}

// newMailShowCmd makes cmd show messages, and with mark mark the agent's own as read. A
// message that can't be shown does not keep others from being shown.
func newMailShowCmd(a *app, mark bool, cmd *cobra.Command) *cobra.Command {
	var opts mailboxFlag
	cmd.Args = nargs(1, -1, "the names of messages")
	cmd.RunE = with(a.openActor, func(ctx context.Context, me *actor.Actor, args []string) error {
		var shown []mail.Entry
		var failed []error
		for _, given := range args {
			owner, e, err := opts.find(a, me.Rig, given)
			if err == nil && mark && owner == me.ID {
				err = me.MarkOwn(ctx, &e)
			}
			if failed = append(failed, err); err == nil {
				shown = append(shown, e)
			}
		}
		if a.json && len(args) > 1 {
			return joined(append(failed, printList(a, shown)))
		}
		for i := range shown {
			if i > 0 {
				a.printf("\n")
			}
			failed = append(failed, a.show(&shown[i], nil, func() error { return a.showMail(&shown[i]) }))
		}
		return joined(failed)
	})
	return withFlags(&opts, cmd)
}

func (a *app) showMail(e *mail.Entry) error {
	field := func(name, value string) {
		if value != "" {
			a.printf("%-10s %s\n", name+":", clean(value))
		}
	}
	field("name", string(e.Name))
	field("from", string(e.From))
	field("to", string(e.To))
	field("type", string(e.Type))
	field("priority", string(e.Priority))
	field("time", e.Timestamp.String())
	field("thread", e.Thread)
	field("reply to", e.InReplyTo)
	if e.Ref != nil {
		field("about", strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Ref.BeadID, e.Ref.AssignmentID, e.Ref.Session)))
	}
	if e.Deadline != nil {
		field("deadline", e.Deadline.String())
	}
	if e.ExpiresAt != nil {
		field("expires", e.ExpiresAt.String())
	}
	field("task", string(e.Task))
	field("subject", e.Subject)
	if body := strings.TrimRight(cleanText(e.Body), "\n"); body != "" {
		a.printf("\n%s\n", body)
	}
	return nil
}
