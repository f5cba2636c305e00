package nanobot

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/bridge/bridgetest"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

func mailboxes(t *testing.T) *Mailboxes {
	t.Helper()
	root := t.TempDir()
	bridgetest.Write(t, filepath.Join(root, "_registry.json"), `{"researcher": {"agent_id": "researcher", "status": "idle"}}`)
	n, err := Open(root)
	rigtest.Must(t, err)
	return n
}

func TestInward(t *testing.T) {
	r := rigtest.New(t, "")
	n := mailboxes(t)
	inbox := filepath.Join(n.Root, "lead", "inbox")
	bridgetest.Write(t, filepath.Join(inbox, "1_researcher.msg.json"), `{"id":"msg_1","from":"researcher","to":"lead","timestamp":"2026-04-26T10:00:00Z","type":"message","ttl":3,
		"content":{"parts":[{"type":"text","text":"sorted\nlist"},{"type":"data","data":{"a":1}}]},"callback":{"channel":"feishu","session_id":"u"},"reply_to":null}`)
	bridgetest.Write(t, filepath.Join(inbox, "2_researcher.msg.json"), `{"id":"msg_2","from":"researcher","to":"somebody","content":{"parts":[]}}`)
	bridgetest.Write(t, filepath.Join(inbox, "3_researcher.msg.json"), `{"id":`)
	bridgetest.Write(t, filepath.Join(inbox, "half.tmp"), `{"id":`)
	b := bridgetest.New(t, r, n)
	for range 2 {
		_, err := b.Carry(t.Context())
		if err == nil || !strings.Contains(err.Error(), "2_researcher") || !strings.Contains(err.Error(), "3_researcher") {
			t.Errorf("%v", err)
		}
	}
	got := rigtest.Unread(t, r, "mayor")
	if len(got) != 1 || got[0].Subject != "sorted" || got[0].From != "ext-researcher" || !strings.Contains(string(got[0].Callback), "feishu") ||
		!strings.Contains(string(got[0].Content), `"data"`) {
		t.Errorf("%+v", got)
	}
	bridgetest.Read(t, filepath.Join(n.Root, "lead", "processed", "1_researcher.msg.json"))
	bridgetest.Read(t, filepath.Join(inbox, "2_researcher.msg.json"))
	// A crash before the file was moved.
	rigtest.Must(t, os.Rename(filepath.Join(n.Root, "lead", "processed", "1_researcher.msg.json"), filepath.Join(inbox, "1_researcher.msg.json")))
	_, _ = b.Carry(t.Context())
	if len(rigtest.Unread(t, r, "mayor")) != 1 {
		t.Error("carried twice after a crash")
	}
}

func TestOutward(t *testing.T) {
	r := rigtest.New(t, "")
	n := mailboxes(t)
	b := bridgetest.New(t, r, n)
	name := bridgetest.Send(t, r, "look", "here")
	bridgetest.DeliverOnly(t, b)
	inbox := filepath.Join(n.Root, "researcher", "inbox")
	files, err := os.ReadDir(inbox)
	rigtest.Must(t, err)
	if len(files) != 1 {
		t.Fatalf("%v", files)
	}
	var m map[string]any
	rigtest.Must(t, json.Unmarshal([]byte(bridgetest.Read(t, filepath.Join(inbox, files[0].Name()))), &m))
	if m["from"] != "lead" || m["to"] != "researcher" || m["type"] != "message" || m["id"] != "chipset-"+strings.TrimSuffix(string(name), ".json") {
		t.Errorf("%v", m)
	}
	// Its reader took it before the mail was marked.
	rigtest.Must(t, os.MkdirAll(filepath.Join(n.Root, "researcher", "processed"), 0o755))
	rigtest.Must(t, os.Rename(filepath.Join(inbox, files[0].Name()), filepath.Join(n.Root, "researcher", "processed", files[0].Name())))
	bridgetest.Carry(t, b, 0, 1)
	if files, _ := os.ReadDir(inbox); len(files) != 0 {
		t.Errorf("delivered twice: %v", files)
	}
}

func TestRegistry(t *testing.T) {
	r := rigtest.New(t, "")
	n := mailboxes(t)
	other := `{"agent_id": "writer", "status": "busy", "own": {"b": 1, "a": 2}}`
	bridgetest.Write(t, n.registryFile(), `{"researcher": {"agent_id": "researcher", "description": "finds things\nout", "capabilities": ["search", ""], "status": "idle"}, "writer": `+other+`}`)
	b := bridgetest.New(t, r, n)
	bridgetest.Carry(t, b, 0, 0)
	a, err := r.Agents.Get("ext-researcher")
	if err != nil || a.Description != "finds things" || len(a.Capabilities) != 1 || a.Capabilities[0] != "search" {
		t.Errorf("%+v, %v", a, err)
	}
	entries, err := n.registry()
	rigtest.Must(t, err)
	var lead card
	rigtest.Must(t, json.Unmarshal(entries["lead"], &lead))
	if lead.AgentID != "lead" || lead.Heartbeat == "" || lead.MaxTasks != defaultTasks || len(entries) != 3 {
		t.Errorf("%+v of %d", lead, len(entries))
	}
	if got := strings.Join(strings.Fields(string(entries["writer"])), ""); got != strings.Join(strings.Fields(other), "") {
		t.Errorf("somebody else's entry became %s", got)
	}
	before := bridgetest.Read(t, n.registryFile())
	bridgetest.Carry(t, b, 0, 0)
	if after := bridgetest.Read(t, n.registryFile()); after != before {
		t.Errorf("written again without need: %s", after)
	}
	bridgetest.Write(t, n.registryFile(), `[]`)
	if _, err := b.Carry(t.Context()); err == nil || bridgetest.Read(t, n.registryFile()) != "[]" {
		t.Errorf("%v; the registry is %s", err, bridgetest.Read(t, n.registryFile()))
	}
}
