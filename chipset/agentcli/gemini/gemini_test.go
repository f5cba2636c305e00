package gemini

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client:  Client(),
		Begun:   strings.Fields("gemini --output-format stream-json --skip-trust --approval-mode auto_edit --session-id uuid"),
		Resumed: strings.Fields("gemini --output-format stream-json --skip-trust --approval-mode auto_edit --resume old"),
		Recordings: []agentclitest.Recording{
			{Name: "finished", End: agentcli.End{Verdict: agentcli.Finished, Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 24520, TokensOut: 14, Tool: "run_shell_command"}},
			{Name: "bad-key", Code: 145, End: agentcli.End{Verdict: agentcli.Broken, Reason: "API error 401: [API Error:"}},
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
