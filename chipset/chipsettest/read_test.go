package chipsettest_test

import (
	"encoding/json"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

// message is what tests look at in a file of a mailbox; one that can't be
// decoded is empty.
type message struct {
	ID   string `json:"id"`
	Body string `json:"body"`
}

func decodeMessage(data []byte) message {
	var m message
	if json.Unmarshal(data, &m) != nil {
		return message{}
	}
	return m
}

// hookAt is where a hook is in its history.
type hookAt struct {
	Gen    int    `json:"gen"`
	Status string `json:"status"`
}

func readHook(t *testing.T, w *chipsettest.World, agent string) hookAt {
	t.Helper()
	var h hookAt
	if err := json.Unmarshal([]byte(w.Chipset("hook", "show", agent, "--json")), &h); err != nil {
		t.Fatal(err)
	}
	return h
}
