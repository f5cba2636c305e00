package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/bead"
)

const (
	tooEarly = "echo early > greeting.txt"
	// A command alone, because opencode's rules judge each part of a line.
	plans = "chipset request plan --body 'PLAN-TEXT: I put hello into greeting.txt'"
	// sent is in the name of whatever the worker has sent.
	sent = "Z-polecat-alpha"
)

// planner is the script of an agent that begins too early, plans, ends its turn, and
// works once its plan is approved.
func planner() []agentclitest.Turn {
	return []agentclitest.Turn{
		after("Plan first", shell("I begin.", tooEarly)),
		shell("Then I plan.", plans),
		after(sent, agentclitest.Turn{Say: "I wait for the answer."}),
		after("has approved your plan", shell("I write it.", writes)),
		after("COMMITTED", shell("I report.", reports)),
		after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true})}
}

// plan is the name of the request that waits for the person, once there is one.
func (s *stage) plan() string {
	out, _ := s.Try("mail", "search", "PLAN-TEXT")
	for _, word := range strings.Fields(out) {
		if strings.HasPrefix(word, "20") && strings.Contains(word, "-mayor") {
			return strings.TrimSuffix(word, ".json")
		}
	}
	return ""
}

// TestPlanFirst: whose preset plans changes nothing before the person has approved,
// whatever tool it tries; it ends its turn, and its session goes on with the answer.
func TestPlanFirst(t *testing.T) {
	for _, client := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(client, func(t *testing.T) {
			s := set(t, client, "full", ", presets: {"+client+": {plan: true}}", planner()...)
			id := s.add()
			up := s.Start("up", "--timeout", upTime)
			s.Eventually(5*time.Minute, "its session has ended and waits", func() bool {
				out, _ := s.Try("log", "--type", "worker.exited")
				return strings.Contains(out, id)
			})
			if _, err := os.Stat(filepath.Join(s.Dir, ".chipset/worktrees/polecat-alpha/greeting.txt")); err == nil {
				t.Error("it has written before its plan was approved")
			}
			s.Chipset("approve", s.plan())
			s.Eventually(5*time.Minute, "it lands", func() bool { return s.bead(id).Status == bead.Merged })
			s.Chipset("down")
			<-up.Done()
			if got := s.Git("show", "main:greeting.txt"); got != "hello" {
				t.Errorf("landed with %q", got)
			}
			resumed := s.events("worker.resumed")
			if len(resumed) == 0 || resumed[len(resumed)-1].Text != "what you asked has been answered" {
				t.Errorf("resumed %+v", resumed)
			}
		})
	}
}

// TestPlanOverNight: the rig ends while the plan waits. When it starts again, the
// answer and the plan are in the prompt of the session that begins.
func TestPlanOverNight(t *testing.T) {
	s := set(t, "claude", "full", ", presets: {claude: {plan: true}}", planner()...)
	id := s.add()
	if out, code := s.Try("up", "--until-idle", "--timeout", upTime); code != 7 || !strings.Contains(out, "chipset approve") {
		t.Fatalf("up: exit %d\n%s", code, out)
	}
	s.Chipset("approve", s.plan(), "--reason", "APPROVED-BECAUSE")
	s.lands(id)
	if n := len(s.model.Requests()); !s.request(n-3).Has("PLAN-TEXT", "APPROVED-BECAUSE", "has approved your plan") {
		t.Errorf("it began with\n%s", s.request(n-3).Text)
	}
}
