package command

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client: Shell(),
		Begun:  strings.Fields("sh -e " + agentclitest.PromptFile),
	}.Run(t)
}

// TestFaults: two exit codes are the environment's fault, and no output is.
func TestFaults(t *testing.T) {
	agentclitest.PrintedFaults(t, Client("agent"), []agentclitest.Printed{
		{Code: 126, Output: "denied", Kind: fault.ClientRefused, Reason: "the command can't be executed (exit code 126)"},
		{Code: 127, Output: "sh: x: not found", Kind: fault.ClientMissing, Reason: "the command can't be found (exit code 127)"},
		{Code: 1, Output: "Not logged in · Please run /login"},
		{Code: 2, Output: "error: unexpected argument '--x' found"},
		{Code: 1, Output: `{"type":"result","is_error":true,"api_error_status":529}`},
		{Code: 0, Output: "exit code 127"},
	})
	agentclitest.PrintedFaults(t, Shell(), []agentclitest.Printed{{Code: 126}, {Code: 127, Output: "sh: x: not found"}})
}
