package claudeteam

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/bridge/bridgetest"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/state"
)

func TestMain(m *testing.M) { os.Exit(rigtest.Main(m)) }

func openTeam(t *testing.T, name string) (*Team, func(inbox string) string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	rigtest.Must(t, os.MkdirAll(filepath.Join(dir, "inboxes"), 0o755))
	c, err := OpenTeam(dir)
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

func TestTeamInward(t *testing.T) {
	for _, layout := range []string{"session-0a1b2c3d", "my-team"} {
		t.Run(layout, func(t *testing.T) {
			r := rigtest.New(t, "")
			team, inbox := openTeam(t, layout)
			bridgetest.Write(t, inbox("lead"), foreignEntries)
			b := bridgetest.New(t, r, team)
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
			after := bridgetest.Read(t, inbox("lead"))
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
			bridgetest.Write(t, inbox("lead"), foreignEntries)
			_, _ = b.Carry(t.Context())
			if len(rigtest.Unread(t, r, "mayor")) != 3 {
				t.Errorf("%d messages after a crash, want 3", len(rigtest.Unread(t, r, "mayor")))
			}
		})
	}
}

func TestTeamOutward(t *testing.T) {
	r := rigtest.New(t, "")
	team, inbox := openTeam(t, "session-0a1b2c3d")
	bridgetest.Write(t, inbox("researcher"), `[{"from":"team-lead","text":"theirs","timestamp":"2026-04-01T10:30:00.000Z","read":false,"x":1}]`)
	b := bridgetest.New(t, r, team)
	name := bridgetest.Send(t, r, "look", "at <this>")
	bridgetest.DeliverOnly(t, b)
	bridgetest.Carry(t, b, 0, 1)
	bridgetest.Carry(t, b, 0, 0)
	var entries []map[string]any
	rigtest.Must(t, json.Unmarshal([]byte(bridgetest.Read(t, inbox("researcher"))), &entries))
	if len(entries) != 2 || entries[0]["x"] != 1.0 || entries[1]["text"] != "at &lt;this&gt;" || entries[1]["from"] != "lead" || entries[1]["read"] != false {
		t.Errorf("%v", entries)
	}
	e, err := r.Mailbox("ext-researcher").Get(name)
	if err != nil || !e.Read || e.Body != "at <this>" {
		t.Errorf("the rig's own copy: %+v, %v", e, err)
	}
	bridgetest.Write(t, r.Tree.Abs(r.Mailbox("ext-researcher").Dir().Join("odd.json")), "{")
	bridgetest.Send(t, r, "more", "beside what can't be read")
	if n, err := b.Carry(t.Context()); n.Out != 1 || !errors.Is(err, state.ErrCorrupt) {
		t.Errorf("carried %+v beside what can't be read, %v", n, err)
	}
}

// Wherever the bridge is killed, and whatever the other program does with an entry
// before it runs again, the entry is written once.
func TestTeamOutwardOnceAfterAKill(t *testing.T) {
	for name, killed := range map[string]struct {
		// left is what the killed bridge had done; written reports whether the entry was put in place.
		left    func(t *testing.T, s steps, inbox string)
		written bool
	}{
		"while it staged": {func(t *testing.T, s steps, _ string) { bridgetest.Write(t, s.staged, "[") }, false},
		"before it was in place": {func(t *testing.T, s steps, _ string) {
			bridgetest.Write(t, s.staged, "[]")
			bridgetest.Write(t, s.ready, "ready")
		}, false},
		"after that": {func(t *testing.T, s steps, inbox string) {
			rigtest.Must(t, os.MkdirAll(filepath.Dir(s.staged), 0o755))
			rigtest.Must(t, s.put(inbox, []byte("[]")))
		}, true},
		"while a later try cleared up": {func(t *testing.T, s steps, _ string) { bridgetest.Write(t, s.staged, "[]") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigtest.New(t, "")
			team, inbox := openTeam(t, "session-0a1b2c3d")
			b := bridgetest.New(t, r, team)
			e, err := r.Mailbox("ext-researcher").Get(bridgetest.Send(t, r, "look", "at this"))
			rigtest.Must(t, err)
			s := team.steps("researcher", &e)
			killed.left(t, s, inbox("researcher")) // what was put in place was delivered and deleted meanwhile
			bridgetest.Carry(t, b, 0, 1)
			bridgetest.Carry(t, b, 0, 0)
			text := ""
			if exists, _ := there(inbox("researcher")); exists {
				text = bridgetest.Read(t, inbox("researcher"))
			}
			if n := strings.Count(text, entryID(&e)); (n == 0) != killed.written || n > 1 {
				t.Errorf("written %d times: %s", n, text)
			}
			if left, err := os.ReadDir(filepath.Dir(s.staged)); len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// Writers that keep to the lock lose nothing to the bridge, and it nothing to them.
func TestTeamWritersLoseNothing(t *testing.T) {
	r := rigtest.New(t, "")
	team, inbox := openTeam(t, "session-0a1b2c3d")
	b := bridgetest.New(t, r, team)
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
	if left := strings.TrimSpace(bridgetest.Read(t, inbox("lead"))); left != "[]" {
		t.Errorf("left: %s", left)
	}
}

func TestTeamLeavesWhatItDoesNotKnow(t *testing.T) {
	r := rigtest.New(t, "")
	team, inbox := openTeam(t, "session-0a1b2c3d")
	b := bridgetest.New(t, r, team)
	bridgetest.Send(t, r, "look", "here")
	outside := filepath.Join(t.TempDir(), "outside.json")
	bridgetest.Write(t, outside, "[]")
	for name, make := range map[string]func(){
		"another format": func() { bridgetest.Write(t, inbox("researcher"), `{"version": 9}`) },
		"broken":         func() { bridgetest.Write(t, inbox("researcher"), `[{"from":`) },
		"a link":         func() { rigtest.Must(t, os.Symlink(outside, inbox("researcher"))) },
	} {
		_ = os.Remove(inbox("researcher"))
		make()
		before := bridgetest.Read(t, inbox("researcher"))
		if _, err := b.Carry(t.Context()); err == nil {
			t.Errorf("%s: carried", name)
		}
		if after := bridgetest.Read(t, inbox("researcher")); after != before {
			t.Errorf("%s: it is now %s", name, after)
		}
	}
	if len(rigtest.Unread(t, r, "ext-researcher")) != 1 {
		t.Error("the message is no longer unread, though it was not delivered")
	}
	if _, err := OpenTeam(t.TempDir()); err == nil {
		t.Error("any folder is a team")
	}
}
