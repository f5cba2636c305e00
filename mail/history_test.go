package mail

import (
	"errors"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state/audit"
)

func TestHistory(t *testing.T) {
	const p = "mail/mayor/2026-03-05T10-30-00.000000000Z-polecat-alpha.json"
	const message = `{"body":"b","from":"polecat-alpha","metadata":{"n":12345678901234567890},"priority":"normal","read":false,` +
		`"subject":"s","timestamp":"2026-03-05T10:30:00.000000000Z","to":"mayor","type":"coordination","x_extra":"kept"}`
	edit := func(old, new string) string { return strings.Replace(message, old, new, 1) }
	read := edit("false", "true")
	for _, c := range []struct {
		name, before, after string
		legal               bool
	}{
		{"the same", message, message, true},
		{"read", message, read, true},
		{"read by a writer with another layout", message, strings.Replace(read, ",", ",\n  ", 1), true},
		{"laid out anew", message, edit(",", ",\n  "), false},
		{"a space behind it", read, read + " ", false},
		{"unread again", read, message, false},
		{"body", message, edit(`"body":"b"`, `"body":"c"`), false},
		{"body and read", message, strings.Replace(read, `"body":"b"`, `"body":"c"`, 1), false},
		{"a digit of a large number", message, edit("567890}", "567891}"), false},
		{"an unknown field", message, edit("kept", "lost"), false},
		{"an unknown field gone", message, edit(`,"x_extra":"kept"`, ""), false},
		{"a new field", message, edit(`"body":`, `"thread":"t","body":`), false},
		{"another sender", message, edit(`"from":"polecat-alpha"`, `"from":"mayor"`), false},
		{"torn", message, message[:100], false},
		{"empty", message, "", false},
		{"what never was a message", "garbage", message, true},
	} {
		if err := moved(p, []byte(c.before), []byte(c.after)); (err == nil) != c.legal {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	const others = "the message was changed: its bytes differ, but not its read flag"
	for _, same := range []string{message, read} {
		if err := moved(p, []byte(same), []byte(same+" ")); err == nil || err.Error() != others {
			t.Errorf("a space behind %s: %v, want %q", same, err, others)
		}
	}
	if err := moved(p, nil, []byte("{}")); !errors.Is(err, audit.ErrUnreadable) {
		t.Errorf("a file that is not a message: %v", err)
	}
}
