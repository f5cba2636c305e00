package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
)

// atMost is how long one thing may take. Every client tries a request that fails several times.
const atMost = 5 * time.Minute

// TestFaultInATurn: the API fails in the middle of a turn, after work was done. The client is paused, the person is
// not asked about the bead, nothing is charged, and the very session goes on once the API answers again.
func TestFaultInATurn(t *testing.T) {
	faults := []struct {
		name   string
		status int
		// reset is for how long the service says that it fails.
		reset time.Duration
		// gone: connections are refused. Without a status the API answers no more.
		gone bool
		kind fault.Kind
	}{
		{name: "429", status: 429, kind: fault.RateLimit}, {name: "429 with reset", status: 429, reset: 15 * time.Minute, kind: fault.RateLimit},
		{name: "500", status: 500, kind: fault.ServerError}, {name: "529", status: 529, kind: fault.Overloaded},
		{name: "cut off", status: agentclitest.Cut, kind: fault.Network}, {name: "gone", gone: true, kind: fault.Network},
	}
	for _, client := range []string{"claude", "codex", "gemini", "opencode"} {
		for _, tt := range faults {
			t.Run(client+"/"+tt.name, func(t *testing.T) {
				asked, forever := make(chan struct{}), make(chan struct{})
				fails := agentclitest.Turn{Has: []string{"COMMITTED"}, Status: tt.status, Say: "Trouble", Always: true}
				switch tt.status {
				case http.StatusTooManyRequests:
					fails.Say = "Rate limit reached"
				case agentclitest.Cut:
					fails = after("COMMITTED", brokenOff(tt.status))
				}
				if tt.reset > 0 {
					fails.RetryAfter = strconv.Itoa(int(tt.reset.Seconds()))
				}
				if tt.gone {
					fails = agentclitest.Turn{Has: []string{"COMMITTED"}, Say: "NEVER-SEEN", Seen: asked, Hold: forever}
				}
				s := set(t, client, "full", "", shell("I write it.", writes), fails)
				defer close(forever)
				id := s.add()
				up := s.Start("up")
				if tt.gone {
					<-asked
					s.model.Disconnect()
				}
				s.Eventually(atMost, "the client is paused", func() bool { return len(s.events("scope.paused")) > 0 })
				if inbox := s.Chipset("inbox"); strings.Count(inbox, " has been paused") != 1 || !strings.Contains(inbox, "client:"+client+" has been paused") || strings.Contains(inbox, id+" is blocked") {
					t.Errorf("the person is asked\n%s", inbox)
				}
				p := s.pauseOf(client)
				t.Logf("%s: %s, until %s", p.Kind, p.Reason, p.Until)
				if p.Kind != tt.kind {
					t.Errorf("it is paused for %s: %s", p.Kind, p.Reason)
				}
				s.model.Play(after("COMMITTED", shell("I report.", reports)), after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true}))
				if tt.gone {
					s.model.Reconnect(t)
				}
				if tt.reset > 0 { // which is not waited for here
					s.Chipset("resume", "client:"+client)
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
