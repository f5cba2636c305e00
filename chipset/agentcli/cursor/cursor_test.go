package cursor

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client:  Client(),
		Begun:   strings.Fields("cursor-agent -p --output-format stream-json --trust P"),
		Resumed: strings.Fields("cursor-agent --resume=old -p --output-format stream-json --trust P"),
	}.Run(t)
}

func TestFaults(t *testing.T) {
	const began = `{"type":"system","subtype":"init","session_id":"s1"}` + "\n"
	agentclitest.PrintedFaults(t, Client(), []agentclitest.Printed{
		{Code: 1, Output: "error: unknown option '--x'\n", Kind: fault.FlagsRefused, Reason: "the client does not accept its command line: error: unknown option '--x'"},
		{Code: 1, Output: "Error: Authentication required. Please run 'cursor-agent login' first.\n", Kind: fault.NotLoggedIn, Reason: "the client is not logged in"},
		{Code: 1, Output: began + "Error: Authentication required.\n"},
		{Code: 1, Output: began + "error: unknown option '--x'\n"},
	})
}
