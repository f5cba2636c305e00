package aider

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client: Client(),
		Begun:  strings.Fields("aider --no-stream --no-pretty --no-check-update --message-file=" + agentclitest.PromptFile + " --yes-always --no-suggest-shell-commands"),
	}.Run(t)
}

func TestFaults(t *testing.T) {
	agentclitest.PrintedFaults(t, Client(), []agentclitest.Printed{
		{Code: 2, Output: "usage: aider [-h]\naider: error: unrecognized arguments: --x\n", Kind: fault.FlagsRefused,
			Reason: "the client does not accept its command line: aider: error: unrecognized arguments: --x"},
		{Code: 0, Output: "aider: error: unrecognized arguments: --x\n"},
		{Code: 1, Output: "litellm.AuthenticationError: wrong key\n"},
		{Code: 2, Output: "aider: error: x\nI go on.\n"},
	})
}
