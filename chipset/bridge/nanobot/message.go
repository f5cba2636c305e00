package nanobot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// idPrefix begins the ids of messages that come from a rig; the rest is the message's
// name without .json.
const idPrefix = "chipset-"

// origin is the metadata of a message that came from there: what an answer must say of
// it, and what has no place in a message of a rig.
type origin struct {
	Bridge   string          `json:"bridge"`
	ID       string          `json:"id"`
	From     string          `json:"from"`
	Sent     string          `json:"sent"`
	Type     string          `json:"type"`
	ReplyTo  string          `json:"reply_to,omitempty"`
	Task     *task           `json:"task,omitempty"`
	Callback json.RawMessage `json:"callback,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

const bridgeName = "nanobot"

// inward is the mail that a message becomes. What is not legal in a rig stands in
// its metadata alone.
func (m *message) inward() (bridge.Message, error) {
	var body strings.Builder
	for _, part := range m.Content.Parts {
		var text textPart
		if json.Unmarshal(part, &text) == nil && text.Type == "text" {
			body.WriteString(strings.ToValidUTF8(text.Text, "\uFFFD") + "\n")
		}
	}
	from := origin{Bridge: bridgeName, ID: m.ID, Sent: m.Timestamp, From: m.From, Type: m.Type, ReplyTo: m.ReplyTo, Task: m.Task, Metadata: m.Metadata}
	l := bridge.Message{Key: m.ID, From: m.From, Passed: m.Trace, Subject: wording.Subject(body.String(), bridge.MaxSubject, m.Type),
		Message: mail.Message{Type: mail.Coordination, Body: body.String()}}
	if l.Subject == "" {
		l.Subject = typeMessage
	}
	if m.TTL != nil {
		left := max(*m.TTL, 0)
		l.Message.TTL = &left
	}
	var callback struct {
		Channel string `json:"channel"`
		Session string `json:"session_id"`
	}
	if json.Unmarshal(m.Callback, &callback) == nil {
		l.Message.Callback = m.Callback
	} else {
		from.Callback = m.Callback
	}
	if name, ours := strings.CutPrefix(m.ReplyTo, idPrefix); ours {
		if answered, err := mail.ParseName(name); err == nil {
			l.Message.InReplyTo = string(answered)
		}
	}
	if len(m.Content.Parts) > 1 || body.Len() == 0 {
		content, err := json.Marshal(m.Content)
		if err != nil {
			return l, err
		}
		l.Message.Content = content
	}
	about, err := json.Marshal(from)
	if err != nil {
		return l, err
	}
	l.Message.Metadata = about
	return l, m.inwardTask(&l.Message)
}

// inwardTask makes a message a step of a task. A task without an id has that of its message.
func (m *message) inwardTask(to *mail.Message) error {
	if m.Type != typeTask && m.Type != typeTaskUpdate || m.Task == nil && m.Type == typeTaskUpdate {
		return nil
	}
	said := task{}
	if m.Task != nil {
		said = *m.Task
	}
	if said.ID == "" {
		said.ID = m.ID
	}
	t := mail.Task{ID: taskID(said.ID), State: mail.TaskState(said.State)}
	if m.Type == typeTask {
		t.State = mail.TaskPending
	} else if !slices.Contains(mail.TaskStates(), t.State) {
		return nil
	}
	if at, err := time.Parse(time.RFC3339Nano, said.Deadline); err == nil {
		deadline := state.At(at)
		t.Deadline = &deadline
	}
	return to.SetTask(t)
}

// taskID is the id of a foreign task in the rig: the same, or a digest of one that is no
// id here.
func taskID(foreign string) mail.TaskID {
	plain := strings.Trim(foreign, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") == ""
	if plain && len(foreign) <= 128 && !strings.ContainsAny(foreign[:1], "._:-") {
		return mail.TaskID(foreign)
	}
	sum := sha256.Sum256([]byte(foreign))
	return mail.TaskID("nanobot-" + hex.EncodeToString(sum[:8]))
}

// originOf is where a message came from, when that was there.
func originOf(e *mail.Entry) (origin, bool) {
	var from origin
	if e == nil || json.Unmarshal(e.Metadata, &from) != nil || from.Bridge != bridgeName {
		return origin{}, false
	}
	return from, true
}

// outward is the foreign form of a message of the rig.
func outward(inbox string, o bridge.Outgoing) (message, error) {
	text, err := json.Marshal(textPart{Type: "text", Text: strings.TrimPrefix(o.Subject+"\n\n"+o.Body, "\n\n")})
	if err != nil {
		return message{}, err
	}
	m := message{ID: idPrefix + strings.TrimSuffix(string(o.Name), ".json"), From: o.From, To: inbox, Timestamp: o.Timestamp.UTC().Format(time.RFC3339Nano),
		Type: typeMessage, TTL: o.TTL, Trace: slices.Clone(o.Passed), Callback: o.Callback, Content: content{Parts: []json.RawMessage{text}}}
	var more content
	if json.Unmarshal(o.Content, &more) == nil {
		m.Content.Parts = append(m.Content.Parts, more.Parts...)
	}
	if !slices.Contains(m.Trace, o.From) {
		m.Trace = append(m.Trace, o.From)
	}
	answered, theirs := originOf(o.Answers)
	switch {
	case theirs:
		m.ReplyTo = answered.ID
		if answered.Callback != nil {
			m.Callback = answered.Callback
		}
	case o.Answers != nil:
		m.ReplyTo = idPrefix + strings.TrimSuffix(string(o.Answers.Name), ".json")
	}
	if t, err := o.TaskOf(); err == nil && t != nil {
		m.Type, m.Task = typeTaskUpdate, &task{ID: string(t.ID), State: string(t.State)}
		if t.State == mail.TaskPending {
			m.Type = typeTask
		}
		if theirs && answered.Task != nil && answered.Task.ID != "" {
			m.Task.ID = answered.Task.ID
		}
		if t.Deadline != nil {
			m.Task.Deadline = t.Deadline.UTC().Format(time.RFC3339Nano)
		}
	}
	m.Metadata, err = metadata(o.Entry)
	return m, err
}

// metadata is that of the message with its name beside it; what is no object stands
// below "metadata".
func metadata(e *mail.Entry) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(e.Metadata) > 0 && (json.Unmarshal(e.Metadata, &fields) != nil || fields == nil) {
		fields = map[string]json.RawMessage{"metadata": e.Metadata}
	}
	name, err := json.Marshal(e.Name)
	if err != nil {
		return nil, err
	}
	fields["chipset"] = name
	return json.Marshal(fields)
}
