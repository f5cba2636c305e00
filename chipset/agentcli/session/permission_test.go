package session

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

func bash(line string) Input {
	input, err := json.Marshal(map[string]string{"command": line, "description": "why"})
	if err != nil {
		panic(err) // of strings, which always encode
	}
	return Input{ToolName: "Bash", ToolInput: input}
}

// decide answers what the person was asked last.
func (y *yard) decide(n mail.Name, d actor.Decision) {
	y.t.Helper()
	e, err := y.Mailbox(state.Human).Get(n)
	rigtest.Must(y.t, err)
	_, err = (&actor.Speaker{Rig: y.Rig, ID: state.Human}).Decide(y.t.Context(), &e, d)
	rigtest.Must(y.t, err)
}

func TestWhatThePersonGrantedIsAllowed(t *testing.T) {
	const edit = "\nworker: {default: sh, permissions: edit}\n"
	publish := bash("npm publish")
	t.Run("this once", func(t *testing.T) {
		y := newYard(t, edit)
		_, h := y.hang("polecat-alpha", "Release")
		wants(t, y.answer(h, PermissionRequest, publish).Deny, "chipset request permission 'Bash(npm publish)' --reason")
		n, _, err := y.speaker(h).RequestPermission(t.Context(), "Bash(npm publish)", "")
		rigtest.Must(t, err)
		wants(t, y.answer(h, PermissionRequest, publish).Deny, "has been asked", string(n))
		y.decide(n, actor.Decision{Approved: true})
		if a := y.answer(h, PermissionRequest, publish); a != (Answer{Allow: true}) {
			t.Errorf("after the approval: %+v", a)
		}
		for _, more := range []string{"npm publish --force", "npm publish; rm -rf /", "npm"} {
			if a := y.answer(h, PermissionRequest, bash(more)); a.Allow || a.Deny == "" {
				t.Errorf("%q was not approved: %+v", more, a)
			}
		}
		// What was granted for one assignment is not for another.
		_, other := y.hang("polecat-bravo", "Another")
		wants(t, y.answer(other, PermissionRequest, publish).Deny, "chipset request permission")
	})
	t.Run("for good, and taken back", func(t *testing.T) {
		y := newYard(t, edit)
		_, h := y.hang("polecat-alpha", "Release")
		n, _, err := y.speaker(h).RequestPermission(t.Context(), "npm publish", "")
		rigtest.Must(t, err)
		y.decide(n, actor.Decision{Approved: true, Remember: true})
		_, other := y.hang("polecat-bravo", "Another")
		for _, h := range []Hooks{h, other} {
			if a := y.answer(h, PermissionRequest, publish); !a.Allow {
				t.Errorf("%s: %+v", h.Agent, a)
			}
		}
		rules, _, err := y.Permissions.All()
		if err != nil || len(rules) != 1 {
			t.Fatalf("rules %v, %v", rules, err)
		}
		_, err = (&actor.Speaker{Rig: y.Rig, ID: state.Human}).Revoke(rules[0].ID)
		rigtest.Must(t, err)
		for _, h := range []Hooks{h, other} {
			if a := y.answer(h, PermissionRequest, publish); a.Allow {
				t.Errorf("%s after it was revoked: %+v", h.Agent, a)
			}
		}
	})
	t.Run("denied", func(t *testing.T) {
		y := newYard(t, edit)
		_, h := y.hang("polecat-alpha", "Release")
		n, _, err := y.speaker(h).RequestPermission(t.Context(), "Bash(npm publish)", "")
		rigtest.Must(t, err)
		y.decide(n, actor.Decision{Reason: "not on a Friday"})
		wants(t, y.answer(h, PermissionRequest, publish).Deny, "has denied this: not on a Friday")
	})
}

// TestAskAsks: the person is asked in the client's place, once for each thing.
func TestAskAsks(t *testing.T) {
	y := newYard(t, "\nworker: {default: sh, permissions: ask}\n")
	_, h := y.hang("polecat-alpha", "Release")
	for range 2 {
		wants(t, y.answer(h, PermissionRequest, bash("npm publish")).Deny, "has been asked")
	}
	asked := rigtest.Unread(t, y.Rig, state.Human)
	if len(asked) != 1 || asked[0].Type != mail.PermissionRequest || !strings.Contains(asked[0].Body, "Bash(npm publish)") {
		t.Fatalf("the person has %+v", asked)
	}
	if a := y.answer(h, Stop, Input{}); a != (Answer{}) {
		t.Errorf("kept from waiting: %+v", a)
	}
	y.decide(asked[0].Name, actor.Decision{Approved: true})
	if a := y.answer(h, PermissionRequest, bash("npm publish")); !a.Allow {
		t.Errorf("after the approval: %+v", a)
	}
}

// TestAPersonIsShownTheirOwnDialog: the rig has no say in a session beside it.
func TestAPersonIsShownTheirOwnDialog(t *testing.T) {
	y := newYard(t, "")
	if a := y.answer(Hooks{Rig: y.Rig, Agent: state.Human}, PermissionRequest, bash("npm publish")); a != (Answer{}) {
		t.Errorf("%+v", a)
	}
}

func TestRulesOf(t *testing.T) {
	tests := []struct {
		tool, input string
		want        []string
	}{
		{"Bash", `{"command": " npm test ", "description": "x"}`, []string{"Bash(npm test)", "npm test"}},
		{"Bash", `{"command": "one\ntwo"}`, nil},
		{"Bash", `{}`, nil},
		{"Write", `{"file_path": "/a/b", "content": "c"}`, []string{"Write(/a/b)", "/a/b"}},
		{"NotebookEdit", `{"notebook_path": "/a/n"}`, []string{"NotebookEdit(/a/n)", "/a/n"}},
		{"WebFetch", `{"url": "https://example.com/", "prompt": "p"}`, []string{"WebFetch(https://example.com/)", "WebFetch"}},
		{"mcp__x__y", `{"a": 1}`, []string{`mcp__x__y({"a":1})`, "mcp__x__y"}},
		{"WebSearch", `not json`, nil},
		{"Bash", `{"command": "` + strings.Repeat("x", 2000) + `"}`, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, rulesOf(&Input{ToolName: tt.tool, ToolInput: json.RawMessage(tt.input)})); diff != "" {
			t.Errorf("%s %.40s: %s", tt.tool, tt.input, diff)
		}
	}
}
