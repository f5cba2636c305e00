package session

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		event  Event
		name   string
		answer Answer
		stdout string
		stderr string
		code   int
	}{
		{Claude, PostToolUse, "PostToolUse", Answer{}, "", "", 0},
		{Claude, SessionStart, "SessionStart", Answer{Context: "x"}, `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}`, "", 0},
		{Claude, PreToolUse, "PreToolUse", Answer{Deny: "no"}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`, "", 0},
		{Claude, Stop, "Stop", Answer{GoOn: "go"}, `{"decision":"block","reason":"go"}`, "", 0},
		{Codex, Stop, "Stop", Answer{GoOn: "go"}, `{"decision":"block","reason":"go"}`, "", 0},
		{Claude, TeammateIdle, "TeammateIdle", Answer{GoOn: "go"}, "", "go\n", 2},
		{Claude, TaskCompleted, "TaskCompleted", Answer{GoOn: "go"}, "", "go\n", 2},
		{Gemini, Stop, "AfterAgent", Answer{GoOn: "go"}, `{"decision":"deny","reason":"go"}`, "", 0},
		{Gemini, UserPromptSubmit, "BeforeAgent", Answer{Context: "x"}, `{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"x"}}`, "", 0},
		{Gemini, PreToolUse, "BeforeTool", Answer{Deny: "no"}, `{"decision":"deny","reason":"no"}`, "", 0},
	} {
		stdout, stderr, code := c.answer.Render(c.kind, c.event, c.name)
		if got := strings.TrimSuffix(string(stdout), "\n"); got != c.stdout || stderr != c.stderr || code != c.code {
			t.Errorf("%s %s %+v: %q %q %d", c.kind, c.name, c.answer, got, stderr, code)
		}
	}
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]Event{"BeforeAgent": UserPromptSubmit, "AfterTool": PostToolUse, "AfterAgent": Stop, "SessionEnd": SessionEnd} {
		if got, ok := Canonical(Gemini, name); !ok || got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if e, ok := Canonical(Claude, "BeforeAgent"); ok {
		t.Errorf("claude has no BeforeAgent: %s", e)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "{}", `{"session_id":"0a1b","tool_name":"Task","tool_input":{"name":"x","subagent_type":"y"}}`, `{"tool_input":[1]}`, "\x00", `{"session_id":5}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := Decode(data)
		if err != nil {
			return
		}
		in.spawn()
		if k := key(in.SessionID); strings.ContainsAny(k, "/\x00") || k == "." || k == ".." || k == "" || len(k) > 64 {
			t.Errorf("%q becomes the name %q", in.SessionID, k)
		}
	})
}
