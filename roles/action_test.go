package roles

import (
	"encoding/json"
	"testing"

	"github.com/gastown-chipset/chipset/mail"
)

// TestShutdownWithoutReply: a request that asks for no reply gets none, and is obeyed and
// retired all the same.
func TestShutdownWithoutReply(t *testing.T) {
	for _, c := range []struct {
		metadata string
		actions  int
	}{{"", 3}, {`{"no_reply":false}`, 3}, {`{"no_reply":true}`, 2}, {`[]`, 3}} {
		e := mail.Entry{Name: "n", Message: mail.Message{From: "human", Type: mail.ShutdownRequest, Metadata: json.RawMessage(c.metadata)}}
		g := AnswerShutdown("mayor", e, "")
		_, ends := g[len(g)-2].(Finish)
		read, retires := g[len(g)-1].(MarkRead)
		if len(g) != c.actions || !ends || !retires || read.Entry.Name != "n" {
			t.Errorf("%s: %+v", c.metadata, g)
		}
	}
}
