package amp

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

func TestClient(t *testing.T) {
	agentclitest.Suite{
		Client:  Client(),
		Begun:   strings.Fields("amp -x --stream-json"),
		Resumed: strings.Fields("amp threads continue old -x --stream-json"),
	}.Run(t)
}
