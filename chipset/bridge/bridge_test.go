package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

// pairs: the mayor is called lead there, and researcher is ext-researcher here.
func testBridge(t *testing.T, r *rig.Rig, f Foreign) *Bridge {
	t.Helper()
	b := &Bridge{Rig: r, Foreign: f, Ours: []Pair{{Foreign: "lead", Agent: "mayor"}},
		Theirs: []Pair{{Foreign: "researcher", Agent: "ext-researcher"}}}
	rigtest.Must(t, b.Register(t.Context()))
	return b
}

func carry(t *testing.T, b *Bridge, in, out int) {
	t.Helper()
	n, err := b.Carry(t.Context())
	rigtest.Must(t, err)
	if n != (Count{In: in, Out: out}) {
		t.Errorf("carried %+v, want %d in, %d out", n, in, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	rigtest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	rigtest.Must(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	rigtest.Must(t, err)
	return string(data)
}

func TestParsePair(t *testing.T) {
	if p, err := ParsePair("Researcher=ext"); err != nil || p != (Pair{"Researcher", "ext"}) {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{"", "=x", "../x=y", "a/b=y", ".x=y", "-x=y", "X", "x=Y Z", "x=", strings.Repeat("x", 65) + "=y"} {
		if p, err := ParsePair(bad); err == nil {
			t.Errorf("%q became %+v", bad, p)
		}
	}
}

func TestNobodyOfTheRigStandsForAForeignAgent(t *testing.T) {
	r := rigtest.New(t, "")
	b := &Bridge{Rig: r, Theirs: []Pair{{Foreign: "x", Agent: "witness"}}}
	if err := b.Register(t.Context()); err == nil {
		t.Error("the witness was given away")
	}
}

func send(t *testing.T, r *rig.Rig, subject, body string) mail.Name {
	t.Helper()
	n, err := r.Send(t.Context(), mail.Message{From: "mayor", To: "ext-researcher", Type: mail.Coordination, Subject: subject, Body: body})
	rigtest.Must(t, err)
	return n
}

// A crash after the foreign inbox was written and before the mail was marked.
func deliverOnly(t *testing.T, b *Bridge) {
	t.Helper()
	for _, e := range rigtest.Unread(t, b.Rig, "ext-researcher") {
		rigtest.Must(t, b.Foreign.Deliver(t.Context(), "researcher", "lead", &e))
	}
}

func claudeTeam(t *testing.T, name string) (*ClaudeTeam, func(inbox string) string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	rigtest.Must(t, os.MkdirAll(filepath.Join(dir, "inboxes"), 0o755))
	c, err := OpenClaudeTeam(dir)
	rigtest.Must(t, err)
	return c, func(inbox string) string { return filepath.Join(dir, "inboxes", inbox+".json") }
}

const foreignEntries = `[
  {"from": "researcher", "text": "found three", "timestamp": "2026-04-01T10:30:00.000Z", "read": false, "color": "blue", "future": {"b": 1, "a": 2}},
  {"from": "researcher", "text": "old news", "timestamp": "2026-04-01T10:29:00.000Z", "read": true},
  "not a message",
  {"from": "researcher", "text": "{\"type\":\"idle_notification\",\"summary\":\"done with the docs\"}", "timestamp": "2026-04-01T10:31:00.000Z", "read": false, "msg_id": "m1"},
  {"from": "researcher", "text": "{\"type\":\"permission_response\",\"approved\":true}", "timestamp": "2026-04-01T10:32:00.000Z", "read": false, "msg_id": "m2"}
]`

func TestClaudeTeamInward(t *testing.T) {
	for _, layout := range []string{"session-0a1b2c3d", "my-team"} {
		t.Run(layout, func(t *testing.T) {
			r := rigtest.New(t, "")
			team, inbox := claudeTeam(t, layout)
			write(t, inbox("lead"), foreignEntries)
			b := testBridge(t, r, team)
			n, err := b.Carry(t.Context())
			if n.In != 3 || err == nil || !strings.Contains(err.Error(), "entry 3") {
				t.Errorf("%+v, %v", n, err)
			}
			var got []string
			for _, e := range rigtest.Unread(t, r, "mayor") {
				got = append(got, fmt.Sprintf("%s %s: %s", e.From, e.Type, e.Subject))
			}
			want := "ext-researcher coordination: found three; ext-researcher idle_notification: done with the docs; ext-researcher coordination: permission_response"
			if strings.Join(got, "; ") != want {
				t.Errorf("mail:\n%s\nwant\n%s", strings.Join(got, "; "), want)
			}
			after := read(t, inbox("lead"))
			if strings.Contains(after, "found three") != (layout == "my-team") || !strings.Contains(after, `"not a message"`) || !strings.Contains(after, "old news") {
				t.Errorf("the inbox is now %s", after)
			}
			if layout == "my-team" && !strings.Contains(strings.Join(strings.Fields(after), ""), `"future":{"b":1,"a":2}`) {
				t.Errorf("an unknown field was changed: %s", after)
			}
			if n, _ := b.Carry(t.Context()); n.In != 0 {
				t.Errorf("carried %d again", n.In)
			}
			// A crash before the entries were retired.
			write(t, inbox("lead"), foreignEntries)
			_, _ = b.Carry(t.Context())
			if len(rigtest.Unread(t, r, "mayor")) != 3 {
				t.Errorf("%d messages after a crash, want 3", len(rigtest.Unread(t, r, "mayor")))
			}
		})
	}
}

func TestClaudeTeamOutward(t *testing.T) {
	r := rigtest.New(t, "")
	team, inbox := claudeTeam(t, "session-0a1b2c3d")
	write(t, inbox("researcher"), `[{"from":"team-lead","text":"theirs","timestamp":"2026-04-01T10:30:00.000Z","read":false,"x":1}]`)
	b := testBridge(t, r, team)
	name := send(t, r, "look", "at <this>")
	deliverOnly(t, b)
	carry(t, b, 0, 1)
	carry(t, b, 0, 0)
	var entries []map[string]any
	rigtest.Must(t, json.Unmarshal([]byte(read(t, inbox("researcher"))), &entries))
	if len(entries) != 2 || entries[0]["x"] != 1.0 || entries[1]["text"] != "at <this>" || entries[1]["from"] != "lead" || entries[1]["read"] != false {
		t.Errorf("%v", entries)
	}
	e, err := r.Mailbox("ext-researcher").Get(name)
	if err != nil || !e.Read || e.Body != "at <this>" {
		t.Errorf("the rig's own copy: %+v, %v", e, err)
	}
	write(t, r.Tree.Abs(r.Mailbox("ext-researcher").Dir().Join("odd.json")), "{")
	send(t, r, "more", "beside what can't be read")
	if n, err := b.Carry(t.Context()); n.Out != 1 || !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("carried %+v beside what can't be read, %v", n, err)
	}
}

// Wherever the bridge is killed, and whatever the other program does with an entry
// before it runs again, the entry is written once.
func TestClaudeTeamOutwardOnceAfterAKill(t *testing.T) {
	for name, killed := range map[string]struct {
		// left is what the killed bridge had done; written tells whether the entry was put in place.
		left    func(t *testing.T, s steps, inbox string)
		written bool
	}{
		"while it staged":        {func(t *testing.T, s steps, _ string) { write(t, s.staged, "[") }, false},
		"before it was in place": {func(t *testing.T, s steps, _ string) { write(t, s.staged, "[]"); write(t, s.ready, "ready") }, false},
		"after that": {func(t *testing.T, s steps, inbox string) {
			rigtest.Must(t, os.MkdirAll(filepath.Dir(s.staged), 0o755))
			rigtest.Must(t, s.put(inbox, []byte("[]")))
		}, true},
		"while a later try cleared up": {func(t *testing.T, s steps, _ string) { write(t, s.staged, "[]") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigtest.New(t, "")
			team, inbox := claudeTeam(t, "session-0a1b2c3d")
			b := testBridge(t, r, team)
			e, err := r.Mailbox("ext-researcher").Get(send(t, r, "look", "at this"))
			rigtest.Must(t, err)
			s := team.steps("researcher", &e)
			killed.left(t, s, inbox("researcher")) // what was put in place was delivered and deleted meanwhile
			carry(t, b, 0, 1)
			carry(t, b, 0, 0)
			text := ""
			if exists, _ := there(inbox("researcher")); exists {
				text = read(t, inbox("researcher"))
			}
			if n := strings.Count(text, claudeID(&e)); (n == 0) != killed.written || n > 1 {
				t.Errorf("written %d times: %s", n, text)
			}
			if left, err := os.ReadDir(filepath.Dir(s.staged)); len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// Writers that keep to the lock lose nothing to the bridge, and it nothing to them.
func TestClaudeTeamWritersLoseNothing(t *testing.T) {
	r := rigtest.New(t, "")
	team, inbox := claudeTeam(t, "session-0a1b2c3d")
	b := testBridge(t, r, team)
	const n = 30
	wrote := make(chan error, 1)
	go func() {
		for i := range n {
			err := team.locked(t.Context(), "lead", func(entries []json.RawMessage) ([]json.RawMessage, error) {
				return append(entries, json.RawMessage(fmt.Sprintf(`{"from":"researcher","text":"number %d","timestamp":"2026-04-01T10:30:00.%03dZ","read":false}`, i, i))), nil
			})
			if err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	in := 0
	for done := false; !done; {
		select {
		case err := <-wrote:
			rigtest.Must(t, err)
			done = true
		default:
		}
		c, err := b.Carry(t.Context())
		rigtest.Must(t, err)
		in += c.In
	}
	c, err := b.Carry(t.Context())
	rigtest.Must(t, err)
	if in+c.In != n || len(rigtest.Unread(t, r, "mayor")) != n {
		t.Errorf("carried %d, %d messages, want %d", in+c.In, len(rigtest.Unread(t, r, "mayor")), n)
	}
	if left := strings.TrimSpace(read(t, inbox("lead"))); left != "[]" {
		t.Errorf("left: %s", left)
	}
}

func TestClaudeTeamLeavesWhatItDoesNotKnow(t *testing.T) {
	r := rigtest.New(t, "")
	team, inbox := claudeTeam(t, "session-0a1b2c3d")
	b := testBridge(t, r, team)
	send(t, r, "look", "here")
	outside := filepath.Join(t.TempDir(), "outside.json")
	write(t, outside, "[]")
	for name, make := range map[string]func(){
		"another format": func() { write(t, inbox("researcher"), `{"version": 9}`) },
		"broken":         func() { write(t, inbox("researcher"), `[{"from":`) },
		"a link":         func() { rigtest.Must(t, os.Symlink(outside, inbox("researcher"))) },
	} {
		_ = os.Remove(inbox("researcher"))
		make()
		before := read(t, inbox("researcher"))
		if _, err := b.Carry(t.Context()); err == nil {
			t.Errorf("%s: carried", name)
		}
		if after := read(t, inbox("researcher")); after != before {
			t.Errorf("%s: it is now %s", name, after)
		}
	}
	if len(rigtest.Unread(t, r, "ext-researcher")) != 1 {
		t.Error("the message is no longer unread, though it was not delivered")
	}
	if _, err := OpenClaudeTeam(t.TempDir()); err == nil {
		t.Error("any folder is a team")
	}
}

func nanobotRoot(t *testing.T) *Nanobot {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "_registry.json"), `{"researcher": {"agent_id": "researcher", "status": "idle"}}`)
	n, err := OpenNanobot(root)
	rigtest.Must(t, err)
	return n
}

func TestNanobotInward(t *testing.T) {
	r := rigtest.New(t, "")
	n := nanobotRoot(t)
	inbox := filepath.Join(n.Root, "lead", "inbox")
	write(t, filepath.Join(inbox, "1_researcher.msg.json"), `{"id":"msg_1","from":"researcher","to":"lead","timestamp":"2026-04-26T10:00:00Z","type":"message","ttl":3,
		"content":{"parts":[{"type":"text","text":"sorted\nlist"},{"type":"data","data":{"a":1}}]},"callback":{"channel":"feishu","session_id":"u"},"reply_to":null}`)
	write(t, filepath.Join(inbox, "2_researcher.msg.json"), `{"id":"msg_2","from":"researcher","to":"somebody","content":{"parts":[]}}`)
	write(t, filepath.Join(inbox, "3_researcher.msg.json"), `{"id":`)
	write(t, filepath.Join(inbox, "half.tmp"), `{"id":`)
	b := testBridge(t, r, n)
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
	read(t, filepath.Join(n.Root, "lead", "processed", "1_researcher.msg.json"))
	read(t, filepath.Join(inbox, "2_researcher.msg.json"))
	// A crash before the file was moved.
	rigtest.Must(t, os.Rename(filepath.Join(n.Root, "lead", "processed", "1_researcher.msg.json"), filepath.Join(inbox, "1_researcher.msg.json")))
	_, _ = b.Carry(t.Context())
	if len(rigtest.Unread(t, r, "mayor")) != 1 {
		t.Error("carried twice after a crash")
	}
}

func TestNanobotOutward(t *testing.T) {
	r := rigtest.New(t, "")
	n := nanobotRoot(t)
	b := testBridge(t, r, n)
	name := send(t, r, "look", "here")
	deliverOnly(t, b)
	inbox := filepath.Join(n.Root, "researcher", "inbox")
	files, err := os.ReadDir(inbox)
	rigtest.Must(t, err)
	if len(files) != 1 {
		t.Fatalf("%v", files)
	}
	var m map[string]any
	rigtest.Must(t, json.Unmarshal([]byte(read(t, filepath.Join(inbox, files[0].Name()))), &m))
	if m["from"] != "lead" || m["to"] != "researcher" || m["type"] != "message" || m["id"] != "chipset-"+strings.TrimSuffix(string(name), ".json") {
		t.Errorf("%v", m)
	}
	// Its reader took it before the mail was marked.
	rigtest.Must(t, os.MkdirAll(filepath.Join(n.Root, "researcher", "processed"), 0o755))
	rigtest.Must(t, os.Rename(filepath.Join(inbox, files[0].Name()), filepath.Join(n.Root, "researcher", "processed", files[0].Name())))
	carry(t, b, 0, 1)
	if files, _ := os.ReadDir(inbox); len(files) != 0 {
		t.Errorf("delivered twice: %v", files)
	}
}

func TestNanobotRegistry(t *testing.T) {
	r := rigtest.New(t, "")
	n := nanobotRoot(t)
	other := `{"agent_id": "writer", "status": "busy", "own": {"b": 1, "a": 2}}`
	write(t, n.registryFile(), `{"researcher": {"agent_id": "researcher", "description": "finds things\nout", "capabilities": ["search", ""], "status": "idle"}, "writer": `+other+`}`)
	b := testBridge(t, r, n)
	carry(t, b, 0, 0)
	a, err := r.Agents.Get("ext-researcher")
	if err != nil || a.Description != "finds things" || len(a.Capabilities) != 1 || a.Capabilities[0] != "search" {
		t.Errorf("%+v, %v", a, err)
	}
	entries, err := n.registry()
	rigtest.Must(t, err)
	var lead registryCard
	rigtest.Must(t, json.Unmarshal(entries["lead"], &lead))
	if lead.AgentID != "lead" || lead.Heartbeat == "" || lead.MaxTasks != defaultTasks || len(entries) != 3 {
		t.Errorf("%+v of %d", lead, len(entries))
	}
	if got := strings.Join(strings.Fields(string(entries["writer"])), ""); got != strings.Join(strings.Fields(other), "") {
		t.Errorf("somebody else's entry became %s", got)
	}
	before := read(t, n.registryFile())
	carry(t, b, 0, 0)
	if after := read(t, n.registryFile()); after != before {
		t.Errorf("written again without need: %s", after)
	}
	write(t, n.registryFile(), `[]`)
	if _, err := b.Carry(t.Context()); err == nil || read(t, n.registryFile()) != "[]" {
		t.Errorf("%v; the registry is %s", err, read(t, n.registryFile()))
	}
}
