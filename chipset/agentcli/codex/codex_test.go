package codex

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
		Begun:   strings.Fields("codex exec --json --sandbox workspace-write -c allow_login_shell=false"),
		Resumed: strings.Fields("codex exec --json --sandbox workspace-write -c allow_login_shell=false resume old -"),
		Recordings: []agentclitest.Recording{
			{Name: "finished", End: agentcli.End{Verdict: agentcli.Finished, Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 28223, TokensOut: 14, Tool: "shell"}},
			{Name: "failed", Code: 1, End: agentcli.End{Verdict: agentcli.Unfinished, Reason: "its turn failed: unexpected status 401"}},
		},
	}.Run(t)
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
