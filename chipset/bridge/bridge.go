// Package bridge carries mail between a rig and the mailboxes of other systems,
// in both directions. It is optional and started by hand. A message that it carries
// also stays where it was.
//
//	theirs  a foreign agent, and the agent that stands for it in the rig: what
//	        lies unread in that agent's mailbox is written into the foreign inbox,
//	        and then marked as read
//	ours    an agent of the rig, and its name in the foreign system: what lies in
//	        that foreign inbox becomes mail, and is then retired there
//
// Inward, the id of a message is derived from its origin, so retries deliver it
// once. Outward, a message carries the name of the rig's message, which is searched
// for before it is written again. Foreign files are changed only in the way their own
// programs do it; a file in an unknown format is reported and not changed.
package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/wording"
)

// System holds the mailboxes of another system. Two implementations exist: package
// nanobot, and the team inboxes of a coding agent's client, in that client's folder.
type System interface {
	// Name is the system's name; it goes into the ids of its messages.
	Name() string
	// Introduce registers the agents of each system with the other, if the foreign
	// one keeps a list of agents. It is called before mail is carried.
	Introduce(ctx context.Context, b *Bridge) error
	// Receive calls take for each message of a foreign inbox, oldest first, and
	// retires it in the foreign system if take returns nil. A malformed message
	// stays. The error joins everything that went wrong.
	Receive(ctx context.Context, inbox string, take func(Message) error) error
	// Deliver puts a message into a foreign inbox, unless it was put there before.
	Deliver(ctx context.Context, inbox string, o Outgoing) error
	// Settle removes what Deliver remembers of a message, once that is marked as read.
	Settle(inbox string, e *mail.Entry) error
}

// Message is a foreign message.
type Message struct {
	// Key is unique within the inbox.
	Key     string
	From    string
	Subject string
	// Passed are the agents that passed it on.
	Passed []string
	// Message holds the rest: type, body, task, times. The bridge sets From, To, ID and
	// Trace.
	Message mail.Message
}

// Outgoing is a message of the rig to a foreign agent.
type Outgoing struct {
	*mail.Entry
	// From is the sender's foreign name, Passed those of the agents that passed it on.
	From   string
	Passed []string
	// Answers is the message that it answers, or nil.
	Answers *mail.Entry
}

// Pair is an agent of the rig and its name in the foreign system.
type Pair struct {
	Foreign string
	Agent   state.AgentID
}

// Bridge is a rig and another system.
type Bridge struct {
	Rig     *rig.Rig
	Foreign System
	// Theirs are foreign agents that the rig can write to, Ours agents of the rig
	// that the foreign system can.
	Theirs, Ours []Pair
}

// Count is what one Carry moved.
type Count struct{ In, Out int }

// ParsePair reads NAME or NAME=AGENT.
func ParsePair(text string) (Pair, error) {
	name, id, both := strings.Cut(text, "=")
	if !both {
		id = name
	}
	if name == "" || len(name) > 64 || strings.ContainsAny(name, "/\\\x00\n") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
		return Pair{}, fmt.Errorf("%q is not a valid name of a foreign agent", name)
	}
	agentID, err := state.ParseAgentID(id)
	return Pair{Foreign: name, Agent: agentID}, err
}

// Register registers the agents that stand for the foreign ones. Errors: ErrConflict
// for the name of a role of the rig.
func (b *Bridge) Register(ctx context.Context) error {
	for _, p := range b.Theirs {
		a, err := b.Rig.Agents.Get(string(p.Agent))
		if err == nil && a.Role != agent.Crew {
			return state.Conflictf("agent "+string(p.Agent), "is the rig's own %s and can't stand for %s", a.Role, p.Foreign)
		}
		// Its parent is itself, so that a start does not retire it as unnamed.
		if err := actor.Adopt(ctx, b.Rig, p.Agent, p.Agent); err != nil {
			return err
		}
	}
	for _, p := range b.Ours {
		if _, err := b.Rig.Agents.Get(string(p.Agent)); err != nil && p.Agent != state.Human {
			return err
		}
	}
	return nil
}

// Carry moves everything that waits, in both directions. It goes on after a failure;
// the error joins all of them.
func (b *Bridge) Carry(ctx context.Context) (Count, error) {
	var n Count
	failed := []error{b.Foreign.Introduce(ctx, b)}
	for _, p := range b.Theirs {
		out, err := b.outward(ctx, p)
		n.Out += out
		failed = append(failed, err)
	}
	for _, p := range b.Ours {
		err := b.Foreign.Receive(ctx, p.Foreign, func(l Message) error {
			err := b.inward(ctx, p, l)
			if err == nil {
				n.In++
			}
			return err
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("inbox of %s: %w", p.Foreign, err))
		}
	}
	return n, errors.Join(failed...)
}

func (b *Bridge) outward(ctx context.Context, p Pair) (int, error) {
	unread, bad, err := b.Rig.Mailbox(p.Agent).Unread()
	if err != nil {
		return 0, err
	}
	var failed []error
	for _, c := range bad {
		failed = append(failed, c)
	}
	n := 0
	for i := range unread {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		out, err := b.outgoing(&unread[i])
		if err == nil {
			err = b.Foreign.Deliver(ctx, p.Foreign, out)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s to %s: %w", unread[i].Name, p.Foreign, err))
			continue
		}
		if err := b.Rig.Mailbox(p.Agent).MarkRead(ctx, unread[i].Name); err != nil {
			failed = append(failed, err)
			continue
		}
		if err := b.Foreign.Settle(p.Foreign, &unread[i]); err != nil {
			failed = append(failed, err)
		}
		n++
	}
	return n, errors.Join(failed...)
}

// outgoing translates the agents of a message into foreign names.
func (b *Bridge) outgoing(e *mail.Entry) (Outgoing, error) {
	out := Outgoing{Entry: e, From: b.ForeignName(e.From)}
	for _, id := range e.Trace {
		out.Passed = append(out.Passed, b.ForeignName(id))
	}
	name, err := mail.ParseName(e.InReplyTo)
	if err != nil {
		return out, nil //nolint:nilerr // it answers nothing
	}
	answered, err := b.Rig.Mailbox(e.From).Get(name)
	switch {
	case err == nil:
		out.Answers = &answered
	case !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrCorrupt):
		return out, err
	}
	return out, nil
}

// agentNamed returns the agent of a foreign name, "" if no agent stands for it and it is
// not a valid agent ID either.
func (b *Bridge) agentNamed(name string) state.AgentID {
	for _, p := range append(append([]Pair(nil), b.Theirs...), b.Ours...) {
		if p.Foreign == name {
			return p.Agent
		}
	}
	id, err := state.ParseAgentID(name)
	if err != nil {
		return ""
	}
	return id
}

// ForeignName is what the foreign system calls an agent of the rig.
func (b *Bridge) ForeignName(id state.AgentID) string {
	for _, p := range append(append([]Pair(nil), b.Ours...), b.Theirs...) {
		if p.Agent == id {
			return p.Foreign
		}
	}
	return string(id)
}

// inward sends a foreign message as mail from the agent that stands for its sender.
// Without such an agent it is refused: nobody could answer it.
func (b *Bridge) inward(ctx context.Context, to Pair, l Message) error {
	m := l.Message
	for _, p := range b.Theirs {
		if p.Foreign == l.From {
			m.From = p.Agent
		}
	}
	if m.From == "" {
		return state.Absent(fmt.Sprintf("a message of %q, for whom no agent stands", wording.Clip(l.From, MaxQuoted)))
	}
	m.To, m.Subject = to.Agent, l.Subject
	sum := sha256.Sum256([]byte(b.Foreign.Name() + "\x00" + to.Foreign + "\x00" + l.Key))
	m.ID = "bridge-" + hex.EncodeToString(sum[:12])
	for _, name := range l.Passed {
		// One that names its recipient has come round. It is delivered, but can't be passed on to those before.
		if id := b.agentNamed(name); id != "" && id != m.To {
			m.Trace = append(m.Trace, id)
		}
	}
	return b.send(ctx, m)
}

// send delivers a foreign message. Other systems skip steps of a task: the steps before the
// one that it reports are made first. A message that is not a legal step even then is
// delivered without its task.
func (b *Bridge) send(ctx context.Context, m mail.Message) error {
	deliver := func(m *mail.Message) (illegal bool, _ error) {
		_, err := b.Rig.Sender.Send(ctx, *m)
		return errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound), err
	}
	illegal, err := deliver(&m)
	t, taskErr := m.TaskOf()
	if !illegal || t == nil || taskErr != nil {
		return err
	}
	for _, skipped := range before(t.State) {
		step := mail.Message{From: m.From, To: m.To, Type: mail.Coordination, ID: m.ID + "-" + string(skipped), InReplyTo: m.InReplyTo, Thread: m.Thread,
			Subject: "task " + string(t.ID) + " is " + string(skipped), Body: "Its end was reported without this step.\n"}
		if err := step.SetTask(mail.Task{ID: t.ID, State: skipped}); err != nil {
			return err
		}
		if illegal, err := deliver(&step); err != nil && !illegal {
			return err
		}
	}
	if illegal, err = deliver(&m); illegal {
		m.Task = nil
		_, err = deliver(&m)
	}
	return err
}

// before lists the steps of a task that another system may skip before s.
func before(s mail.TaskState) []mail.TaskState {
	switch s {
	case mail.TaskWorking, mail.TaskFailed:
		return []mail.TaskState{mail.TaskAccepted}
	case mail.TaskCompleted:
		return []mail.TaskState{mail.TaskAccepted, mail.TaskWorking}
	case mail.TaskPending, mail.TaskAccepted, mail.TaskRejected:
	}
	return nil
}

// ReadFile returns the content of a foreign file of at most limit bytes. It refuses
// anything but a regular file, links too. Errors: fs.ErrNotExist.
func ReadFile(file string, limit int64) ([]byte, error) {
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is not a regular file, and is left as it is", file)
	}
	return state.ReadOutside(file, limit)
}

// Bounds of text from another system, in bytes.
const (
	MaxQuoted  = 64 // in an error
	MaxSubject = 80 // as a subject
)
