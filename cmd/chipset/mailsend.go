package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

type mailSendOptions struct {
	subject, body, bodyFile  string
	kind, priority           string
	thread, ref, id          string
	task, deadline           string
	callback                 string
	ttl                      int
	batch, bodyGiven, hasTTL bool
}

// AddFlags registers the flags of mail send.
func (o *mailSendOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.subject, "subject", "s", "", "the subject, one `line`; required")
	fs.StringVarP(&o.body, "body", "b", "", "the body, as `text`")
	fileFlag(fs, &o.bodyFile, "body-file", "", "read the body from a `file`; - is standard input")
	fs.StringVar(&o.kind, "type", string(mail.Coordination), "what the message is about: a known `type`, or your own x-…")
	fs.StringVar(&o.priority, "priority", string(mail.Normal), "how soon it is read, `urgent|normal|low`")
	fs.StringVar(&o.thread, "thread", "", "the `message` that began the thread")
	fs.StringVar(&o.ref, "ref", "", "the `bead` it is about")
	fs.StringVar(&o.id, "id", "", "your own `key`; messages with the same key are delivered once")
	fs.StringVar(&o.task, "task", "", "ask for a task with this `ID`, on whose state the recipient reports; \"new\" makes an ID")
	fs.StringVar(&o.deadline, "deadline", "", "`when` it is due: a duration such as 2h, or an RFC 3339 time")
	fs.StringVar(&o.callback, "callback", "", "`JSON` that every message about the task carries: {\"channel\": …, \"session_id\": …}")
	fs.IntVar(&o.ttl, "ttl", 0, "how many more `hops` it may make (loop protection)")
	fs.BoolVar(&o.batch, "batch", false, "read JSON lines from standard input, one message each")
}

func newMailSendCmd(a *app) *cobra.Command {
	var opts mailSendOptions
	return withFlags(&opts, &cobra.Command{
		Use:   "send TO… --subject S",
		Short: "Send a message, and print its name",
		Long: `Send a message, and print its name when it is durable. TO is an agent, a role
(mayor, witness, refinery), several of them, @polecats, or @all. With several
recipients one line is printed for each, in order (groups in alphabetical
order): the name, or "error: …".

With --batch each line of standard input is one message as JSON, with to and
subject, and any of body, type, priority, thread, in_reply_to, id, ref, ttl,
deadline, expires_at, task, content, callback, metadata. One line is printed for
each, in order.

` + ansi.Wordwrap("Types: "+wording.Join(mail.Types(), ", ")+".", 80, ""),
		Example: "  chipset mail send mayor --subject \"Question\" --body \"Which branch?\"\n" +
			"  git log -1 | chipset mail send @polecats -s \"Just landed\" --body-file -\n" +
			"  printf '%s\\n' '{\"to\":\"mayor\",\"subject\":\"one\"}' | chipset mail send --batch",
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.bodyGiven, opts.hasTTL = cmd.Flags().Changed("body"), cmd.Flags().Changed("ttl")
			if opts.batch {
				return runMailBatch(cmd.Context(), cmd, args, a)
			}
			if len(args) == 0 {
				return withHint(usagef("no recipient"), "chipset agents lists the agents")
			}
			return runMailSend(cmd.Context(), opts, args, a)
		},
	})
}

func runMailSend(ctx context.Context, opts mailSendOptions, to []string, a *app) error {
	me, err := a.openActor(ctx)
	if err != nil {
		return err
	}
	m, err := opts.message(ctx, a, me)
	if err != nil {
		return err
	}
	if len(to) == 1 && !strings.HasPrefix(to[0], "@") {
		name, err := me.SendMail(ctx, m, to[0])
		return a.sent(err, outcome{Did: "sent", Name: name, To: to[0]})
	}
	recipients, err := me.Expand(to)
	if err != nil {
		return err
	}
	var failed tally
	for _, id := range recipients {
		name, err := me.SendMail(ctx, m, id)
		failed.line(a, string(name), id, err)
	}
	if a.json {
		return joined([]error{failed.err("mail send"), printList(a, failed.lines)})
	}
	return failed.err("mail send")
}

// message returns the message that the flags describe, without a recipient.
func (o *mailSendOptions) message(ctx context.Context, a *app, me *actor.Actor) (mail.Message, error) {
	m := mail.Message{From: me.ID, Type: mail.Type(o.kind), Subject: o.subject, Priority: mail.Priority(o.priority), ID: o.id}
	if strings.TrimSpace(o.subject) == "" {
		return m, usagef("--subject is required")
	}
	if !utf8.ValidString(o.subject) || !utf8.ValidString(o.id) {
		return m, usagef("not valid UTF-8")
	}
	if o.thread != "" {
		name, err := actor.MessageName(o.thread)
		if err != nil {
			return m, fmt.Errorf("--thread: %w", err)
		}
		m.Thread = string(name)
	}
	if o.hasTTL {
		m.TTL = &o.ttl
	}
	if o.ref != "" {
		ref, err := me.RefTo(o.ref)
		if err != nil {
			return m, err
		}
		m.Ref = ref
	}
	if err := o.addTask(&m, me); err != nil {
		return m, err
	}
	body, err := textInput{flag: "--body", fileFlag: "--body-file", text: o.body, file: o.bodyFile, textGiven: o.bodyGiven}.read(ctx, a, mail.MaxSize)
	m.Body = body
	if err != nil {
		return m, err
	}
	return m, actor.CheckMessage(m)
}

// addTask sets deadline, callback and task.
func (o *mailSendOptions) addTask(m *mail.Message, me *actor.Actor) (err error) {
	if m.Deadline, err = actor.ParseDeadline(o.deadline, me.Clock()); err != nil {
		return err
	}
	if o.callback != "" {
		if !json.Valid([]byte(o.callback)) {
			return usagef("--callback is not JSON")
		}
		m.Callback = json.RawMessage(o.callback)
	}
	if o.task == "" {
		return nil
	}
	id := mail.TaskID(o.task)
	if id == "new" {
		id = mail.NewTaskID()
	}
	return m.SetTask(mail.Task{ID: id, Deadline: m.Deadline})
}

// tally prints and counts the results of several deliveries.
type tally struct {
	all, failed int
	first       error
	lines       []outcome // of --json
}

// line prints the result for one message: its name, or "error: …".
func (t *tally) line(a *app, name, to string, err error) {
	t.all++
	if err == nil {
		t.lines = append(t.lines, outcome{Did: "sent", Name: mail.Name(name), To: to})
		a.tallyf("%s\n", name)
		return
	}
	t.lines = append(t.lines, outcome{To: to, Error: err.Error()})
	t.failed++
	if t.first == nil {
		t.first = err
	}
	text := err.Error()
	if to != "" {
		text = to + ": " + text
	}
	if hint := actor.HintFor(err); hint != "" {
		text += " (" + hint + ")"
	}
	a.tallyf("error: %s\n", clean(text))
}

// flush prints the results so far with --json, one object a line.
func (t *tally) flush(a *app) error {
	if !a.json {
		return nil
	}
	for i := range t.lines {
		line, err := state.EncodeLine(&t.lines[i])
		if err != nil {
			return err
		}
		a.printf("%s", line)
	}
	t.lines = nil
	return nil
}

// tallyf prints a line for people.
func (a *app) tallyf(format string, args ...any) {
	if !a.json {
		a.printf(format, args...)
	}
}

// err returns an error with the exit code of the first failure, or nil.
func (t *tally) err(what string) error {
	if t.failed == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d of %d not delivered: %w", what, t.failed, t.all, t.first)
}
