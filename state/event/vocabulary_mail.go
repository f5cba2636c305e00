package event

import (
	"github.com/gastown-chipset/chipset/state"
)

// Mail is the content of a message's events.
type Mail struct {
	// Owner is the owner of the mailbox, and Name the message's name there.
	Owner state.AgentID
	Name  string
	// From, Type, Subject and Work are those of the message.
	From          state.AgentID
	Type, Subject string
	Work
}

func (m Mail) build(kind string, agent state.AgentID) Event {
	e := m.event(kind, agent)
	e.Subject, e.From, e.To, e.Text = MailSubject(m.Owner, m.Name), string(m.From), string(m.Owner), m.Type+": "+m.Subject
	return e
}

// MailSubject returns the Subject of events about a message.
func MailSubject(owner state.AgentID, name string) string { return string(owner) + "/" + name }

// MailSent says that a message is durable in its recipient's mailbox.
func MailSent(m Mail) Event { return m.build("mail.sent", m.From) }

// MailHandled says that a message was marked as read by its recipient.
func MailHandled(m Mail) Event { return m.build("mail.handled", m.Owner) }

// MailArchived says that a message was moved to the archive of its mailbox.
func MailArchived(by, owner state.AgentID, name string) Event {
	return Event{Type: "mail.archived", Agent: by, Subject: MailSubject(owner, name)}
}

// Reading is the content of events about a message that is shown to a model.
type Reading struct {
	// Reader is the agent of the model. Owner is the owner of the mailbox, and Name the
	// message's name there.
	Reader, Owner state.AgentID
	Name          string
	// How names the way, and the client's session where there is one.
	How string
	Work
}

func (r Reading) build(kind string) Event {
	e := r.event(kind, r.Reader)
	e.Subject, e.Text = MailSubject(r.Owner, r.Name), r.How
	return e
}

// MailInjected says that the whole of a message was put before an agent's model.
func MailInjected(r Reading) Event { return r.build("mail.injected") }

// MailSeen says that the model has answered since a message was put before it.
func MailSeen(r Reading) Event { return r.build("mail.seen") }

// MailQuarantined says that a file that is not a message was moved out of a mailbox.
func MailQuarantined(owner state.AgentID, c *state.Corruption) Event {
	return Event{Type: "mail.quarantined", Agent: owner, Subject: c.Path, Text: c.Reason}
}

// MailStale says that a message is about work that is over, and is not acted on.
func MailStale(owner state.AgentID, name, why string) Event {
	return Event{Type: "mail.stale", Agent: owner, Subject: MailSubject(owner, name), Text: why}
}

// MailUndeliverable says that a message was given up, because its recipient gets none.
func MailUndeliverable(from, to state.AgentID, w Work, text string) Event {
	e := w.event("mail.undeliverable", from)
	e.Subject, e.Text = string(to), text
	return e
}
