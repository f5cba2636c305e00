package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/pause"
)

// interfaces are those of the models of the four clients.
func interfaces() map[string]string {
	return map[string]string{"claude": "messages", "codex": "responses", "gemini": "gemini", "opencode": "chat"}
}

// setSeveral makes a stage on which all four clients work at the same time. A silent worker is noticed after half a minute.
func setSeveral(t *testing.T, more string) *stage {
	t.Helper()
	return setWith(t, []string{"claude", "codex", "gemini", "opencode"}, `agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: 4}
rig: {name: e2e, bead_prefix: ee}
gupp: {limits: {max_attempts_per_bead: 1}, thresholds: {stall_detection: 20s}}
worker: {default: claude, permissions: full}
merge: {target: main, test: "true"}
allow: {env: [STAND_IN_KEY]}
`+more)
}

// assign makes a bead that a client shall do, and returns its ID.
func (s *stage) assign(client, task string) string {
	s.t.Helper()
	return s.Chipset("work", "add", "Write "+task, "-d", "TASK-"+task, "--worker", client)
}

// does is the script of an agent that does a task and says that it did. Any of its steps may be asked for again.
func does(task string) []agentclitest.Turn {
	step := func(has, say, line string) agentclitest.Turn {
		turn := shell(say, line)
		turn.Has, turn.Always = []string{"TASK-" + task, has}, true
		return turn
	}
	return []agentclitest.Turn{
		{Has: []string{"TASK-" + task, "REPORTED-" + task}, Say: "That was all.", Always: true},
		step("COMMITTED-"+task, "I report.", "chipset done --summary 'wrote it'; printf 'REPORTED-%s' "+task),
		step("", "I write it.", "echo "+task+" > "+task+".txt; git add "+task+".txt; git commit -qm "+task+"; printf 'COMMITTED-%s' "+task)}
}

// landed fails the test unless the beads, by their tasks, have landed once with what the model wrote, and nothing was charged.
func (s *stage) landed(beads map[string]string) {
	s.t.Helper()
	for task, id := range beads {
		b := s.bead(id)
		if b.Status != bead.Merged || b.Attempts != 0 {
			s.t.Errorf("%s (%s) is %s after %d attempts charged: %s", id, task, b.Status, b.Attempts, b.CloseReason)
			continue
		}
		if got := s.Git("show", "main:"+task+".txt"); got != task {
			s.t.Errorf("%s landed with %q", task, got)
		}
		if commits := s.Git("log", "--format=%s", "main", "--", task+".txt"); strings.Count(commits, "\n") > 0 {
			s.t.Errorf("%s landed several times:\n%s", task, commits)
		}
	}
	if strays := s.Strays(); len(strays) > 0 {
		s.t.Errorf("left running: %v", strays)
	}
}

// pauseOf is the record of the pause of a client, zero without one.
func (s *stage) pauseOf(client string) pause.Pause {
	s.t.Helper()
	var p pause.Pause
	if data, err := os.ReadFile(filepath.Join(s.Dir, ".chipset/state/pauses/client."+client+".json")); err == nil {
		if err := json.Unmarshal(data, &p); err != nil {
			s.t.Fatal(err)
		}
	}
	return p
}

// wentOn fails the test unless a bead was done in the session that it began with.
func (s *stage) wentOn(id string) {
	s.t.Helper()
	begun := 0
	for _, e := range s.events("worker.started") {
		if string(e.Bead) == id {
			begun++
		}
	}
	if b := s.bead(id); begun != 1 || b.Assignments != 1 {
		s.t.Errorf("%s was begun %d times in %d assignments", b.Title, begun, b.Assignments)
	}
}

// brokenOff is an answer of which half is sent. It is of some length and does not repeat itself, which Gemini CLI would take for a loop.
func brokenOff(status int) agentclitest.Turn {
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "Part %d of what I have to say is about file%d. ", i, i*i)
	}
	return agentclitest.Turn{Status: status, Say: text.String(), Always: true}
}

// statuses are those of beads, by their tasks.
func (s *stage) statuses(beads map[string]string) string {
	var all []string
	for task, id := range beads {
		b := s.bead(id)
		all = append(all, fmt.Sprintf("%s: %s", task, b.Status))
	}
	return strings.Join(all, ", ")
}
