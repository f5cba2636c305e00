package opencode

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
		Begun:   strings.Fields("opencode run --format json"),
		Resumed: strings.Fields("opencode run --format json --session old"),
		Recordings: []agentclitest.Recording{
			{Name: "finished", End: agentcli.End{Verdict: agentcli.Finished, Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 15450, TokensOut: 14, Tool: "bash"}},
			{Name: "refused", End: agentcli.End{Verdict: agentcli.Refused, Reason: "it was refused what it asked for: bash", Said: "Finished."},
				Figures: agentcli.Figures{Turns: 2, Tools: 1, TokensIn: 15504, TokensOut: 14, Tool: "bash"}},
			{Name: "asked", End: agentcli.End{Verdict: agentcli.Refused, Reason: "it was refused what it asked for: bash", Said: "I make a file."},
				Figures: agentcli.Figures{Turns: 1, Tools: 1, TokensIn: 7672, TokensOut: 7, Tool: "bash"}},
			{Name: "bad-key", Code: 1, End: agentcli.End{Verdict: agentcli.Broken, Reason: "API error 401: invalid x-api-key"}},
		},
	}.Run(t)
}

// TestGrantedCommands: it is told what was approved, but nothing that would be a pattern to it.
func TestGrantedCommands(t *testing.T) {
	e := equip(nil, agentcli.Kit{Permission: agentcli.PermissionEdit, Granted: []string{"npm publish", "make all", "rm *"}})
	var config struct {
		Permission struct{ Bash map[string]string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(e.Env[0], "OPENCODE_CONFIG_CONTENT=")), &config); err != nil {
		t.Fatal(err)
	}
	bash := config.Permission.Bash
	if bash["*"] != "deny" || bash["npm publish"] != "allow" || bash["make all"] != "allow" || bash["rm *"] != "" {
		t.Errorf("%q", bash)
	}
}
