package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
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
			s.Eventually(5*time.Minute, "it lands", func() bool {
				b := s.bead(id)
				if b.Status == bead.Blocked {
					t.Fatalf("it is blocked: %s", b.CloseReason)
				}
				return b.Status == bead.Merged
			})
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

// TestApprovedLater: up --until-idle ends while a permission is asked for. With the approval the next one goes on with
// the very session.
func TestApprovedLater(t *testing.T) {
	for _, client := range []string{"claude", "opencode"} {
		t.Run(client, func(t *testing.T) {
			s := set(t, client, "edit", "", needy(shell("I ask.", asks), after(sent, agentclitest.Turn{Say: "I wait for the answer."}))...)
			id := s.add()
			if out, code := s.Try("up", "--until-idle", "--timeout", upTime); code != 7 || !strings.Contains(out, "chipset approve 1") {
				t.Fatalf("up: exit %d\n%s", code, out)
			}
			s.Chipset("approve", "1")
			if out, code := s.Try("up", "--until-idle", "--timeout", upTime); code != 0 || s.bead(id).Status != bead.Merged {
				t.Fatalf("up: exit %d\n%s", code, out)
			}
			s.oneSession(id)
		})
	}
}

// TestNoWayAround: the rig puts the name of a subagent before its commands, and clients let that pass. What else stands on
// such a line needs a permission as ever.
func TestNoWayAround(t *testing.T) {
	const export = "export CHIPSET_AGENT=x"
	lines := []string{export + "; " + outOfBounds, export + " && " + outOfBounds, export + "\n" + outOfBounds, export + " | " + outOfBounds,
		export + " & " + outOfBounds, export + "$(" + outOfBounds + ")", export + "`" + outOfBounds + "`", export + "<(" + outOfBounds + ")"}
	s := set(t, "claude", "edit", "")
	var script []agentclitest.Turn
	for _, line := range lines {
		script = append(script, shell("I try.", line))
	}
	s.model.Play(append(script, shell("I end.", "chipset fail --reason refused"), agentclitest.Turn{Say: "That was all.", Always: true})...)
	s.add()
	s.Try("up", "--until-idle", "--timeout", upTime)
	for i, line := range lines {
		if r := s.request(i + 1); !strings.Contains(r.Last, "This is not permitted here") {
			t.Errorf("%q is answered with\n%s", line, r.Last)
		}
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

// TestRunsTheTest: with edit, in a sandbox, a client lets an agent run the very command that tests what lands, and no other.
func TestRunsTheTest(t *testing.T) {
	if !sandbox.InForce(sandbox.Auto) {
		t.Skip("this machine has no sandbox")
	}
	for client, report := range map[string]string{"claude": "mcp__chipset__done", "gemini": "mcp_chipset_done", "opencode": "chipset_done"} {
		t.Run(client, func(t *testing.T) {
			s := set(t, client, "edit", "")
			s.Write(".chipset/chipset.yaml", strings.Replace(definition(client, "edit", ""), `test: "true"`, "test: touch tested.txt", 1))
			id := s.add()
			s.model.Play(shell("I test.", "touch tested.txt"), shell("I try.", outOfBounds),
				agentclitest.Turn{Say: "I report.", Calls: []agentclitest.Call{agentclitest.Use(report, map[string]any{"summary": "tested it"})}},
				agentclitest.Turn{Say: "That was all.", Always: true})
			if out, code := s.Try("up", "--until-idle", "--timeout", upTime); code != 0 || s.bead(id).Status != bead.Merged {
				t.Fatalf("up: exit %d\n%s", code, out)
			}
			if got := s.Git("ls-tree", "--name-only", "main", "tested.txt", "other.txt"); got != "tested.txt" {
				t.Errorf("landed %q", got)
			}
		})
	}
}
