package event

import (
	"github.com/gastown-chipset/chipset/state"
)

// Mail is what an event tells of a message.
type Mail struct {
	// Owner is whose mailbox it is in, under Name.
	Owner state.AgentID
	Name  string
	// From, Type, Subject and Work are those of the message.
	From          state.AgentID
	Type, Subject string
	Work
}

func (m Mail) told(kind string, agent state.AgentID) Event {
	e := m.event(kind, agent)
	e.Subject, e.From, e.To, e.Text = MailSubject(m.Owner, m.Name), string(m.From), string(m.Owner), m.Type+": "+m.Subject
	return e
}

// MailSubject is how events name a message: its mailbox and its name.
func MailSubject(owner state.AgentID, name string) string { return string(owner) + "/" + name }

// MailSent says that a message is durable in its recipient's mailbox.
func MailSent(m Mail) Event { return m.told("mail.sent", m.From) }

// MailHandled says that its recipient marked a message as read.
func MailHandled(m Mail) Event { return m.told("mail.handled", m.Owner) }

// MailArchived says that a message is in the archive of its mailbox.
func MailArchived(by, owner state.AgentID, name string) Event {
	return Event{Type: "mail.archived", Agent: by, Subject: MailSubject(owner, name)}
}

// Reading is what an event tells of a message that a model is given.
type Reading struct {
	// Reader is the agent whose model it is, Owner whose mailbox the message is in, under Name.
	Reader, Owner state.AgentID
	Name          string
	// How names the way, and the client's session where there is one.
	How string
	Work
}

func (r Reading) told(kind string) Event {
	e := r.event(kind, r.Reader)
	e.Subject, e.Text = MailSubject(r.Owner, r.Name), r.How
	return e
}

// MailInjected says that the whole of a message was put before an agent's model.
func MailInjected(r Reading) Event { return r.told("mail.injected") }

// MailSeen says that the model has answered since a message was put before it.
func MailSeen(r Reading) Event { return r.told("mail.seen") }

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
