package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

// TestSubagents: of five subagents of one type that are spawned in one message each is told who it is, its commands
// speak as itself.
func TestSubagents(t *testing.T) {
	for _, n := range []int{5, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { subagents(t, n) })
	}
}

func subagents(t *testing.T, n int) {
	spawn := agentclitest.Turn{Say: "I spawn five.", Lacks: []string{"ALL-SPAWNED"}, Has: []string{"ASSIGNED-TEXT"}}
	script := []agentclitest.Turn{}
	for i := range n {
		spawn.Calls = append(spawn.Calls, agentclitest.Use("Agent", map[string]any{"description": fmt.Sprintf("helper %d", i), "subagent_type": "general-purpose",
			"name": fmt.Sprintf("helper-%d", i), "prompt": fmt.Sprintf("SUBAGENT-%d, send your mail.", i), "run_in_background": false}))
		mine := fmt.Sprintf("SUBAGENT-%d,", i)
		script = append(script,
			agentclitest.Turn{Has: []string{mine}, Lacks: []string{"ASSIGNED-TEXT", fmt.Sprintf("HELLO-%d-SENT", i)}, Say: "I write.", Calls: []agentclitest.Call{
				agentclitest.Shell(fmt.Sprintf("chipset mail send mayor -s HELLO-%d && printf 'HELLO-%%d-SENT' %d", i, i))}},
			agentclitest.Turn{Has: []string{mine}, Lacks: []string{"ASSIGNED-TEXT"}, Say: "Finished.", Always: true})
	}
	script = append(script, spawn,
		agentclitest.Turn{Has: []string{"ASSIGNED-TEXT", "Finished."}, Lacks: []string{"COMMITTED"}, Say: "I write it.", Calls: []agentclitest.Call{agentclitest.Shell(writes)}},
		after("COMMITTED", shell("I report.", reports)),
		after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true}),
		agentclitest.Turn{Say: "I wait.", Always: true})
	s := set(t, "claude", "full", "", script...)
	s.lands(s.add())
	identity := regexp.MustCompile(`You are polecat-alpha\.helper-(\d+) `)
	asked := regexp.MustCompile(`SUBAGENT-(\d+), send`)
	told := 0
	for _, r := range s.model.Requests() {
		if is := identity.FindStringSubmatch(r.Text); is != nil && !strings.Contains(r.Text, "ASSIGNED-TEXT") {
			told++
			if want := asked.FindStringSubmatch(r.Text); want == nil || want[1] != is[1] {
				t.Errorf("subagent %v is told that it is %v", want, is)
			}
		}
	}
	if told < n {
		t.Errorf("%d were told who they are", told)
	}
	sent := 0
	for _, e := range s.events("mail.sent") {
		if i := strings.Index(e.Text, "HELLO-"); i >= 0 {
			sent++
			if want := "polecat-alpha.helper-" + e.Text[i+len("HELLO-"):]; e.From != want {
				t.Errorf("%s is from %s", e.Text, e.From)
			}
		}
	}
	if sent != n {
		t.Errorf("%d messages were sent", sent)
	}
}
