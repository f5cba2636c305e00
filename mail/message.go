package mail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// Type is what a message is about.
type Type string

// The types that roles handle. Types that senders define begin with "x-".
const (
	WorkAssignment     Type   = "work_assignment"
	CompletionReport   Type   = "completion_report"
	MergeNotification  Type   = "merge_notification"
	HealthEscalation   Type   = "health_escalation"
	Coordination       Type   = "coordination"
	IdleNotification   Type   = "idle_notification"
	ShutdownRequest    Type   = "shutdown_request"
	ShutdownResponse   Type   = "shutdown_response"
	PlanRequest        Type   = "plan_approval_request"
	PlanResponse       Type   = "plan_approval_response"
	PermissionRequest  Type   = "permission_request"
	PermissionResponse Type   = "permission_response"
	ownPrefix          string = "x-"
)

// Types lists the known types, for help texts and checks.
func Types() []Type {
	return []Type{WorkAssignment, CompletionReport, MergeNotification, HealthEscalation, Coordination,
		IdleNotification, ShutdownRequest, ShutdownResponse, PlanRequest, PlanResponse, PermissionRequest, PermissionResponse}
}

// RoleOnly reports whether only the role process may mark mail of this type read.
func (t Type) RoleOnly() bool {
	return t == WorkAssignment || t == ShutdownRequest || strings.HasSuffix(string(t), "_response")
}

// Priority orders mail inside a group of senders.
type Priority string

// Priorities.
const (
	Urgent Priority = "urgent"
	Normal Priority = "normal"
	Low    Priority = "low"
)

func (p Priority) rank() int {
	switch p {
	case Urgent:
		return 0
	case Low:
		return 2
	case Normal:
	}
	return 1 // unknown priorities of other programs count as normal
}

// Ref is what a message refers to.
type Ref struct {
	BeadID       state.BeadID       `json:"bead_id,omitempty"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	Session      state.SessionID    `json:"session,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (r *Ref) UnmarshalJSON(b []byte) error {
	type plain Ref
	return state.UnmarshalWithExtra(b, (*plain)(r), &r.Extra)
}

// MarshalJSON writes unknown fields back.
func (r Ref) MarshalJSON() ([]byte, error) {
	type plain Ref
	return state.MarshalWithExtra(plain(r), r.Extra)
}

// Message is one message. Only Read ever changes.
type Message struct {
	From      state.AgentID `json:"from"`
	To        state.AgentID `json:"to"`
	Type      Type          `json:"type"`
	Subject   string        `json:"subject"`
	Body      string        `json:"body"`
	Timestamp state.Time    `json:"timestamp"`
	// Read is true once the recipient has processed it.
	Read     bool     `json:"read"`
	Priority Priority `json:"priority"`
	// ID is set by the sender for idempotent retries.
	ID        string `json:"id,omitempty"`
	Thread    string `json:"thread,omitempty"`
	InReplyTo string `json:"in_reply_to,omitempty"`
	Ref       *Ref   `json:"ref,omitempty"`
	// TTL is how many hops are left, and Trace lists the agents that passed the message
	// on (loop protection).
	TTL       *int            `json:"ttl,omitempty"`
	Trace     []state.AgentID `json:"trace,omitempty"`
	Deadline  *state.Time     `json:"deadline,omitempty"`
	ExpiresAt *state.Time     `json:"expires_at,omitempty"`
	Task      json.RawMessage `json:"task,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Callback  json.RawMessage `json:"callback,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (m *Message) UnmarshalJSON(b []byte) error {
	type plain Message
	return state.UnmarshalWithExtra(b, (*plain)(m), &m.Extra)
}

// MarshalJSON writes unknown fields back.
func (m Message) MarshalJSON() ([]byte, error) {
	type plain Message
	return state.MarshalWithExtra(plain(m), m.Extra)
}

// RequestsShutdown reports whether the person or the mayor asks the session to end.
func (m *Message) RequestsShutdown(mayor state.AgentID, session state.SessionID) bool {
	return m.Type == ShutdownRequest && (m.From == state.Human || m.From == mayor) && m.Ref != nil && m.Ref.Session == session
}

// Name is a message's file name in its mailbox.
type Name string

// NameAt returns the name of a message by its time and sender.
func NameAt(at state.Time, from state.AgentID) Name {
	return Name(at.Stamp() + "-" + string(from) + ".json")
}

// ParseName checks a name from a person or a file; ".json" may be missing.
func ParseName(s string) (Name, error) {
	if !strings.HasSuffix(s, ".json") {
		s += ".json"
	}
	if _, _, err := state.ParseTimestampedName(s); err != nil {
		return "", err
	}
	return Name(s), nil
}

// Time returns the time in the name, or the zero time if the name is invalid.
func (n Name) Time() state.Time {
	at, _, err := state.ParseTimestampedName(string(n))
	if err != nil {
		return state.Time{}
	}
	return at
}

// MaxSize is the maximum size of a message's file, in bytes.
const MaxSize = 64 << 10

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	digits       = "0123456789"
	alphanumeric = lowerLetters + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
)

// word reports whether s consists of a character of first and then characters of rest,
// and has at most most bytes.
func word(s string, most int, first, rest string) bool {
	return s != "" && len(s) <= most && strings.Contains(first, s[:1]) && strings.Trim(s, rest) == ""
}

// wellFormed reports whether t is a valid type, even if it is unknown.
func (t Type) wellFormed() bool { return word(string(t), 64, lowerLetters, lowerLetters+digits+"_.-") }

// Validate returns an error unless the message may be sent.
func (m *Message) Validate() error {
	switch {
	case m.From == "" || m.To == "":
		return fmt.Errorf("message: from and to are required")
	case !slices.Contains(Types(), m.Type) && (!strings.HasPrefix(string(m.Type), ownPrefix) || !m.Type.wellFormed()):
		return fmt.Errorf("message: unknown type %q (one of %v, or your own x-…)", m.Type, Types())
	case strings.TrimSpace(m.Subject) == "":
		return fmt.Errorf("message: no subject")
	case strings.ContainsAny(m.Subject, "\n\r\x00"):
		return fmt.Errorf("message: the subject must be one line")
	case m.Priority != Urgent && m.Priority != Normal && m.Priority != Low:
		return fmt.Errorf("message: unknown priority %q (urgent, normal, low)", m.Priority)
	case len(m.ID) > 200:
		return fmt.Errorf("message: id of %d bytes, at most 200", len(m.ID))
	case m.TTL != nil && *m.TTL < 0:
		return fmt.Errorf("message: ttl %d: no hops are left", *m.TTL)
	case slices.Contains(m.Trace, m.To):
		return fmt.Errorf("message: loop: %s is in the trace already", m.To)
	}
	if err := m.checkTask(); err != nil {
		return err
	}
	return m.checkCallback()
}

// Encode returns the content of the message's file. Errors: ErrTooLarge above limit bytes.
func (m *Message) Encode(limit int64) ([]byte, error) {
	data, err := state.Encode(m)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("message: %w: %d bytes, at most %d", state.ErrTooLarge, len(data), limit)
	}
	return data, nil
}

// Decode parses the file of a message with that name in the mailbox of owner. Every
// error is a *Corruption.
func Decode(path string, owner state.AgentID, name Name, data []byte) (Message, error) {
	var m Message
	if err := state.Decode(path, data, &m); err != nil {
		return m, err
	}
	at, from, err := state.ParseTimestampedName(string(name))
	if err != nil {
		return m, &state.Corruption{Path: path, Reason: "the name is not {timestamp}-{from}.json"}
	}
	if missing := missingFields(data); missing != "" {
		return m, &state.Corruption{Path: path, Reason: "no " + missing}
	}
	var reason string
	switch skew := m.Timestamp.Sub(at.Time); {
	case m.To != owner:
		reason = fmt.Sprintf("to %q is not the owner of the mailbox", m.To)
	case m.From != from:
		reason = fmt.Sprintf("from %q contradicts the file's name", m.From)
	case skew > time.Second || skew < -time.Second: // other writers cut fractions off
		reason = fmt.Sprintf("timestamp %s contradicts the file's name", m.Timestamp)
	case !m.Type.wellFormed():
		reason = fmt.Sprintf("type %q is invalid", m.Type)
	}
	if reason != "" {
		return m, &state.Corruption{Path: path, Reason: reason}
	}
	return m, nil
}

// requiredFields are the fields that every message must have.
func requiredFields() [8]string {
	return [8]string{"from", "to", "type", "subject", "body", "timestamp", "read", "priority"}
}

func missingFields(data []byte) string {
	var buf [24]state.Field
	fields, _ := state.Fields(data, buf[:0])
	var missing []string
	for _, name := range requiredFields() {
		if value := state.FieldNamed(fields, name); value == nil || string(value) == "null" {
			missing = append(missing, name)
		}
	}
	return strings.Join(missing, ", ")
}

// markRead returns the file's bytes with the top-level "read" set to true and no other
// byte changed, because another program may have written the file in another layout.
func markRead(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if key == "read" {
			end := int(dec.InputOffset())
			start := end - len(value)
			return slices.Concat(data[:start], []byte("true"), data[end:]), nil
		}
	}
	return nil, fmt.Errorf("no read field")
}

// Entry is a message in a mailbox.
type Entry struct {
	Name Name
	// Archived is true for one below archive/.
	Archived bool
	Message
}

// Sort sorts entries by time, then by name.
func Sort(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.Timestamp.Compare(b.Timestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// SortForProcessing sorts unread mail as a recipient processes it: shutdown_request
// first, then from human, then from the mayor, then peers; inside each group
// by priority, then by time.
func SortForProcessing(entries []Entry, mayor state.AgentID) {
	group := func(m *Message) int {
		switch {
		case m.Type == ShutdownRequest:
			return 0
		case m.From == state.Human:
			return 1
		case m.From == mayor:
			return 2
		}
		return 3
	}
	Sort(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(group(&a.Message)-group(&b.Message), a.Priority.rank()-b.Priority.rank())
	})
}
