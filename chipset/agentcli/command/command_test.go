package command

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client: Shell(),
		Begun:  strings.Fields("sh -e " + agentclitest.PromptFile),
	}.Run(t)
}
