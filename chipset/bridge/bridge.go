// Package bridge carries mail between a rig and the mailboxes of other systems,
// in both directions. It is started by hand and never needed: a message that it
// carries stays where it was, too.
//
//	theirs  a foreign agent, and the agent that stands for it in the rig: what
//	        lies unread in that agent's mailbox is written into the foreign inbox,
//	        and then marked as read
//	ours    an agent of the rig, and its name in the foreign system: what lies in
//	        that foreign inbox becomes mail, and is then retired there
//
// Inward a message has an id made of where it came from, so it is delivered
// once however often it is tried. Outward it carries the name of the rig's
// message, which is looked for before it is written again. Foreign files are
// changed only in the way their own programs do it; what can't be understood is
// left as it is and reported.
package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	// Name is what its messages' ids begin with.
	Name() string
	// Introduce tells each system about the agents of the other, where the foreign
	// one keeps a list of them. It is called before mail is carried.
	Introduce(ctx context.Context, b *Bridge) error
	// Receive hands each message of a foreign inbox to take, oldest first, and
	// retires in the foreign system those that take returned nil for. What is
	// malformed stays and is reported by the error, beside what went wrong.
	Receive(ctx context.Context, inbox string, take func(Message) error) error
	// Deliver puts a message into a foreign inbox, unless it was put there before.
	Deliver(ctx context.Context, inbox, from string, e *mail.Entry) error
	// Settle forgets what Deliver keeps of a message that is marked as read.
	Settle(inbox string, e *mail.Entry) error
}

// Message is a foreign message.
type Message struct {
	// Key is what tells it from every other one of its inbox.
	Key     string
	From    string
	Subject string
	// Message holds what else is known: type, body, task, times. From, To and ID
	// are the bridge's.
	Message mail.Message
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

// Register makes the agents known that stand for the foreign ones. Errors:
// ErrConflict for a name that a role of the rig has.
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

// Carry moves everything that waits, in both directions. It goes on past what
// it can't carry; the error is all of that.
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
		if err := b.Foreign.Deliver(ctx, p.Foreign, b.ForeignName(unread[i].From), &unread[i]); err != nil {
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

// ForeignName is what the foreign system calls an agent of the rig.
func (b *Bridge) ForeignName(id state.AgentID) string {
	for _, p := range append(append([]Pair(nil), b.Ours...), b.Theirs...) {
		if p.Agent == id {
			return p.Foreign
		}
	}
	return string(id)
}

// inward makes mail of a foreign message. Its sender is the agent that stands
// for it; one that nobody stands for is none that could be answered.
func (b *Bridge) inward(ctx context.Context, to Pair, l Message) error {
	m := l.Message
	for _, p := range b.Theirs {
		if p.Foreign == l.From {
			m.From = p.Agent
		}
	}
	if m.From == "" {
		return fmt.Errorf("a message of %q, for whom no agent stands: %w", wording.Clip(l.From, MaxQuoted), state.ErrNotFound)
	}
	m.To, m.Subject = to.Agent, l.Subject
	sum := sha256.Sum256([]byte(b.Foreign.Name() + "\x00" + to.Foreign + "\x00" + l.Key))
	m.ID = "bridge-" + hex.EncodeToString(sum[:12])
	_, err := b.Rig.Sender.Send(ctx, m)
	return err
}

// Bounds of what is taken from another system, in bytes.
const (
	MaxQuoted  = 64 // in an error
	MaxSubject = 80 // as a subject
)
