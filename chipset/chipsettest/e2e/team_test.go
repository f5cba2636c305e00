package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

// TestTeam: SendMessage of an agent team reaches an agent of the rig, whose answer reaches the team's lead while it is idle.
// A lead looks into its inbox while it has a teammate of its own, so it spawns one.
func TestTeam(t *testing.T) {
	s := set(t, "claude", "full", "",
		agentclitest.Turn{Has: []string{"HELP-PROMPT"}, Lacks: []string{"ASK-THE-RIG"}, Say: "I help.", Always: true},
		agentclitest.Turn{Has: []string{"ASK-THE-RIG"}, Say: "I spawn.", Calls: []agentclitest.Call{
			agentclitest.Use("Agent", map[string]any{"name": "helper", "description": "helps", "prompt": "HELP-PROMPT", "subagent_type": "general-purpose"})}},
		agentclitest.Turn{Has: []string{"I spawn."}, Say: "I ask.", Calls: []agentclitest.Call{
			agentclitest.Use("SendMessage", map[string]any{"to": "mayor", "summary": "hello", "message": "HELLO-MAYOR"})}},
		agentclitest.Turn{Has: []string{"HELLO-MAYOR"}, Lacks: []string{"HELLO-LEAD"}, Say: "I have asked.", Always: true},
		agentclitest.Turn{Has: []string{"HELLO-LEAD"}, Say: "I read the answer.", Always: true})
	s.onboarded()
	screen := s.screen("env", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "claude", "--dangerously-skip-permissions")
	screen.until("bypass permissions")
	team := s.team()
	bridge := func() string {
		return s.Chipset("bridge", "claude-team", team, "--ours", "mayor", "--theirs", "team-lead=ext-lead")
	}
	bridge()
	screen.keys("-l", "ASK-THE-RIG")
	screen.until("ASK-THE-RIG")
	screen.enter("I have asked.")
	bridge()
	if got := s.mailOf("mayor"); !strings.Contains(got, "HELLO-MAYOR") {
		t.Fatalf("the mayor has %s", got)
	}
	s.Chipset("mail", "send", "ext-lead", "--subject", "an answer", "--body", "HELLO-LEAD")
	bridge()
	screen.until("I read the answer.")
}

// team waits for the folder of the one team that there is.
func (s *stage) team() string {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(s.home, ".claude/teams/session-*/config.json"))
		if err != nil {
			s.t.Fatal(err)
		}
		if len(found) == 1 {
			return filepath.Dir(found[0])
		}
	}
	s.t.Fatal("no team")
	return ""
}

// mailOf is all mail of an agent, as it lies there.
func (s *stage) mailOf(agent string) string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir, ".chipset/state/mail", agent, "*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
