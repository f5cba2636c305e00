package nanobot

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/bridge/bridgetest"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest"
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

// theirs is nanobot's own side of the mailboxes, in its own language.
type theirs struct {
	*testing.T
	root string
}

func (o theirs) run(input string, args ...string) []byte {
	o.Helper()
	cmd := exec.Command("python3", append([]string{"testdata/mailbox.py", o.root}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	rigtest.Must(o.T, err)
	return out
}

func (o theirs) poll(agent string) []map[string]any {
	o.Helper()
	var got []map[string]any
	rigtest.Must(o.T, json.Unmarshal(o.run("", "poll", agent), &got))
	return got
}

func requirePython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		statetest.Missing(t, "python3, in which the other program is written, is not installed")
	}
}

// A task of nanobot is a task of the rig's agent, with its deadline, and its updates find
// back with everything that the requester wants to know again.
func TestTheirTask(t *testing.T) {
	requirePython(t)
	r := rigtest.New(t, "")
	n := mailboxes(t)
	b, they := bridgetest.New(t, r, n), theirs{t, n.Root}
	they.run(`{"id":"msg_1","type":"task","ttl":2,"trace":["writer","researcher","lead"],"task":{"id":"sort list","state":"pending","deadline":"2036-04-26T11:00:00Z"},
		"content":{"parts":[{"type":"text","text":"sort it"}]},"callback":{"session_id":"feishu:u","channel":"feishu"},"reply_to":null,"metadata":{"n":1,"deep":{"a":[true]}}}`,
		"send", "researcher", "lead")
	bridgetest.Carry(t, b, 1, 0)
	got := rigtest.Unread(t, r, "mayor")
	if len(got) != 1 || *got[0].TTL != 2 || len(got[0].Trace) != 2 || got[0].Trace[0] != "writer" || got[0].Trace[1] != "ext-researcher" ||
		!strings.Contains(strings.Join(strings.Fields(string(got[0].Metadata)), ""), `"deep":{"a":[true]}`) {
		t.Fatalf("%+v", got)
	}
	asked, err := got[0].TaskOf()
	if err != nil || asked == nil || asked.State != mail.TaskPending || asked.Deadline == nil {
		t.Fatalf("%+v, %v", asked, err)
	}
	for _, to := range []mail.TaskState{mail.TaskAccepted, mail.TaskWorking, mail.TaskCompleted} {
		m := mail.Message{From: "mayor", To: "ext-researcher", Type: mail.Coordination, Subject: string(to), InReplyTo: string(got[0].Name)}
		rigtest.Must(t, m.SetTask(mail.Task{ID: asked.ID, State: to}))
		_, err := r.Sender.Send(t.Context(), m)
		rigtest.Must(t, err)
		bridgetest.Carry(t, b, 0, 1)
		var lead card
		entries, err := n.registry()
		rigtest.Must(t, err)
		rigtest.Must(t, json.Unmarshal(entries["lead"], &lead))
		if inHand := len(lead.CurrentTasks) == 1; inHand == to.Final() {
			t.Errorf("%s: its card says %v", to, lead.CurrentTasks)
		}
	}
	updates := they.poll("researcher")
	if len(updates) != 3 {
		t.Fatalf("%v", updates)
	}
	for i, want := range []string{"accepted", "working", "completed"} {
		u := updates[i]
		task, _ := u["task"].(map[string]any)
		callback, _ := u["callback"].(map[string]any)
		if u["type"] != "task_update" || u["reply_to"] != "msg_1" || task["id"] != "sort list" || task["state"] != want ||
			task["deadline"] != "2036-04-26T11:00:00Z" || callback["channel"] != "feishu" {
			t.Errorf("update %d: %v", i, u)
		}
	}
}

// A task that the rig asks for ends as nanobot says, also where it leaves out steps, and
// what is no step of any task is a message all the same.
func TestOurTask(t *testing.T) {
	requirePython(t)
	r := rigtest.New(t, "")
	n := mailboxes(t)
	b, they := bridgetest.New(t, r, n), theirs{t, n.Root}
	m := mail.Message{From: "mayor", To: "ext-researcher", Type: mail.Coordination, Subject: "Look", Metadata: json.RawMessage(`{"depth":{"n":2}}`), Trace: []state.AgentID{"human"}}
	rigtest.Must(t, m.SetTask(mail.Task{ID: "tk-1"}))
	name, err := r.Sender.Send(t.Context(), m)
	rigtest.Must(t, err)
	bridgetest.Carry(t, b, 0, 1)
	got := they.poll("researcher")
	if len(got) != 1 || got[0]["type"] != "task" || got[0]["task"].(map[string]any)["state"] != "pending" || got[0]["metadata"].(map[string]any)["depth"] == nil {
		t.Fatalf("%v", got)
	}
	they.run(`{"type":"task_update","task":{"id":"tk-1","state":"completed"},"content":{"parts":[{"type":"text","text":"three found"}]},"callback":7,"reply_to":"`+got[0]["id"].(string)+`","metadata":[1]}`,
		"send", "researcher", "lead")
	they.run(`{"id":"late","type":"task_update","task":{"id":"tk-1","state":"working"},"content":{"parts":[]}}`, "send", "researcher", "lead")
	they.run(`{"id":"odd","type":"task_update","task":{"id":"unknown","state":"failed"},"ttl":-1,"content":{"parts":[]}}`, "send", "researcher", "lead")
	bridgetest.Carry(t, b, 3, 0)
	bridgetest.Carry(t, b, 0, 0)
	request, err := r.Mailbox("ext-researcher").Get(name)
	rigtest.Must(t, err)
	status, err := mail.TaskStatusOf(r.Mailbox("mayor"), &request)
	if err != nil || status.State != mail.TaskCompleted {
		t.Errorf("%+v, %v", status, err)
	}
	answers := 0
	for _, e := range rigtest.Unread(t, r, "mayor") {
		if e.Subject == "three found" && e.InReplyTo == string(name) {
			answers++
		}
	}
	if unread := rigtest.Unread(t, r, "mayor"); answers != 1 || len(unread) != 5 { // with the two steps that were left out
		t.Errorf("%d answers, %+v", answers, unread)
	}
}
