package goose

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client: Client(),
		Begun:  strings.Fields("goose run --instructions " + agentclitest.PromptFile),
	}.Run(t)
}

func TestFaults(t *testing.T) {
	agentclitest.PrintedFaults(t, Client(), []agentclitest.Printed{
		{Code: 2, Output: "error: unexpected argument '--x' found\n\nUsage: goose run\n", Kind: fault.FlagsRefused,
			Reason: "the client does not accept its command line: error: unexpected argument '--x' found"},
		{Code: 1, Output: "error: unexpected argument '--x' found\n"},
		{Code: 2, Output: "starting session\nerror: unexpected argument '--x' found\n"},
	})
}
