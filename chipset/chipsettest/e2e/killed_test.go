package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/bead"
)

// TestKilledAtRandom kills rig, supervisor and client at random moments. Each time the very session goes on: the model is
// never asked without what it did before, nothing is charged, and no mail is lost.
func TestKilledAtRandom(t *testing.T) {
	for _, client := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(client, func(t *testing.T) {
			s := set(t, client, "full", ", presets: {"+client+": {resumes: 9}}", stepwise(12)...)
			id := s.add()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			bodies := s.killAtRandom(id, rand.New(rand.NewPCG(seed, 0)))
			s.oneSession(id)
			s.shownAsRecorded(bodies)
			if got := s.Git("show", "main:greeting.txt"); got != "hello" {
				t.Errorf("landed with %q", got)
			}
			begun := false
			for i, r := range s.model.Requests() {
				if begun && !r.Has("STEP-1-DONE") {
					t.Errorf("request %d does not know what was done before", i)
				}
				begun = begun || r.Has("STEP-1-DONE")
			}
		})
	}
}

// stepwise is the script of an agent that works in steps, of which any may be asked for again.
func stepwise(steps int) []agentclitest.Turn {
	done := func(i int) string { return fmt.Sprintf("STEP-%d-DONE", i) }
	always := func(has string, line string) agentclitest.Turn {
		turn := shell("I go on.", line)
		turn.Has, turn.Always = []string{has}, true
		return turn
	}
	script := []agentclitest.Turn{{Has: []string{"REPORTED"}, Always: true, Say: "That was all."}, always("COMMITTED", reports), always(done(steps), writes)}
	for i := steps - 1; i > 0; i-- {
		script = append(script, always(done(i), fmt.Sprintf("sleep 0.5; printf 'STEP-%%d-DONE' %d", i+1)))
	}
	return append(script, always("ASSIGNED-TEXT", "printf 'STEP-%d-DONE' 1"))
}

// killAtRandom kills while the rig works, until the bead has landed. The third kill of one worker would be charged. It returns
// the bodies of the messages to the worker that were sent meanwhile, by their names.
func (s *stage) killAtRandom(id string, random *rand.Rand) (bodies map[string]string) {
	s.t.Helper()
	bodies = map[string]string{}
	const (
		mostOfRig    = 4
		mostOfWorker = 2
	)
	up := s.Start("up")
	s.Eventually(atMost, "it has begun", func() bool { return len(s.model.Requests()) > 1 })
	rigs, workers := 0, 0
	for rigs < mostOfRig || workers < mostOfWorker {
		// What is random here is when the next kill comes; nothing is waited for.
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		if s.bead(id).Status == bead.Merged {
			break
		}
		s.write(bodies, "polecat-alpha", len(bodies))
		if rigs == mostOfRig || workers < mostOfWorker && random.IntN(2) == 0 {
			workers += s.killWorker([]string{"pid", "supervisor_pid"}[random.IntN(2)])
			continue
		}
		rigs++
		up.Kill()
		up = s.Start("up")
	}
	s.t.Logf("%d kills of the rig, %d of its worker", rigs, workers)
	s.Eventually(atMost, "it lands", func() bool { return s.bead(id).Status == bead.Merged })
	s.end(up)
	return bodies
}

// end ends a rig that may just have begun, of which down does not know yet.
func (s *stage) end(up *chipsettest.Process) {
	s.t.Helper()
	if err := up.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	<-up.Done()
}

// killWorker kills a process that a record of a worker names, and returns how many it has killed.
func (s *stage) killWorker(who string) int {
	records, err := filepath.Glob(filepath.Join(s.Dir, ".chipset/run/workers/*.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range records {
		data, err := os.ReadFile(path)
		var record map[string]any
		if err != nil || json.Unmarshal(data, &record) != nil || record["done"] == true {
			continue
		}
		if pid, _ := record[who].(float64); pid > 1 && syscall.Kill(int(pid), syscall.SIGKILL) == nil {
			return 1
		}
	}
	return 0
}
