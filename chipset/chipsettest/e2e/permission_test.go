package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/bead"
)

const (
	// outOfBounds is what no client lets an agent do that may only edit.
	outOfBounds = "dd if=README.md of=other.txt status=none"
	asks        = "chipset request permission 'Bash(" + outOfBounds + ")' --reason 'I need it'"
)

// needy is the script of an agent that needs what it may not; asking is what it
// does about that.
func needy(asking ...agentclitest.Turn) []agentclitest.Turn {
	script := append([]agentclitest.Turn{shell("I try.", outOfBounds)}, asking...)
	return append(script,
		after("approved the permission", shell("Again, then.", outOfBounds)),
		after("Again, then.", shell("I report.", "chipset done --summary 'wrote it'")),
		after("I report.", agentclitest.Turn{Say: "That was all.", Always: true}))
}

// TestApprovedGoesOn: what an agent may not do waits for the person. With the
// approval its session goes on, and its client lets it do just that.
func TestApprovedGoesOn(t *testing.T) {
	byItself := []agentclitest.Turn{shell("I ask.", asks), after(sent, agentclitest.Turn{Say: "I wait for the answer."})}
	tests := []struct {
		name, client, permissions string
		asking                    []agentclitest.Turn
	}{
		{"told how to ask", "claude", "edit", byItself},
		{"asked by the rig", "claude", "ask", []agentclitest.Turn{after("The person has been asked", agentclitest.Turn{Say: "I wait for the answer."})}},
		{"by its rules", "opencode", "edit", byItself},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := set(t, tt.client, tt.permissions, "", needy(tt.asking...)...)
			id := s.add()
			up := s.Start("up", "--timeout", upTime)
			s.Eventually(5*time.Minute, "its session has ended and waits", func() bool {
				out, _ := s.Try("log", "--type", "worker.exited")
				return strings.Contains(out, id)
			})
			asked := s.requests()
			if len(asked) != 1 {
				t.Fatalf("the person was asked %q", asked)
			}
			s.Chipset("approve", asked[0])
			s.Eventually(5*time.Minute, "it lands", func() bool { return s.bead(id).Status == bead.Merged })
			s.Chipset("down")
			<-up.Done()
			if got := s.Git("ls-tree", "--name-only", "main", "other.txt"); got != "other.txt" {
				t.Errorf("landed %q", got)
			}
			if resumed := s.events("worker.resumed"); len(resumed) == 0 || resumed[len(resumed)-1].Text != "what you asked has been answered" {
				t.Errorf("resumed %+v", resumed)
			}
		})
	}
}

// requests are the names of the permissions that the person was asked for.
func (s *stage) requests() []string {
	out, _ := s.Try("mail", "inbox", "human", "--unread")
	var names []string
	for _, line := range strings.Split(out, "\n") {
		if at := strings.Index(line, "20"); at >= 0 && strings.Contains(line, "permission_request") {
			names = append(names, strings.Fields(line[at:])[0])
		}
	}
	return names
}
