package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/bead"
)

// atMost is how long one thing may take. opencode asks npm for its plugins when it starts, and every client tries a
// request that fails several times.
const atMost = 5 * time.Minute

// TestFaultInATurn: the API fails in the middle of a turn, after work was done. The client is paused, the person is
// not asked about the bead, nothing is charged, and the very session goes on once the API answers again.
func TestFaultInATurn(t *testing.T) {
	faults := []struct {
		name   string
		status int
		// gone: connections are refused. Without a status the API answers no more.
		gone bool
	}{{"429", 429, false}, {"500", 500, false}, {"cut off", agentclitest.Cut, false}, {"gone", 0, true}, {"silent", 0, false}}
	for _, client := range []string{"claude", "codex", "gemini", "opencode"} {
		for _, fault := range faults {
			t.Run(client+"/"+fault.name, func(t *testing.T) {
				asked, forever := make(chan struct{}), make(chan struct{})
				fails := agentclitest.Turn{Has: []string{"COMMITTED"}, Status: fault.status, Say: "Trouble", Always: true}
				if fault.status == 0 {
					fails = agentclitest.Turn{Has: []string{"COMMITTED"}, Say: "NEVER-SEEN", Seen: asked, Hold: forever}
				}
				s := set(t, client, "full", "", shell("I write it.", writes), fails)
				defer close(forever)
				if fault.status == 0 && !fault.gone {
					s.Write(".chipset/chipset.yaml", strings.Replace(definition(client, "full", ""), "gupp: {", "gupp: {thresholds: {stall_detection: 20s}, ", 1))
				}
				id := s.add()
				up := s.Start("up")
				if fault.gone {
					<-asked
					s.model.Disconnect()
				}
				s.Eventually(atMost, "the client is paused", func() bool { return len(s.events("scope.paused")) > 0 })
				if inbox := s.Chipset("inbox"); !strings.Contains(inbox, "client:"+client+" has been paused") || strings.Contains(inbox, id+" is blocked") {
					t.Errorf("the person is asked\n%s", inbox)
				}
				s.model.Play(after("COMMITTED", shell("I report.", reports)), after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true}))
				if fault.gone {
					s.model.Reconnect(t)
				}
				s.Eventually(atMost, "it lands", func() bool { return s.bead(id).Status == bead.Merged })
				s.Chipset("down")
				<-up.Done()
				s.oneSession(id)
			})
		}
	}
}

// oneSession fails the test unless the bead was done in the session that it began with, and nothing was charged.
func (s *stage) oneSession(id string) {
	s.t.Helper()
	if b := s.bead(id); b.Attempts != 0 || b.Assignments != 1 {
		s.t.Errorf("%d attempts charged, %d assignments", b.Attempts, b.Assignments)
	}
	if begun := s.events("worker.started"); len(begun) != 1 {
		s.t.Errorf("begun %d times", len(begun))
	}
	if strays := s.Strays(); len(strays) > 0 {
		s.t.Errorf("left running: %v", strays)
	}
}

// TestIdleSpendsNothing: a rig without work asks no model, whatever mail and nudges its agents get.
func TestIdleSpendsNothing(t *testing.T) {
	for _, client := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(client, func(t *testing.T) {
			s := set(t, client, "full", "")
			up := s.Start("up")
			s.Chipset("mail", "send", "polecat-alpha", "-s", "hello", "--body", "x", "--as", "mayor")
			s.Chipset("nudge", "send", "polecat-alpha", "--type", "health_check", "-m", "x", "--as", "mayor")
			s.Eventually(atMost, "the nudge is seen", func() bool { return len(s.events("nudge.seen")) > 0 })
			s.Chipset("down")
			<-up.Done()
			if n := len(s.model.All()); n > 0 {
				t.Errorf("%d requests", n)
			}
		})
	}
}
