package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/wording"
)

type sendArgs struct {
	To       string `json:"to" jsonschema:"who: an agent's id, a role (mayor, witness, refinery), human, or @polecats or @all"`
	Subject  string `json:"subject" jsonschema:"one line"`
	Body     string `json:"body" jsonschema:"the text; at most about 60 KiB"`
	Type     string `json:"type,omitempty" jsonschema:"what it is about; leave it out for ordinary mail"`
	Priority string `json:"priority,omitempty" jsonschema:"leave it out for normal"`
	Thread   string `json:"thread,omitempty" jsonschema:"name of the message that began the thread"`
	Bead     string `json:"bead,omitempty" jsonschema:"id of the bead it refers to"`
	ID       string `json:"id,omitempty" jsonschema:"your own key: sent again with the same key it is delivered once"`
	Task     bool   `json:"task,omitempty" jsonschema:"true asks the recipient to do something and report: pending, accepted, working, completed"`
	Deadline string `json:"deadline,omitempty" jsonschema:"until when, as a duration such as 2h or an RFC 3339 time"`
}

type inboxArgs struct {
	All      bool `json:"all,omitempty" jsonschema:"true shows read mail as well"`
	Archived bool `json:"archived,omitempty" jsonschema:"true shows the archive instead"`
	Limit    int  `json:"limit,omitempty" jsonschema:"at most so many; 10 when left out"`
}

type readArgs struct {
	Name   string `json:"name" jsonschema:"the name of the message"`
	Offset int    `json:"offset,omitempty" jsonschema:"where to go on in a long text, in bytes"`
}

type replyArgs struct {
	Name    string `json:"name" jsonschema:"the name of the message you answer"`
	Body    string `json:"body" jsonschema:"the text"`
	Subject string `json:"subject,omitempty" jsonschema:"leave it out for Re: …"`
	State   string `json:"state,omitempty" jsonschema:"moves the task that the message asks for"`
}

type forwardArgs struct {
	Name string `json:"name" jsonschema:"the name of the message you pass on"`
	To   string `json:"to" jsonschema:"who: an agent's id or a role"`
	Note string `json:"note,omitempty" jsonschema:"what you say above it"`
}

type waitArgs struct {
	Seconds int    `json:"timeout_seconds,omitempty" jsonschema:"how long at most: 1 to 600, 60 when left out"`
	Type    string `json:"type,omitempty" jsonschema:"only mail of this type"`
	From    string `json:"from,omitempty" jsonschema:"only mail from this agent"`
}

// preview is how much of each text the inbox shows, in bytes.
const preview = 400

// readOn says how a client of this server reads the rest of a message.
func readOn(n mail.Name, offset int) string {
	return fmt.Sprintf("mail_read name=%s offset=%d", n, offset)
}

func (s *Server) addMailTools() {
	types := []string{}
	for _, t := range mail.Types() {
		if !t.RoleOnly() {
			types = append(types, string(t))
		}
	}
	priorities := []string{string(mail.Urgent), string(mail.Normal), string(mail.Low)}
	moves := slices.DeleteFunc(wording.Strings(mail.TaskStates()), func(w string) bool { return w == string(mail.TaskPending) })
	add(s, tool{name: "mail_send", title: "Send mail", effect: adds, words: map[string][]string{"type": types, "priority": priorities},
		description: "Send mail to an agent or to the person (human). It is durable when the call returns its name. Mail waits for agents that do not run."}, sendMail)
	add(s, tool{name: "mail_inbox", title: "Look at your inbox", effect: reads,
		description: "Your unread mail in the order to take it, each with the beginning of its text. Marks nothing; mail_read shows one whole and marks it."}, showInbox)
	add(s, tool{name: "mail_read", title: "Read a message", effect: settles,
		description: "Show one message of your mailbox and mark it as read. A long text comes in parts: its attribute cut says how to go on."}, readMail)
	add(s, tool{name: "mail_reply", title: "Answer a message", effect: adds, words: map[string][]string{"state": moves},
		description: "Answer a message of your mailbox and mark it as read. With state you accept, begin, complete, reject or fail the task it asks for."}, replyMail)
	add(s, tool{name: "mail_forward", title: "Pass a message on", effect: adds,
		description: "Pass a message of your mailbox on to another agent, with its task if it asks for one. It can't go back to who has had it."}, forwardMail)
	add(s, tool{name: "mail_wait", title: "Wait for mail", effect: reads, words: map[string][]string{"type": wording.Strings(mail.Types())},
		description: "Wait until there is unread mail, and show the message to take first. Marks nothing. Mail that is there already counts. Returns with a note when nothing comes in time."}, waitMail)
}

func sendMail(ctx context.Context, me *actor.Actor, in sendArgs) (quote.Text, error) {
	m := mail.Message{Subject: in.Subject, Body: in.Body, Type: mail.Type(in.Type), Priority: mail.Priority(in.Priority), ID: in.ID}
	var err error
	if in.Thread != "" {
		n, err := mail.ParseName(in.Thread)
		if err != nil {
			return "", actor.Invalidf("thread: %q is not the name of a message", in.Thread)
		}
		m.Thread = string(n)
	}
	if in.Bead != "" {
		if m.Ref, err = me.RefTo(in.Bead); err != nil {
			return "", err
		}
	}
	if m.Deadline, err = actor.ParseDeadline(in.Deadline, me.Clock()); err != nil {
		return "", err
	}
	if in.Task {
		if err := m.SetTask(mail.Task{ID: mail.NewTaskID(), Deadline: m.Deadline}); err != nil {
			return "", err
		}
	}
	to, err := me.Expand([]string{in.To})
	if err != nil {
		return "", err
	}
	if len(to) == 1 {
		n, err := me.SendMail(ctx, m, to[0])
		if err != nil {
			return "", err
		}
		return sentTo(to[0], n), nil
	}
	var lines []quote.Text
	var failed []error
	for _, id := range to {
		n, err := me.SendMail(ctx, m, id)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", id, err))
			continue
		}
		lines = append(lines, sentTo(id, n))
	}
	if len(failed) > 0 {
		return "", errors.Join(append(failed, fmt.Errorf("%d of %d delivered: %s", len(lines), len(to), quote.Join(lines, "; ")))...)
	}
	return quote.Join(lines, "\n"), nil
}

func sentTo(who string, n mail.Name) quote.Text { return quote.Sprintf("sent to %s: %s", who, n) }

func showInbox(_ context.Context, me *actor.Actor, in inboxArgs) (quote.Text, error) {
	box := me.Mailbox(me.ID)
	list := box.Unread
	switch {
	case in.Archived:
		list = box.Archive
	case in.All:
		list = box.List
	}
	entries, _, err := list()
	if err != nil {
		return "", err
	}
	limit := limited(in.Limit, 10)
	var note quote.Text
	if in.All || in.Archived { // newest last, as in every inbox
		if over := len(entries) - limit; over > 0 {
			entries = entries[over:]
			note = quote.Sprintf("(%d older: a larger limit)\n", over)
		}
	} else {
		mail.SortForProcessing(entries, me.Mayor())
	}
	if len(entries) == 0 {
		return "No mail.", nil
	}
	var lines []quote.Text
	for i := range entries {
		lines = append(lines, prompt.FrameExcerpt(&entries[i], prompt.Excerpt{Limit: preview, Rest: readOn})+"\n")
	}
	text, shown := listedLines(lines, limit, "", "mail_read those above first, or a larger limit")
	for i := range entries[:shown] {
		injected(me, "mail_inbox", &entries[i], prompt.Excerpt{Limit: preview})
	}
	return prompt.Preamble + "\n\n" + note + text, nil
}

func readMail(ctx context.Context, me *actor.Actor, in readArgs) (quote.Text, error) {
	e, err := me.Own(in.Name)
	if err != nil {
		return "", err
	}
	if in.Offset < 0 {
		return "", actor.Invalidf("offset %d is negative", in.Offset)
	}
	if err := me.MarkOwn(ctx, &e); err != nil {
		return "", err
	}
	injected(me, "mail_read", &e, prompt.Excerpt{Offset: in.Offset})
	return prompt.Preamble + "\n\n" + prompt.FrameExcerpt(&e, prompt.Excerpt{Offset: in.Offset, Rest: readOn}), nil
}

// injected logs that a tool shows a message, if it shows the whole of it.
func injected(me *actor.Actor, tool string, e *mail.Entry, x prompt.Excerpt) {
	if prompt.IsWhole(e, x) {
		me.Injected("the tool "+tool, e.Name)
	}
}

func replyMail(ctx context.Context, me *actor.Actor, in replyArgs) (quote.Text, error) {
	e, err := me.Own(in.Name)
	if err != nil {
		return "", err
	}
	n, err := me.Reply(ctx, &e, actor.Answer{Body: in.Body, Subject: in.Subject, State: mail.TaskState(in.State)})
	if err != nil {
		return "", err
	}
	return sentTo(string(e.From), n), nil
}

func forwardMail(ctx context.Context, me *actor.Actor, in forwardArgs) (quote.Text, error) {
	e, err := me.Own(in.Name)
	if err != nil {
		return "", err
	}
	n, err := me.Forward(ctx, &e, in.Note, in.To)
	if err != nil {
		return "", err
	}
	return sentTo(in.To, n), nil
}

func waitMail(ctx context.Context, me *actor.Actor, in waitArgs) (quote.Text, error) {
	timeout := 60 * time.Second
	if in.Seconds != 0 {
		if in.Seconds < 1 || in.Seconds > 600 {
			return "", actor.Invalidf("timeout_seconds %d is not between 1 and 600", in.Seconds)
		}
		timeout = time.Duration(in.Seconds) * time.Second
	}
	filter := actor.MailFilter{Type: mail.Type(in.Type)}
	if in.From != "" {
		from, err := actor.Lookup(me.Rig, in.From)
		if err != nil {
			return "", err
		}
		filter.From = from
	}
	e, err := me.WaitMail(ctx, timeout, filter)
	if errors.Is(err, actor.ErrTimeout) {
		return quote.Sprintf("No such mail came within %s. Go on with your work and look again later, or wait again.", timeout), nil
	}
	if err != nil {
		return "", err
	}
	injected(me, "mail_wait", &e, prompt.Excerpt{})
	return prompt.Preamble + "\n\n" + prompt.FrameExcerpt(&e, prompt.Excerpt{Rest: readOn}), nil
}
