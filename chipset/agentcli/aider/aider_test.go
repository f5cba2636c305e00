package aider

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client: Client(),
		Begun:  strings.Fields("aider --no-stream --no-pretty --no-check-update --message-file=" + agentclitest.PromptFile + " --yes-always --no-suggest-shell-commands"),
	}.Run(t)
}
