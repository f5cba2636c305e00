package mail

import (
	"bytes"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// readAlready reports whether a file is certainly a message that Decode accepts and that
// is marked as read. If sure is false, only Decode can tell. task reports whether the
// message may refer to a task. It takes a sixth of the time of Decode, which would
// dominate the first look at a large mailbox.
func readAlready(owner state.AgentID, n Name, data []byte) (sure, task bool) {
	var buf [24]state.Field
	fields, ok := state.Fields(data, buf[:0])
	if !ok || string(state.FieldNamed(fields, "read")) != "true" {
		return false, false
	}
	for _, name := range requiredFields() {
		value := state.FieldNamed(fields, name)
		if name != "read" && (len(value) == 0 || value[0] != '"') {
			return false, false
		}
	}
	for _, f := range fields {
		task = task || string(f.Name) == "task"
		if !certain(f) {
			return false, false
		}
	}
	at, from, err := state.ParseTimestampedName(string(n))
	sure = err == nil && is(fields, "to", string(owner)) && is(fields, "from", string(from)) && knownType(fields) && sentAt(fields, at)
	return sure, task
}

// certain reports whether Decode certainly accepts the value of a field.
func certain(f state.Field) bool {
	switch string(f.Name) {
	case "ttl", "trace", "deadline", "expires_at":
		return false
	case "ref":
		return certainRef(f.Value)
	case "id", "thread", "in_reply_to":
		return f.Value[0] == '"'
	}
	return true // checked elsewhere, or decoded as raw JSON
}

func certainRef(value []byte) bool {
	var buf [8]state.Field
	fields, ok := state.Fields(value, buf[:0])
	for _, f := range fields {
		switch string(f.Name) {
		case "bead_id", "assignment_id", "session":
			text, plain := plainText(f.Value)
			ok = ok && plain && state.CheckID(string(text)) == nil
		}
	}
	return ok
}

func is(fields []state.Field, name, want string) bool {
	text, plain := plainText(state.FieldNamed(fields, name))
	return plain && string(text) == want
}

func knownType(fields []state.Field) bool {
	text, plain := plainText(state.FieldNamed(fields, "type"))
	return plain && Type(text).wellFormed()
}

func sentAt(fields []state.Field, at state.Time) bool {
	text, plain := plainText(state.FieldNamed(fields, "timestamp"))
	if !plain || bytes.IndexByte(text, '"') >= 0 {
		return false
	}
	var sent state.Time
	if err := sent.UnmarshalText(text); err != nil {
		return false
	}
	skew := sent.Sub(at.Time)
	return skew <= time.Second && skew >= -time.Second
}

// plainText returns the content of a JSON string without escapes.
func plainText(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return nil, false
	}
	return value[1 : len(value)-1], true
}
