package codex

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client:  Client(),
		Begun:   strings.Fields("codex exec --json --sandbox workspace-write -c allow_login_shell=false"),
		Resumed: strings.Fields("codex exec --json --sandbox workspace-write -c allow_login_shell=false resume old -"),
		Recordings: []agentclitest.Recording{
			{Name: "finished", End: agentcli.End{Verdict: agentcli.Finished, Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 28223, TokensOut: 14, Tool: "shell"}},
			{Name: "failed", Code: 1, End: agentcli.End{Verdict: agentcli.Broken, Reason: "the model's API does not accept the key (401)"}},
		},
		Faults: map[string]agentclitest.Fault{
			"400ctx":             {Kind: fault.ContextTooLong, Reason: "the session is too long for the model: Codex ran out of room in the model's context window"},
			"401":                {Kind: fault.WrongKey, Reason: "the model's API does not accept the key (401)"},
			"429":                {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429)"},
			"429ra":              {Kind: fault.RateLimit, Reason: "the model's API limits the rate of requests (429)"},
			"500":                {Kind: fault.ServerError, Reason: "the model's API fails: We’re currently experiencing high demand, which may cause temporary errors"},
			"503":                {Kind: fault.Overloaded, Reason: "the model's API is overloaded: Selected model is at capacity"},
			"529":                {Kind: fault.Overloaded, Reason: "the model's API is overloaded (529): Overloaded"},
			"badflag":            {Kind: fault.FlagsRefused, Reason: "the client does not accept its command line: error: unexpected argument '--no-such-flag' found"},
			"connrefused":        {Kind: fault.Network, Reason: "the model's API can't be reached: Connection failed: error sending request"},
			"nokey":              {Kind: fault.NotLoggedIn, Reason: "the client is not logged in: Missing environment variable: `MOCK_API_KEY`"},
			"quota":              {Kind: fault.Credit, Reason: "the account has no credit left: Quota exceeded"},
			"usagelimit":         {Kind: fault.UsageLimit, Reason: "the usage limit of the account is reached until Nov 22 22:30 UTC: You’ve hit your usage limit", Until: "2026-11-22T22:30:00Z"},
			"usagelimit-reduced": {Kind: fault.UsageLimit, Reason: "the usage limit of the account is reached until Nov 22 22:35 UTC: You’ve hit your usage limit", Until: "2026-11-22T22:35:00Z"},
		},
	}.Run(t)
}

// TestBoxed: in the rig's sandbox it makes none of its own.
func TestBoxed(t *testing.T) {
	client := Client()
	for boxed, want := range map[bool]string{false: "workspace-write", true: "danger-full-access"} {
		argv := client.Start([]string{"codex", "exec", "--sandbox", "workspace-write"}, agentcli.Kit{Boxed: boxed}).Argv
		if argv[3] != want {
			t.Errorf("boxed %v: %q", boxed, argv)
		}
	}
}

func TestTools(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		want        agentcli.ToolAction
	}{
		{"apply_patch", `{"command":"*** Begin Patch"}`, agentcli.Edits},
		{"Bash", `{"command":"ls"}`, agentcli.Runs},
		{"exec", `"tools.exec_command()"`, agentcli.Runs},
		{"web_search", `{}`, agentcli.Looks},
	} {
		if got := tool(tt.name, json.RawMessage(tt.input)); got.Does != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	for input, want := range map[string]string{
		`{"command":"ls"}`: "ls", `{"cmd":"ls"}`: "ls", `{"command":["bash","-lc","ls"]}`: "ls", `{"command":["rm","x"]}`: "",
		`{"command":["bash","-lc","ls","rm"]}`: "", `{"input":"tools.exec_command()"}`: "", `[]`: "", `{"command":5}`: "", `{}`: "",
	} {
		if got := commandLine(json.RawMessage(input)); got != want {
			t.Errorf("%s: %q", input, got)
		}
	}
}

// TestOvercome: what the client tried again, and then went on, is no fault of the end.
func TestOvercome(t *testing.T) {
	r := Client().Reader()
	for _, line := range []string{
		`{"type":"thread.started","thread_id":"t1"}`,
		`{"type":"error","message":"Reconnecting... 1/5 (unexpected status 529 <unknown status code>: Overloaded, url: http://x)"}`,
	} {
		r.Line([]byte(line))
	}
	if f := r.End(143, time.Time{}).Fault; f.Kind != fault.Overloaded {
		t.Errorf("while it tries again: %+v", f)
	}
	r.Line([]byte(`{"type":"item.completed","item":{"type":"agent_message","text":"I go on."}}`))
	if f := r.End(143, time.Time{}).Fault; !f.IsZero() {
		t.Errorf("after it went on: %+v", f)
	}
}

// TestTrying: refused connections never end; the client says that it waits, and for what.
func TestTrying(t *testing.T) {
	r := Client().Reader()
	for _, step := range []struct {
		line string
		want fault.Kind
	}{
		{`{"type":"turn.started"}`, ""},
		{`{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}`, fault.Network},
		{`{"type":"item.completed","item":{"type":"agent_message","text":"Reconnecting... waiting for network (Connection failed: x)"}}`, ""},
		{`{"type":"error","message":"Reconnecting... 2/5 (exceeded retry limit, last status: 429 Too Many Requests)"}`, fault.RateLimit},
		{`{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}`, fault.RateLimit},
	} {
		r.Line([]byte(step.line))
		if got := r.Trying(); got.Kind != step.want {
			t.Errorf("after %s: %+v", step.line, got)
		}
	}
}

// An error that nobody knows is told in its words, and not in JSON.
func TestUnknownFailure(t *testing.T) {
	for _, code := range []int{0, 1} {
		r := &reader{}
		r.Line([]byte(`{"type":"turn.failed","error":{"message":"{\"error\":{\"message\":\"Nothing fits. Try another.\"}}"}}`))
		if end := r.End(code, time.Time{}); end.Reason != "its turn failed: Nothing fits" {
			t.Errorf("exit code %d: %q", code, end.Reason)
		}
	}
}
