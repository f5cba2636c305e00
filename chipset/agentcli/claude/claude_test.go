package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

// TestTestCommandPasses: with edit the command that tests what lands is allowed as it is, and nothing behind it.
func TestTestCommandPasses(t *testing.T) {
	client := Client()
	for permission, want := range map[string]bool{agentcli.PermissionAsk: false, agentcli.PermissionEdit: true} {
		argv := client.Start([]string{"claude"}, agentcli.Kit{Permission: permission, Test: "go test ./..."}).Argv
		if got := strings.Contains(argv[len(argv)-1], ",Bash(go test ./...)"); got != want {
			t.Errorf("%s: %q", permission, argv)
		}
	}
}

func TestClient(t *testing.T) {
	begun := []string{"claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"}
	allowed := "--allowedTools="
	for _, command := range agentcli.WorkerCommands() {
		allowed += "Bash(chipset " + command + ":*),"
	}
	allowed += "Bash(export CHIPSET_AGENT=*),Bash(git add:*),Bash(git commit:*),Bash(git status:*)"
	agentclitest.Suite{
		Client:  Client(),
		Begun:   append(slices.Clone(begun), "--session-id", "uuid", allowed),
		Resumed: append(slices.Clone(begun), "--resume", "old", allowed),
		Recordings: []agentclitest.Recording{
			{Name: "finished", End: agentcli.End{Verdict: agentcli.Finished, Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 25095, TokensOut: 14, CostUSD: 0.10066, Tool: "Bash"}},
			{Name: "overloaded", Code: 1, End: agentcli.End{Verdict: agentcli.Unfinished, Reason: "the model's API is overloaded (529): Overloaded"},
				Figures: agentcli.Figures{Turns: 1}},
			{Name: "bad-key", Code: 1, End: agentcli.End{Verdict: agentcli.Broken, Reason: "the model's API does not accept the key (401)"}, Figures: agentcli.Figures{Turns: 1}},
			{Name: "refused", End: agentcli.End{Verdict: agentcli.Refused, Reason: "it was refused what it asked for: Bash", Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 25027, TokensOut: 14, CostUSD: 0.100388, Tool: "Bash"}},
			{Name: "stop-cap", End: agentcli.End{Verdict: agentcli.Unfinished, Reason: "it ended its turn again and again without reporting an end", Said: "I think I am finished."},
				Figures: agentcli.Figures{Turns: 9, TokensIn: 114757, TokensOut: 63, CostUSD: 0.460288}},
			{Name: "max-turns", Code: 1, End: agentcli.End{Verdict: agentcli.Unfinished, Reason: "it reached its limit of turns", Said: "I make a file."},
				Figures: agentcli.Figures{Turns: 1, Tools: 1, TokensIn: 12508, TokensOut: 7, CostUSD: 0.050172, Tool: "Bash"}},
		},
		Faults: map[string]agentclitest.Fault{
			"400credit":      {Kind: fault.Credit, Reason: "the account has no credit left (400): Credit balance is too low"},
			"400ctx":         {Kind: fault.ContextTooLong, Reason: "the session is too long for the model (400): Prompt is too long · the request is ~215000 tokens (limit 200000) but this conversation is only ~2545 tokens — the rest is system prompt, tool definitions, and attachment content"},
			"400ctx-reduced": {Kind: fault.ContextTooLong, Reason: "the session is too long for the model (400): Prompt is too long · the request is ~215000 tokens (limit 200000) but this conversation is only ~2547 tokens — the rest is system prompt, tool definitions, and attachment content"},
			"401":            {Kind: fault.WrongKey, Reason: "the model's API does not accept the key (401)"},
			"404model":       {Kind: fault.ModelUnknown, Reason: "there is no such model for this account (404): There's an issue with the selected model (claude-opus-5-5)"},
			"429":            {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): This request would exceed your account's rate limit"},
			"429ra":          {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): This request would exceed your account's rate limit"},
			"429ra600":       {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): This request would exceed your account's rate limit"},
			"500":            {Kind: fault.ServerError, Reason: "the model's API fails (500): Internal server error"},
			"529":            {Kind: fault.Overloaded, Reason: "the model's API is overloaded (529): Overloaded"},
			"badflag":        {Kind: fault.FlagsRefused, Reason: "the client does not accept its command line: error: unknown option '--no-such-flag'"},
			"connrefused":    {Kind: fault.Network, Reason: "the model's API can't be reached: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)"},
			"nokey":          {Kind: fault.NotLoggedIn, Reason: "the client is not logged in: Not logged in · Please run /login"},
			"usagelimit":     {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): This request would exceed your account's rate limit"},
		},
	}.Run(t)
}

// TestCapOfAnEarlierRun: the override of hooks in one run does not end the next.
func TestCapOfAnEarlierRun(t *testing.T) {
	r := NewReader()
	agentclitest.Play(t, r, "stop-cap")
	r.Resumed()
	agentclitest.Play(t, r, "resumed")
	if end := r.End(0, time.Time{}); end.Verdict != agentcli.Finished {
		t.Errorf("ended %+v", end)
	}
}

// TestSessionNames: what an agent prints can't choose another session, or become
// an option on a command line.
func TestSessionNames(t *testing.T) {
	r := NewReader()
	r.Line([]byte(`{"type":"system","subtype":"init","session_id":"--dangerously-skip-permissions"}`))
	r.Line([]byte(`{"type":"system","subtype":"init","session_id":"first"}`))
	r.Line([]byte(`{"type":"system","subtype":"init","session_id":"second"}`))
	if r.Session() != "first" {
		t.Errorf("session %q", r.Session())
	}
}

func TestSettingsOfThePersonStay(t *testing.T) {
	c := Client()
	own := c.Start([]string{"claude", "--settings", "mine.json"}, agentcli.Kit{Chipset: "/opt/chipset", Files: "/rig/s1.", Hooks: true})
	if len(own.Files) != 0 || slices.Contains(own.Env, agentcli.HooksHandedOver) {
		t.Errorf("somebody's own settings are overruled: %q", own.Argv)
	}
}

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		event  agentcli.Event
		answer agentcli.Answer
		stdout string
		stderr string
		code   int
	}{
		{agentcli.PostToolUse, agentcli.Answer{}, "", "", 0},
		{agentcli.SessionStart, agentcli.Answer{Context: "x"}, `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"x"}}`, "", 0},
		{agentcli.PreToolUse, agentcli.Answer{Deny: "no"}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`, "", 0},
		{agentcli.PermissionRequest, agentcli.Answer{Deny: "no"}, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"no"}}}`, "", 0},
		{agentcli.PermissionRequest, agentcli.Answer{Allow: true}, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`, "", 0},
		{agentcli.Stop, agentcli.Answer{GoOn: "go"}, `{"decision":"block","reason":"go"}`, "", 0},
		{agentcli.TeammateIdle, agentcli.Answer{GoOn: "go"}, "", "go\n", 2},
		{agentcli.TaskCompleted, agentcli.Answer{GoOn: "go"}, "", "go\n", 2},
	} {
		out := output(c.event, string(c.event), c.answer)
		if got := strings.TrimSuffix(string(out.Stdout), "\n"); got != c.stdout || out.Stderr != c.stderr || out.Code != c.code {
			t.Errorf("%s %+v: %q %q %d", c.event, c.answer, got, out.Stderr, out.Code)
		}
	}
	if e, known := hooks().Events["BeforeAgent"]; known {
		t.Errorf("there is no BeforeAgent: %s", e)
	}
}

func TestTools(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		want        agentcli.Tool
	}{
		{"Bash", `{"command": " npm test ", "description": "x"}`, agentcli.Tool{Does: agentcli.Runs, Given: " npm test "}},
		{"Bash", `{}`, agentcli.Tool{Does: agentcli.Runs}},
		{"Bash", `{"command":5}`, agentcli.Tool{Does: agentcli.Runs}},
		{"Write", `{"file_path": "/a/b", "content": "c"}`, agentcli.Tool{Does: agentcli.Edits, Given: "/a/b"}},
		{"NotebookEdit", `{"notebook_path": "/a/n"}`, agentcli.Tool{Does: agentcli.Edits, Given: "/a/n"}},
		{"Edit", `{}`, agentcli.Tool{Does: agentcli.Edits}},
		{"WebFetch", `{"url": "https://example.com/", "prompt": "p"}`, agentcli.Tool{Given: "https://example.com/"}},
		{"mcp__x__y", `{"a": 1}`, agentcli.Tool{Given: `{"a":1}`}},
		{"Task", `{"name":"scout","subagent_type":"code"}`, agentcli.Tool{Does: agentcli.Spawns, Spawned: "scout", SpawnedType: "code", Given: `{"name":"scout","subagent_type":"code"}`}},
		{"EnterPlanMode", `{}`, agentcli.Tool{Does: agentcli.EntersPlanning, Given: "{}"}},
		{"ExitPlanMode", `{}`, agentcli.Tool{Does: agentcli.LeavesPlanning, Given: "{}"}},
		{"Read", `{}`, agentcli.Tool{Given: "{}"}},
	} {
		in, err := hooks().Input([]byte(`{"tool_name":"` + tt.name + `","tool_input":` + tt.input + `}`))
		tt.want.Name = tt.name
		if err != nil || in.Tool != tt.want {
			t.Errorf("%s %s: %+v, %v", tt.name, tt.input, in.Tool, err)
		}
	}
}

func TestPluginHasEverything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plugin")
	if _, err := Client().Plugin.Write(dir, "/opt/chipset", "1.2.3"); err != nil {
		t.Fatal(err)
	}
	read := func(path string, v any) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var market struct {
		Name    string
		Plugins []struct{ Name, Source string }
	}
	read(filepath.Join(dir, ".claude-plugin/marketplace.json"), &market)
	if len(market.Plugins) != 1 || market.Plugins[0].Name != "chipset" {
		t.Fatalf("%+v", market)
	}
	root := filepath.Join(dir, market.Plugins[0].Source)
	for _, name := range []string{".claude-plugin/plugin.json", ".mcp.json", "README.md", "LICENSE", "hooks/hooks.json",
		"commands/status.md", "commands/mail.md", "commands/sling.md", "commands/why.md", "agents/bead-worker.md", "skills/chipset/SKILL.md"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	var h struct{ Hooks map[string][]any }
	read(filepath.Join(root, "hooks/hooks.json"), &h)
	for name, e := range hooks().Events {
		if len(h.Hooks[name]) == 0 && e != agentcli.Idle {
			t.Errorf("no hook for %s", name)
		}
	}
	for name, entries := range h.Hooks { // one that holds the client up must not wait
		for i, entry := range entries {
			text, err := json.Marshal(entry)
			if waits := strings.Contains(string(text), "claude Wait"); err != nil || waits != strings.Contains(string(text), `"asyncRewake":true`) ||
				waits != (i == 1 && (name == "Stop" || name == "SessionStart")) {
				t.Errorf("%s has %s, %v", name, text, err)
			}
		}
	}
	skill, err := os.ReadFile(filepath.Join(root, "skills/chipset/SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir(filepath.Join(root, "skills/chipset/references"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if !strings.Contains(string(skill), "references/"+page.Name()) {
			t.Errorf("the skill does not lead to %s", page.Name())
		}
	}
}

// TestUsageLimits: the client tells of the limit of an account in an event and in words.
func TestUsageLimits(t *testing.T) {
	at := time.Date(2026, 11, 22, 20, 30, 0, 0, time.UTC)
	const rejected = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795392000,"rateLimitType":"five_hour"}}`
	failed := func(result string) string {
		return `{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"terminal_reason":"api_error","result":` + strconv.Quote(result) + `}`
	}
	for _, tt := range []struct {
		name  string
		lines []string
		kind  fault.Kind
		until string
	}{
		{"an event", []string{rejected, failed("x")}, fault.UsageLimit, "2026-11-23T00:00:00Z"},
		{"an event that allows", []string{strings.Replace(rejected, "rejected", "allowed", 1), failed("x")}, fault.RateLimit, ""},
		{"an event that is over", []string{rejected, strings.Replace(rejected, "rejected", "allowed", 1), failed("x")}, fault.RateLimit, ""},
		{"an event without a time", []string{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`, failed("x")}, fault.UsageLimit, ""},
		{"words", []string{failed("You've hit your session limit · resets 10:30pm (UTC)")}, fault.UsageLimit, "2026-11-22T22:30:00Z"},
		{"seconds", []string{failed("Claude AI usage limit reached|1795392000")}, fault.UsageLimit, "2026-11-23T00:00:00Z"},
		{"a number that is none", []string{failed("Claude AI usage limit reached|999999999999999999")}, fault.UsageLimit, ""},
	} {
		r := NewReader()
		for _, line := range tt.lines {
			r.Line([]byte(line))
		}
		f := r.End(1, at).Fault
		until := ""
		if !f.Until.IsZero() {
			until = f.Until.Format(time.RFC3339)
		}
		if f.Kind != tt.kind || until != tt.until {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}

// TestEndedWhileRetrying: a run that was ended while its client tried again and again has
// the fault of that, unless the model has answered since.
func TestEndedWhileRetrying(t *testing.T) {
	const retry = `{"type":"system","subtype":"api_retry","attempt":3,"error_status":529,"error":"overloaded"}`
	const noNetwork = `{"type":"system","subtype":"api_retry","attempt":3,"error_status":null,"error":"unknown"}`
	const answer = `{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"api_retry"}]}}`
	for want, lines := range map[fault.Kind][]string{fault.Overloaded: {retry}, fault.Network: {retry, noNetwork}, "": {retry, answer}} {
		r := NewReader()
		for _, line := range lines {
			r.Line([]byte(line))
		}
		if f := r.End(143, time.Time{}).Fault; f.Kind != want || r.Trying().Kind != want {
			t.Errorf("%q: %+v, and before %+v", lines, f, r.Trying())
		}
		r.Resumed()
		if f := r.End(143, time.Time{}).Fault; !f.IsZero() {
			t.Errorf("the next run: %+v", f)
		}
	}
}
