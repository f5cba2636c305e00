package actor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// ErrHops is returned for a message that may not make another hop.
var ErrHops = errors.New("it has no hops left (ttl)")

// CheckMessage checks the parts of a message that do not depend on its recipient.
// Errors: ErrInvalid.
func CheckMessage(m mail.Message) error {
	m.To = "nobody"
	if m.From == m.To {
		m.To = "somebody"
	}
	m.Trace = nil
	if err := m.Validate(); err != nil {
		return Invalidf("%v", err)
	}
	return nil
}

// RefTo returns a reference to a bead, and to the actor's assignment if that is about
// this bead. Errors: *state.Unknown.
func (a *Actor) RefTo(name string) (*mail.Ref, error) {
	b, err := a.Beads.Get(name)
	if err != nil {
		return nil, err
	}
	ref := &mail.Ref{BeadID: b.ID}
	if p, err := a.Present(); err == nil && p.Bead == b.ID {
		ref.AssignmentID, ref.Session = p.Assignment, p.Session
	}
	return ref, nil
}

// Expand replaces groups by their members, and lists each recipient once. Errors:
// ErrInvalid, state.ErrNotFound when nobody is left.
func (a *Actor) Expand(to []string) ([]string, error) {
	var out []string
	for _, name := range to {
		members := []string{name}
		if strings.HasPrefix(name, "@") {
			ids, err := Group(a.Rig, name, a.ID)
			if err != nil {
				return nil, err
			}
			members = wording.Strings(ids)
		}
		for _, m := range members {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	if len(out) == 0 {
		return nil, state.Absent(fmt.Sprintf("mail send: nobody is in %s", strings.Join(to, " ")))
	}
	return out, nil
}

// SendMail sends a message to an agent, named by id or role. From, Timestamp and
// Read are overwritten. Errors: ErrInvalid, those of mail.Sender.Send, state.ErrConflict
// over limits.mail.
func (a *Actor) SendMail(ctx context.Context, m mail.Message, to string) (mail.Name, error) {
	m, err := a.address(m, func() (state.AgentID, error) { return Lookup(a.Rig, to) })
	if err == nil {
		err = a.maySend(ctx, 1)
	}
	if err != nil {
		return "", err
	}
	return a.Sender.Send(ctx, m)
}

// SendAll is SendMail for many messages, which share the cost of becoming durable.
// Each goes to the agent that its To names by id or role. It returns for each, in
// order, what SendMail would have returned.
func (a *Actor) SendAll(ctx context.Context, ms []mail.Message) ([]mail.Name, []error) {
	type found struct {
		id  state.AgentID
		err error
	}
	known := map[state.AgentID]found{}
	names, errs := make([]mail.Name, len(ms)), make([]error, len(ms))
	var sent []mail.Message
	var at []int
	for i, m := range ms {
		m, err := a.address(m, func() (state.AgentID, error) {
			f, is := known[m.To]
			if !is {
				f.id, f.err = Lookup(a.Rig, string(m.To))
				known[m.To] = f
			}
			return f.id, f.err
		})
		if errs[i] = err; err == nil {
			sent, at = append(sent, m), append(at, i)
		}
	}
	if err := a.maySend(ctx, len(sent)); err != nil {
		for _, i := range at {
			errs[i] = err
		}
		return names, errs
	}
	gone, failed := a.Rig.Sender.SendAll(ctx, sent)
	for k, i := range at {
		names[i], errs[i] = gone[k], failed[k]
	}
	return names, errs
}

// address checks and completes a message of the actor to the agent that lookup finds.
func (a *Actor) address(m mail.Message, lookup func() (state.AgentID, error)) (mail.Message, error) {
	m.From, m.Timestamp, m.Read = a.ID, state.Time{}, false
	m.Type, m.Priority = cmp.Or(m.Type, mail.Coordination), cmp.Or(m.Priority, mail.Normal)
	if err := CheckMessage(m); err != nil {
		return m, err
	}
	id, err := lookup()
	if err != nil {
		return m, err
	}
	m.To = id
	if m.Type == mail.ShutdownRequest {
		return m, a.nameSession(&m)
	}
	return m, nil
}

// nameSession makes a shutdown_request name the process that runs its recipient
// now, so that it can't end a later one. Crew have no such process; whoever runs
// them reads the request and answers it.
func (a *Actor) nameSession(m *mail.Message) error {
	if m.From != state.Human && m.From != a.Mayor() {
		return state.Conflictf("mail to "+string(m.To), "only the mayor and human may ask an agent to shut down")
	}
	stamp, alive := a.Alive(m.To)
	if !alive {
		if who, err := a.Agents.Get(string(m.To)); err == nil && who.Role == agent.Crew {
			return nil
		}
		return state.Conflictf("mail to "+string(m.To), "no process runs it, so there is nothing to shut down")
	}
	ref := mail.Ref{}
	if m.Ref != nil {
		ref = *m.Ref
	}
	ref.Session = stamp.Session
	m.Ref = &ref
	return nil
}

// Own returns a message of the actor's own mailbox. Errors: ErrInvalid,
// *state.Unknown.
func (a *Actor) Own(given string) (mail.Entry, error) {
	name, err := MessageName(given)
	if err != nil {
		return mail.Entry{}, err
	}
	return a.Mailbox(a.ID).Get(name)
}

// MessageName parses the name of a message. Errors: ErrInvalid.
func MessageName(given string) (mail.Name, error) {
	name, err := mail.ParseName(given)
	if err != nil {
		return "", WithHint(Invalidf("%q is not the name of a message", given), "names are printed by chipset mail send, inbox and search")
	}
	return name, nil
}

// MarkOwn marks a message of the actor's mailbox as read, unless only the actor's
// role process may do that.
func (a *Actor) MarkOwn(ctx context.Context, e *mail.Entry) error {
	if e.Read || !MayMarkRead(a.ID, e.Type) {
		return nil
	}
	if err := a.Mailbox(a.ID).MarkRead(ctx, e.Name); err != nil {
		return err
	}
	e.Read = true
	return nil
}

// ArchiveMail moves the read mail of a mailbox that is older than age to its archive,
// and returns the names; with unread also unread mail. The mailbox must be the
// actor's own, unless the actor is the person. Errors: state.ErrConflict.
func (a *Actor) ArchiveMail(ctx context.Context, owner state.AgentID, age time.Duration, unread bool) ([]mail.Name, error) {
	if owner != a.ID && a.ID != state.Human {
		return nil, state.Conflictf("mail archive", "the mailbox of %s is not yours (you speak as %s)", owner, a.ID)
	}
	return a.Mailbox(owner).ArchiveOld(ctx, a.ID, a.Clock().Add(-age), unread)
}

// Injected logs that messages of the actor's mailbox were shown to its model in full. how says
// by what means.
func (a *Actor) Injected(how string, names ...mail.Name) {
	for _, n := range names {
		a.Events.Tell(event.MailInjected(event.Reading{Reader: a.ID, Owner: a.ID, Name: string(n), How: how, Work: event.Work{Session: a.Session}}))
	}
}

// Answer is the content of a reply; the rest follows from the message that it answers.
type Answer struct {
	Body string
	// Subject, Type and Priority are "" for what follows from the message.
	Subject  string
	Type     mail.Type
	Priority mail.Priority
	// State is the new state of the task that the message refers to, or "".
	State mail.TaskState
}

// Reply answers a message of the actor's mailbox, and marks it as read.
// Errors: ErrInvalid, ErrHops, those of mail.Sender.Send.
func (a *Actor) Reply(ctx context.Context, e *mail.Entry, answer Answer) (mail.Name, error) {
	m, err := a.reply(e, answer)
	if err != nil {
		return "", err
	}
	if err := CheckMessage(m); err != nil {
		return "", err
	}
	name, err := a.Sender.Send(ctx, m)
	if err != nil {
		return "", err
	}
	if err := a.MarkOwn(ctx, e); err != nil {
		return name, fmt.Errorf("the reply is sent, but %s is not marked as read: %w", e.Name, err)
	}
	return name, nil
}

func (a *Actor) reply(e *mail.Entry, answer Answer) (mail.Message, error) {
	m := mail.Message{From: a.ID, To: e.From, Subject: answer.Subject, Body: answer.Body, Type: cmp.Or(answer.Type, responseTo(e.Type)),
		Priority: cmp.Or(answer.Priority, priorityOf(e)), Thread: cmp.Or(e.Thread, string(e.Name)), InReplyTo: string(e.Name), Ref: e.Ref, Callback: e.Callback}
	if m.Subject == "" {
		m.Subject = e.Subject
		if !strings.HasPrefix(strings.ToLower(m.Subject), "re:") {
			m.Subject = "Re: " + m.Subject
		}
	}
	moves, err := carryTask(&m, e, answer.State)
	if err != nil || moves {
		m.TTL = e.TTL // reporting back is no hop
		return m, err
	}
	// Hops are counted only if the sender has set them: an ordinary conversation has no
	// limit. A reply to the sender is no loop.
	if e.TTL != nil || len(e.Trace) > 0 {
		m.Trace = append(slices.DeleteFunc(slices.Clone(e.Trace), func(id state.AgentID) bool { return id == m.To }), a.ID)
	}
	m.TTL, err = hop(e)
	return m, err
}

// priorityOf returns the priority of a message, normal if another program has written an unknown one.
func priorityOf(e *mail.Entry) mail.Priority {
	if slices.Contains([]mail.Priority{mail.Urgent, mail.Normal, mail.Low}, e.Priority) {
		return e.Priority
	}
	return mail.Normal
}

// carryTask makes a reply refer to the task of the message it answers, and
// reports whether it moves it.
func carryTask(m *mail.Message, e *mail.Entry, to mail.TaskState) (moves bool, _ error) {
	t, err := e.TaskOf()
	if err != nil || t == nil {
		if to != "" {
			return false, state.Conflictf("message "+string(e.Name), "has no task that could become %s", to)
		}
		return false, nil // another program's own kind of task
	}
	return to != "", m.SetTask(mail.Task{ID: t.ID, State: to})
}

// hop returns how many hops a message has left after one more, nil if they are not counted.
func hop(e *mail.Entry) (*int, error) {
	if e.TTL == nil {
		return nil, nil
	}
	if *e.TTL <= 0 {
		return nil, fmt.Errorf("reply to %s: %w", e.Name, ErrHops)
	}
	left := *e.TTL - 1
	return &left, nil
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

// ParseDeadline parses a deadline: a duration from now on, or an RFC 3339 time; "" is
// none. Errors: ErrInvalid.
func ParseDeadline(text string, now time.Time) (*state.Time, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		t := state.At(at)
		return &t, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return nil, Invalidf("deadline %q is neither a duration such as 2h nor an RFC 3339 time", text)
	}
	t := state.At(now.Add(d))
	return &t, nil
}

// DefaultTTL is how often a message may be forwarded if its sender does not set a TTL.
const DefaultTTL = 3

// Forward forwards a message of the actor's mailbox, with a note above it. A pending
// task of the message passes to the recipient, with the same callback. A message is
// never forwarded to an agent that already had it. Errors: ErrHops, state.ErrConflict
// for a loop, those of mail.Sender.Send.
func (a *Actor) Forward(ctx context.Context, e *mail.Entry, note, to string) (mail.Name, error) {
	id, err := Lookup(a.Rig, to)
	if err != nil {
		return "", err
	}
	trace := slices.Clone(e.Trace)
	for _, passed := range []state.AgentID{e.From, a.ID} {
		if !slices.Contains(trace, passed) {
			trace = append(trace, passed)
		}
	}
	if slices.Contains(trace, id) {
		return "", WithHint(state.Conflictf("forward to "+string(id), "it already had the message (%v), and forwarding would be a loop", trace),
			"chipset mail reply answers the sender")
	}
	left := DefaultTTL
	if e.TTL != nil {
		left = *e.TTL
	}
	if left <= 0 {
		return "", WithHint(fmt.Errorf("forward %s: %w", e.Name, ErrHops), "deal with it yourself, or answer its sender")
	}
	left--
	m := mail.Message{From: a.ID, To: id, Type: mail.Coordination, Priority: priorityOf(e), Subject: "Fwd: " + strings.TrimPrefix(e.Subject, "Fwd: "),
		Body: strings.TrimLeft(strings.TrimRight(note, "\n")+"\n\n", "\n") + "Forwarded from " + string(e.From) + " (" + e.Timestamp.String() + "):\n\n" + e.Body,
		Ref:  e.Ref, TTL: &left, Trace: trace, Deadline: e.Deadline, Content: e.Content, Callback: e.Callback}
	if t, err := e.TaskOf(); err == nil && t != nil && t.State == mail.TaskPending {
		if err := m.SetTask(mail.Task{ID: t.ID, State: mail.TaskPending, Deadline: t.Deadline}); err != nil {
			return "", err
		}
	}
	if err := CheckMessage(m); err != nil {
		return "", err
	}
	return a.Sender.Send(ctx, m)
}

// IdleReason is why an agent has nothing in hand.
type IdleReason string

// IdleReasons returns the reasons that an idle notification may give: the agent waits
// for work, was interrupted, or has failed.
func IdleReasons() []IdleReason { return []IdleReason{"available", "interrupted", "failed"} }

// Idle tells the mayor that the actor has no work, and why. While an earlier
// notification of the actor is unread, it returns the name of that one instead.
func (a *Actor) Idle(ctx context.Context, reason IdleReason, summary string) (mail.Name, error) {
	if !slices.Contains(IdleReasons(), reason) {
		return "", Invalidf("%q is not a reason to be idle: one of %v", reason, IdleReasons())
	}
	unread, _, err := a.Mailbox(a.Mayor()).Unread()
	if err != nil {
		return "", err
	}
	for i := range unread {
		if e := &unread[i]; e.From == a.ID && e.Type == mail.IdleNotification {
			return e.Name, nil
		}
	}
	meta, err := json.Marshal(map[string]any{"idle_reason": reason, "summary": summary})
	if err != nil {
		return "", err
	}
	p, err := a.Present()
	if err != nil {
		return "", err
	}
	return a.SendMail(ctx, mail.Message{Type: mail.IdleNotification, Priority: mail.Low, Subject: string(a.ID) + " is idle: " + string(reason),
		Body: summary, Ref: p.ref(), Metadata: meta}, string(a.Mayor()))
}
