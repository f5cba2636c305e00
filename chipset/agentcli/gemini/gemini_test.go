package gemini

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

// TestTestCommandPasses: with edit the command that tests what lands is allowed.
func TestTestCommandPasses(t *testing.T) {
	client := Client()
	for permission, want := range map[string]bool{agentcli.PermissionAsk: false, agentcli.PermissionEdit: true} {
		settings := client.Start(nil, agentcli.Kit{Permission: permission, Test: "make test"}).Files["gemini.json"]
		if got := strings.Contains(settings, `"run_shell_command(make test)"`); got != want {
			t.Errorf("%s: %s", permission, settings)
		}
	}
}

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client:  Client(),
		Begun:   strings.Fields("gemini --output-format stream-json --skip-trust --approval-mode auto_edit --session-id uuid"),
		Resumed: strings.Fields("gemini --output-format stream-json --skip-trust --approval-mode auto_edit --resume old"),
		Recordings: []agentclitest.Recording{
			{Name: "finished", End: agentcli.End{Verdict: agentcli.Finished, Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 24520, TokensOut: 14, Tool: "run_shell_command"}},
			{Name: "bad-key", Code: 145, End: agentcli.End{Verdict: agentcli.Broken, Reason: "the model's API does not accept the key (401)"}},
		},
		Faults: map[string]agentclitest.Fault{
			"400ctx":      {Kind: fault.ContextTooLong, Reason: "the session is too long for the model (400): The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)"},
			"401":         {Kind: fault.WrongKey, Reason: "the model's API does not accept the key (400)"},
			"401real":     {Kind: fault.WrongKey, Reason: "the model's API does not accept the key (401)"},
			"429":         {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): Resource has been exhausted (e.g. check quota)"},
			"429ra":       {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429): Resource has been exhausted (e.g. check quota)", Until: "2026-11-22T20:30:03Z"},
			"500":         {Kind: fault.ServerError, Reason: "the model's API fails (500): An internal error has occurred"},
			"503":         {Kind: fault.Overloaded, Reason: "the model's API is overloaded (503): The model is overloaded"},
			"529":         {Kind: fault.Overloaded, Reason: "the model's API is overloaded (529): Overloaded"},
			"badflag":     {Kind: fault.FlagsRefused, Reason: "the client does not accept its command line: Unknown arguments: such-flag, suchFlag"},
			"connrefused": {Kind: fault.Network, Reason: "the model's API can't be reached: exception TypeError: fetch failed sending request"},
			"nokey":       {Kind: fault.NotLoggedIn, Reason: "the client is not logged in: When using Gemini API, you must specify the GEMINI_API_KEY environment variable."},
			"usagelimit":  {Kind: fault.UsageLimit, Reason: "the usage limit of the account is reached (429): You have exhausted your daily quota on this model"},
		},
	}.Run(t)
}

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer agentcli.Answer
		want   string
	}{
		{"AfterAgent", agentcli.Answer{GoOn: "go"}, `{"decision":"deny","reason":"go"}`},
		{"BeforeAgent", agentcli.Answer{Context: "x"}, `{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"x"}}`},
		{"BeforeTool", agentcli.Answer{Deny: "no"}, `{"decision":"deny","reason":"no"}`},
	} {
		out := output(hooks().Events[c.name], c.name, c.answer)
		if got := strings.TrimSuffix(string(out.Stdout), "\n"); got != c.want || out.Stderr != "" || out.Code != 0 {
			t.Errorf("%s %+v: %+v", c.name, c.answer, out)
		}
	}
}

func TestTools(t *testing.T) {
	for name, want := range map[string]agentcli.ToolAction{"write_file": agentcli.Edits, "replace": agentcli.Edits, "run_shell_command": agentcli.Runs, "read_file": agentcli.Looks} {
		if got := tool(name, json.RawMessage(`{"file_path":"x","command":"x"}`)); got.Does != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestWillNotGoOn: an agent that was told to go on again and again is quoted, and not the warnings of its client.
func TestWillNotGoOn(t *testing.T) {
	r := Client().Reader()
	r.Line([]byte("Ripgrep is not available. Falling back to GrepTool."))
	for _, line := range []string{`{"type":"init","session_id":"s"}`, `{"type":"message","role":"assistant","content":"I have written it."}`} {
		r.Line([]byte(line))
	}
	for range agentcli.MaxToldToGoOn {
		r.Line([]byte(`{"type":"error","message":"Agent execution blocked: go on"}`))
	}
	r.Line([]byte(`{"type":"result","status":"success"}`))
	if end := r.End(0, time.Time{}); end.Verdict != agentcli.Unfinished || end.Said != "I have written it." {
		t.Errorf("%+v", end)
	}
}
