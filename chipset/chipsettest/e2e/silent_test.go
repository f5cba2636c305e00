package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/fault"
)

// TestSilentModel: the model accepts a request and never answers it, then begins an answer and never ends it. The rig
// notices both within its limits and says so wherever one looks, charges nothing, and goes on by itself in the same session.
func TestSilentModel(t *testing.T) {
	s := setSeveral(t, "")
	beads, forever := map[string]string{}, make(chan struct{})
	defer close(forever)
	var silent, breaksOff, works []agentclitest.Turn
	for client, api := range interfaces() {
		beads[client] = s.assign(client, client)
		silent = append(silent, agentclitest.Turn{API: api, Say: "NEVER-SEEN", Hold: forever, Always: true})
		hang := after("COMMITTED-"+client, brokenOff(agentclitest.Hang))
		hang.API = api
		breaksOff = append(breaksOff, hang)
		works = append(works, does(client)...)
	}
	s.model.Play(silent...)
	up := s.Start("up", "--plain")
	s.unanswered(up.Output.String, beads)
	before := map[string]int{}
	for client := range beads {
		before[client] = s.pauseOf(client).Tries
	}
	s.model.Play(slices.Concat(breaksOff, works)...)
	s.Eventually(atMost, "all hang in the middle of an answer", func() bool {
		for client := range beads {
			if s.pauseOf(client).Tries <= before[client] {
				return false
			}
		}
		return true
	})
	s.unanswered(up.Output.String, beads)
	s.model.Play(works...)
	s.Eventually(atMost, "they land", func() bool { return strings.Count(s.statuses(beads), "merged") == len(beads) })
	s.Chipset("down")
	<-up.Done()
	s.landed(beads)
	for client, id := range beads {
		if client != "gemini" { // which keeps no session whose first request was not answered
			s.wentOn(id)
		}
	}
}

// unanswered waits until each client is paused because its model does not answer, and fails the test unless the person can see that.
func (s *stage) unanswered(up func() string, beads map[string]string) {
	s.t.Helper()
	s.Eventually(atMost, "all are paused", func() bool {
		for client := range beads {
			if p := s.pauseOf(client); !p.InForce() {
				return false
			}
		}
		return true
	})
	const says = "the model's API does not answer"
	status := s.Chipset("status")
	for client, id := range beads {
		if p := s.pauseOf(client); p.Kind != fault.NoAnswer {
			s.t.Errorf("%s is paused for %s: %s", client, p.Kind, p.Reason)
		}
		if !strings.Contains(status, client) || strings.Count(status, says) < len(beads) {
			s.t.Errorf("status does not say that %s waits:\n%s", client, status)
		}
		if why := s.Chipset("why", id); !strings.Contains(why, says) {
			s.t.Errorf("why %s:\n%s", id, why)
		}
		if !strings.Contains(up(), "client:"+client) || !strings.Contains(up(), says) {
			s.t.Errorf("up does not say that %s waits:\n%s", client, up())
		}
	}
}
