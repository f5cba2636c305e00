package cursor

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client:  Client(),
		Begun:   strings.Fields("cursor-agent -p --output-format stream-json --trust P"),
		Resumed: strings.Fields("cursor-agent --resume=old -p --output-format stream-json --trust P"),
	}.Run(t)
}
