package e2e_test

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
)

// TestNetwork: a real client works in a network of its own, in which it reaches its model alone.
func TestNetwork(t *testing.T) {
	if err := sandbox.NetworkMissing(); err != nil {
		t.Skip(err)
	}
	for client, listed := range map[string]bool{"claude": false, "gemini": false, "codex": true, "opencode": true} { // whose model no variable names
		t.Run(client, func(t *testing.T) {
			s := set(t, client, "full", "",
				agentclitest.Turn{Say: "I write it.", Calls: []agentclitest.Call{agentclitest.Shell(writes)}},
				agentclitest.Turn{Has: []string{"COMMITTED"}, Say: "I report.", Calls: []agentclitest.Call{agentclitest.Shell(reports)}},
				agentclitest.Turn{Has: []string{"REPORTED"}, Say: "That was all.", Always: true})
			hosts := ""
			if listed {
				hosts = `"` + strings.TrimPrefix(s.model.URL, "http://") + `"`
			}
			s.Write(".chipset/chipset.yaml", definition(client, "full", "")+"network: {allow: ["+hosts+"]}\n")
			s.lands(s.add())
		})
	}
}
