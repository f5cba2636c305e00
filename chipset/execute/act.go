package execute

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// do carries out the actions that roles share.
func (b *base) do(ctx context.Context, a roles.Action) error {
	switch a := a.(type) {
	case roles.Send:
		err := b.send(ctx, a.Message)
		if err == nil && a.Message.To == state.Human {
			b.Say("%s: told human: %s", b.ID, wording.Subject(a.Message.Subject, maxSubject, noSubject))
		}
		return err
	case roles.Nudge:
		_, err := b.nudge(ctx, a)
		return err
	case roles.MarkRead:
		return b.markRead(ctx, a)
	case roles.MarkSeen:
		return b.markSeen(ctx, a)
	case roles.Finish:
		b.finished = true
		return nil
	}
	return fmt.Errorf("unknown action %T", a)
}

// maxSubject bounds the subjects of a role's mail, in bytes.
const maxSubject = 300

// noSubject stands for an empty subject.
const noSubject = "(no subject)"

// send delivers mail of the role. What it quotes was written by others, and is
// made fit for a subject line and for the rig's limit. What can't be delivered
// counts as sent, see undeliverable.
func (b *base) send(ctx context.Context, m mail.Message) error {
	m.From, m.Subject = b.ID, wording.Subject(m.Subject, maxSubject, noSubject)
	_, err := b.Rig.Sender.Send(ctx, m)
	if errors.Is(err, state.ErrTooLarge) {
		m.Subject, m.Body = wording.Clip(m.Subject, maxSubject/3), "The text is larger than a message may be here: see chipset log.\n"
		_, err = b.Rig.Sender.Send(ctx, m)
	}
	return b.undeliverable(m.To, m.Subject, err)
}

// sendAs delivers mail under the name that a record fixes. Where another message
// has the name, the next one is fixed first.
func (b *base) sendAs(ctx context.Context, name mail.Name, m mail.Message, fix func(mail.Name) error) error {
	m.From, m.Subject = b.ID, wording.Subject(m.Subject, maxSubject, noSubject)
	for {
		err := b.Rig.Sender.SendAs(ctx, name, m)
		if !errors.Is(err, state.ErrExists) {
			return b.undeliverable(m.To, m.Subject, err)
		}
		name = mail.NameAt(state.At(name.Time().Add(1)), b.ID)
		if err := fix(name); err != nil {
			return err
		}
	}
}

// undeliverable treats a message that can never arrive as delivered: its recipient
// is unknown, retired, or takes no mail of the role, or the message is too large. It
// is logged, and its cause is retired like any other.
func (b *base) undeliverable(to state.AgentID, text string, err error) error {
	if !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrConflict) && !errors.Is(err, state.ErrTooLarge) {
		return err
	}
	b.Say("%s: can't reach %s: %v", b.ID, to, err)
	b.Rig.Events.Tell(event.MailUndeliverable(b.ID, to, event.Work{}, text+": "+err.Error()))
	return nil
}

// nudge puts a nudge into a slot and returns it as it stands there. One to nobody
// counts as sent.
func (b *base) nudge(ctx context.Context, a roles.Nudge) (nudge.Nudge, error) {
	n := a.Nudge
	n.From, n.Message = b.ID, wording.Clip(n.Message, nudge.MaxMessage-len("…"))
	if _, err := b.Rig.Agents.Get(string(a.To)); errors.Is(err, state.ErrNotFound) && a.To != state.Human {
		return n, b.undeliverable(a.To, string(n.Type)+": "+n.Message, err)
	}
	return b.Rig.Slot(a.To).Send(ctx, n, b.Now())
}

func (b *base) markRead(ctx context.Context, a roles.MarkRead) error {
	if err := b.Rig.Mailbox(b.ID).MarkRead(ctx, a.Entry.Name); err != nil {
		return err
	}
	if a.Note != "" {
		b.Rig.Events.Tell(event.MailStale(b.ID, string(a.Entry.Name), a.Note))
	}
	return nil
}

func (b *base) markSeen(ctx context.Context, a roles.MarkSeen) error {
	return b.Rig.Slot(b.ID).WithNote(a.Note).MarkSeen(ctx, a.Nudge)
}
