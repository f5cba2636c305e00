package e2e_test

import (
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/bead"
)

// TestLies: a model that reports what it has not done, or says that it has done it, fails, and why names the cause. One that
// makes up the name of a message is told so, and a second report changes nothing.
func TestLies(t *testing.T) {
	s := setSeveral(t, "")
	empty, said, honest := map[string]string{}, map[string]string{}, map[string]string{}
	var script []agentclitest.Turn
	always := func(task, has string, turn agentclitest.Turn) {
		turn.Has, turn.Always = []string{"TASK-" + task, has}, true
		script = append(script, turn)
	}
	const invented = "2026-01-02T03-04-05.678Z-mayor"
	for client := range interfaces() {
		task := "empty-" + client
		empty[client] = s.assign(client, task)
		always(task, "REPORTED-"+task, agentclitest.Turn{Say: "That was all."})
		always(task, "", shell("I have written it and report.", "chipset done --summary 'wrote it'; printf 'REPORTED-%s' "+task))

		task = "said-" + client
		said[client] = s.assign(client, task)
		always(task, "", agentclitest.Turn{Say: "I have written it, committed it and reported it."})

		task = "twice-" + client
		honest[task] = s.assign(client, task)
		script = append(script, agentclitest.Turn{Has: []string{"TASK-" + task}, Lacks: []string{"MADE-UP-" + task}, Say: "I read it.", Always: true,
			Calls: []agentclitest.Call{agentclitest.Shell("chipset mail read " + invented + "; printf 'MADE-UP-%s' " + task)}})
		always(task, "REPORTED-"+task, agentclitest.Turn{Say: "That was all."})
		always(task, "COMMITTED-"+task, shell("I report.", "chipset done --summary one; chipset done --summary two; printf 'REPORTED-%s' "+task))
		script = append(script, does(task)...)
	}
	s.model.Play(script...)
	if out, code := s.Try("up", "--until-idle", "--timeout", "600s"); code != 7 {
		t.Errorf("up: exit %d\n%s", code, out)
	}
	s.landed(honest)
	for _, lie := range []struct {
		beads map[string]string
		cause func(client string) string
	}{
		{empty, func(string) string { return "attempt 1 of 1 failed: no change" }},
		{said, func(client string) string {
			if client == "claude" || client == "gemini" { // which say that they were kept going
				return "attempt 1 of 1 failed: it ended its turn again and again without reporting an end: I have written it"
			}
			return "attempt 1 of 1 failed: no change"
		}},
	} {
		for client, id := range lie.beads {
			if b := s.bead(id); b.Status != bead.Blocked {
				t.Errorf("%s: %s is %s", client, b.Title, b.Status)
			}
			for _, command := range [][]string{{"why", id}, {"work", "show", id}, {"status"}} {
				if out := s.Chipset(command...); !strings.Contains(out, lie.cause(client)) {
					t.Errorf("%s: %q does not name the cause %q:\n%s", client, command, lie.cause(client), out)
				}
			}
		}
	}
	for task := range honest {
		told := false
		for _, r := range s.model.Requests() {
			told = told || r.Has("MADE-UP-"+task, "no message \""+invented)
		}
		if !told {
			t.Errorf("%s was not told that there is no such message", task)
		}
	}
}
