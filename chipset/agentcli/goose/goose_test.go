package goose

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client: Client(),
		Begun:  strings.Fields("goose run --instructions " + agentclitest.PromptFile),
	}.Run(t)
}
