// Package bridgetest carries mail between a rig and a foreign system in tests.
package bridgetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
)

// New registers a bridge between r and f: the mayor is called lead there, and researcher is
// ext-researcher here.
func New(t *testing.T, r *rig.Rig, f bridge.System) *bridge.Bridge {
	t.Helper()
	b := &bridge.Bridge{Rig: r, Foreign: f, Ours: []bridge.Pair{{Foreign: "lead", Agent: "mayor"}},
		Theirs: []bridge.Pair{{Foreign: "researcher", Agent: "ext-researcher"}}}
	rigtest.Must(t, b.Register(t.Context()))
	return b
}

// Carry carries once, and wants so many messages each way.
func Carry(t *testing.T, b *bridge.Bridge, in, out int) {
	t.Helper()
	n, err := b.Carry(t.Context())
	rigtest.Must(t, err)
	if n != (bridge.Count{In: in, Out: out}) {
		t.Errorf("carried %+v, want %d in, %d out", n, in, out)
	}
}

// Write writes a file and the folders above it.
func Write(t *testing.T, path, text string) {
	t.Helper()
	rigtest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	rigtest.Must(t, os.WriteFile(path, []byte(text), 0o644))
}

// Read returns what a file holds.
func Read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	rigtest.Must(t, err)
	return string(data)
}

// Send sends a message from the mayor to the agent that stands for researcher.
func Send(t *testing.T, r *rig.Rig, subject, body string) mail.Name {
	t.Helper()
	n, err := r.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "ext-researcher", Type: mail.Coordination, Subject: subject, Body: body})
	rigtest.Must(t, err)
	return n
}

// DeliverOnly does what is durable of a crash after the foreign inbox was written and before the mail was marked.
func DeliverOnly(t *testing.T, b *bridge.Bridge) {
	t.Helper()
	for _, e := range rigtest.Unread(t, b.Rig, "ext-researcher") {
		rigtest.Must(t, b.Foreign.Deliver(t.Context(), "researcher", bridge.Outgoing{Entry: &e, From: "lead"}))
	}
}
