package e2e_test

import (
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

// TestSessionOutlivesTheRig: kill -9 of the rig in the middle of a turn, and the very session goes on: the model
// sees what it said before, and what has happened.
func TestSessionOutlivesTheRig(t *testing.T) {
	for _, client := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(client, func(t *testing.T) {
			asked, killed := make(chan struct{}), make(chan struct{})
			s := set(t, client, "full", "",
				agentclitest.Turn{Say: "I write it.", Calls: []agentclitest.Call{agentclitest.Shell(writes)}},
				agentclitest.Turn{Has: []string{"COMMITTED"}, Lacks: []string{"What happened"}, Say: "NEVER-SEEN", Seen: asked, Hold: killed},
				agentclitest.Turn{Has: []string{"What happened: the rig ended while you worked", "I write it."}, Say: "I report.",
					Calls: []agentclitest.Call{agentclitest.Shell(reports)}},
				agentclitest.Turn{Has: []string{"REPORTED"}, Say: "That was all.", Always: true})
			id := s.add()
			up := s.Start("up")
			select {
			case <-asked:
			case <-up.Done():
				t.Fatalf("it ended\n%s", up.Output)
			case <-time.After(5 * time.Minute):
				t.Fatalf("nothing asked\n%s", up.Output)
			}
			up.Kill()
			close(killed)
			s.lands(id)
			if resumed := s.events("worker.resumed"); len(resumed) == 0 || resumed[0].Text != "the rig ended while you worked, and goes on now" {
				t.Errorf("resumed %+v", resumed)
			}
			if begun := s.events("worker.started"); len(begun) != 1 {
				t.Errorf("begun %d times", len(begun))
			}
			if strays := s.Strays(); len(strays) > 0 {
				t.Errorf("left running: %v", strays)
			}
		})
	}
}
