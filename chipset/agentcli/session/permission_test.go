package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

func bash(line string) agentcli.Input {
	return agentcli.Input{Tool: agentcli.Tool{Name: "Bash", Does: agentcli.Runs, Given: line}}
}

// decide answers what the person was asked last.
func (y *yard) decide(n mail.Name, d actor.Decision) {
	y.t.Helper()
	e, err := y.Mailbox(state.Human).Get(n)
	rigtest.Must(y.t, err)
	_, err = (&actor.Actor{Rig: y.Rig, ID: state.Human}).Decide(y.t.Context(), &e, d)
	rigtest.Must(y.t, err)
}

func TestWhatThePersonGrantedIsAllowed(t *testing.T) {
	const edit = "\nworker: {default: sh, permissions: edit}\n"
	publish := bash("npm publish")
	t.Run("this once", func(t *testing.T) {
		y := newYard(t, edit)
		_, h := y.hang("polecat-alpha", "Release")
		wants(t, y.answer(h, agentcli.PermissionRequest, publish).Deny, "chipset request permission 'Bash(npm publish)' --reason")
		n, _, err := y.actor(h).RequestPermission(t.Context(), "Bash(npm publish)", "")
		rigtest.Must(t, err)
		wants(t, y.answer(h, agentcli.PermissionRequest, publish).Deny, "has been asked", string(n))
		y.decide(n, actor.Decision{Approved: true})
		if a := y.answer(h, agentcli.PermissionRequest, publish); a != (agentcli.Answer{Allow: true}) {
			t.Errorf("after the approval: %+v", a)
		}
		for _, more := range []string{"npm publish --force", "npm publish; rm -rf /", "npm"} {
			if a := y.answer(h, agentcli.PermissionRequest, bash(more)); a.Allow || a.Deny == "" {
				t.Errorf("%q was not approved: %+v", more, a)
			}
		}
		// What was granted for one assignment is not for another.
		_, other := y.hang("polecat-bravo", "Another")
		wants(t, y.answer(other, agentcli.PermissionRequest, publish).Deny, "chipset request permission")
	})
	t.Run("for good, and taken back", func(t *testing.T) {
		y := newYard(t, edit)
		_, h := y.hang("polecat-alpha", "Release")
		n, _, err := y.actor(h).RequestPermission(t.Context(), "npm publish", "")
		rigtest.Must(t, err)
		y.decide(n, actor.Decision{Approved: true, Remember: true})
		_, other := y.hang("polecat-bravo", "Another")
		for _, h := range []Hooks{h, other} {
			if a := y.answer(h, agentcli.PermissionRequest, publish); !a.Allow {
				t.Errorf("%s: %+v", h.Agent, a)
			}
		}
		rules, _, err := y.Permissions.All()
		if err != nil || len(rules) != 1 {
			t.Fatalf("rules %v, %v", rules, err)
		}
		_, err = (&actor.Actor{Rig: y.Rig, ID: state.Human}).Revoke(rules[0].ID)
		rigtest.Must(t, err)
		for _, h := range []Hooks{h, other} {
			if a := y.answer(h, agentcli.PermissionRequest, publish); a.Allow {
				t.Errorf("%s after it was revoked: %+v", h.Agent, a)
			}
		}
	})
	t.Run("denied", func(t *testing.T) {
		y := newYard(t, edit)
		_, h := y.hang("polecat-alpha", "Release")
		n, _, err := y.actor(h).RequestPermission(t.Context(), "Bash(npm publish)", "")
		rigtest.Must(t, err)
		y.decide(n, actor.Decision{Reason: "not on a Friday"})
		wants(t, y.answer(h, agentcli.PermissionRequest, publish).Deny, "has denied this: not on a Friday")
	})
}

// TestAskAsks: the person is asked in the client's place, once for each thing.
func TestAskAsks(t *testing.T) {
	y := newYard(t, "\nworker: {default: sh, permissions: ask}\n")
	_, h := y.hang("polecat-alpha", "Release")
	for range 2 {
		wants(t, y.answer(h, agentcli.PermissionRequest, bash("npm publish")).Deny, "has been asked")
	}
	asked := rigtest.Unread(t, y.Rig, state.Human)
	if len(asked) != 1 || asked[0].Type != mail.PermissionRequest || !strings.Contains(asked[0].Body, "Bash(npm publish)") {
		t.Fatalf("the person has %+v", asked)
	}
	if a := y.answer(h, agentcli.Stop, agentcli.Input{}); a != (agentcli.Answer{}) {
		t.Errorf("kept from waiting: %+v", a)
	}
	y.decide(asked[0].Name, actor.Decision{Approved: true})
	if a := y.answer(h, agentcli.PermissionRequest, bash("npm publish")); !a.Allow {
		t.Errorf("after the approval: %+v", a)
	}
}

// TestAPersonIsShownTheirOwnDialog: the rig has no say in a session beside it.
func TestAPersonIsShownTheirOwnDialog(t *testing.T) {
	y := newYard(t, "")
	if a := y.answer(Hooks{Rig: y.Rig, Agent: state.Human}, agentcli.PermissionRequest, bash("npm publish")); a != (agentcli.Answer{}) {
		t.Errorf("%+v", a)
	}
}

func TestRulesOf(t *testing.T) {
	tests := []struct {
		tool agentcli.Tool
		want []string
	}{
		{agentcli.Tool{Name: "Bash", Does: agentcli.Runs, Given: " npm test "}, []string{"Bash(npm test)", "npm test"}},
		{agentcli.Tool{Name: "Bash", Does: agentcli.Runs, Given: "one\ntwo"}, nil},
		{agentcli.Tool{Name: "Bash", Does: agentcli.Runs}, nil},
		{agentcli.Tool{Name: "Write", Does: agentcli.Edits, Given: "/a/b"}, []string{"Write(/a/b)", "/a/b"}},
		{agentcli.Tool{Name: "WebFetch", Given: "https://example.com/"}, []string{"WebFetch(https://example.com/)", "WebFetch"}},
		{agentcli.Tool{Name: "mcp__x__y", Given: `{"a":1}`}, []string{`mcp__x__y({"a":1})`, "mcp__x__y"}},
		{agentcli.Tool{Name: "WebSearch"}, nil},
		{agentcli.Tool{Name: "Bash", Does: agentcli.Runs, Given: strings.Repeat("x", 2000)}, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, rulesOf(&tt.tool)); diff != "" {
			t.Errorf("%s %.40s: %s", tt.tool.Name, tt.tool.Given, diff)
		}
	}
}
