package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

func shell(say, line string) agentclitest.Turn {
	return agentclitest.Turn{Say: say, Calls: []agentclitest.Call{agentclitest.Shell(line)}}
}

func after(text string, turn agentclitest.Turn) agentclitest.Turn {
	turn.Has = append(turn.Has, text)
	return turn
}

// TestOverload: the session goes on once the API does.
func TestOverload(t *testing.T) {
	s := set(t, "claude", "full", "",
		agentclitest.Turn{Status: 529, Say: "Overloaded"}, agentclitest.Turn{Status: 529, Say: "Overloaded"}, // as often as it tries
		after("the model's API is overloaded (529)", shell("I write it.", writes)),
		after("COMMITTED", shell("I report.", reports)),
		after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true}))
	s.lands(s.add())
	if resumed := s.events("worker.resumed"); len(resumed) != 1 || !strings.Contains(resumed[0].Text, "529") {
		t.Errorf("resumed %+v", resumed)
	}
}

// TestRefusedTool: the client exits with 0, and the work is not done. It is told so,
// and finds another way.
func TestRefusedTool(t *testing.T) {
	const refused = "it was refused what it asked for: Bash"
	s := set(t, "claude", "edit", "")
	id := s.add()
	file := filepath.Join(s.Dir, ".chipset/worktrees/polecat-alpha/greeting.txt")
	s.model.Play(shell("I use the network.", "curl -s http://127.0.0.1:1/"),
		after("COMMITTED", shell("I report.", "chipset done --summary 'wrote it'")),
		after(refused, agentclitest.Turn{Say: "Another way.", Calls: []agentclitest.Call{
			agentclitest.Use("Write", map[string]any{"file_path": file, "content": "hello\n"}),
			agentclitest.Shell("git add greeting.txt"), agentclitest.Shell("git commit -m COMMITTED")}}),
		// The rig's hook keeps it going; it ends its turn all the same.
		agentclitest.Turn{Say: "I can't.", Always: true})
	s.lands(id)
	if resumed := s.events("worker.resumed"); len(resumed) != 1 || resumed[0].Text != refused {
		t.Errorf("resumed %+v", resumed)
	}
}

// TestRefusedForGood: only a person can permit it, so the bead waits for one.
func TestRefusedForGood(t *testing.T) {
	s := set(t, "claude", "edit", ", presets: {claude: {resumes: 1}}",
		shell("I use the network.", "curl -s http://127.0.0.1:1/"),
		after("it was refused what it asked for", shell("Again.", "curl -s http://127.0.0.1:2/")),
		agentclitest.Turn{Say: "I can't.", Always: true})
	if why := s.blocks(s.add()); !strings.Contains(why, "refused what it asked for: Bash") || !strings.Contains(why, "I can't.") {
		t.Errorf("blocked because %s", why)
	}
}

// TestStopCap: an agent that never reports is told to go on, resumed, and in the
// end taken at its word: the work is not finished.
func TestStopCap(t *testing.T) {
	s := set(t, "claude", "full", ", presets: {claude: {resumes: 1}}", shell("I begin.", "echo half > greeting.txt; git add -A; git commit -qm half"),
		agentclitest.Turn{Say: "I think I am finished.", Always: true})
	if why := s.blocks(s.add()); !strings.Contains(why, "ended its turn again and again") {
		t.Errorf("blocked because %s", why)
	}
	if resumed := s.events("worker.resumed"); len(resumed) != 1 {
		t.Errorf("resumed %+v", resumed)
	}
	if saved := s.Git("for-each-ref", "--format=%(refname)", "refs/chipset/salvage/"); saved == "" {
		t.Error("its work is not saved")
	}
}

// TestTermInTheMiddle: somebody ends the client alone while its tool runs. The
// session is continued in the same worktree, and nothing of the tool is left.
func TestTermInTheMiddle(t *testing.T) {
	s := set(t, "claude", "full", "",
		shell("I begin.", "echo hello > greeting.txt; tail -f /dev/null"),
		after("ended from outside", shell("I go on.", "git add greeting.txt && git commit -qm greeting && echo COMMITTED")),
		after("COMMITTED", shell("I report.", reports)),
		after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true}))
	id := s.add()
	up := s.Start("up", "--until-idle", "--timeout", upTime)
	s.Eventually(time.Minute, "its tool runs", func() bool {
		_, err := os.Stat(filepath.Join(s.Dir, ".chipset/worktrees/polecat-alpha/greeting.txt"))
		return err == nil
	})
	if err := syscall.Kill(s.worker(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-up.Done()
	s.lands(id)
	if resumed := s.events("worker.resumed"); len(resumed) != 1 {
		t.Errorf("resumed %+v", resumed)
	}
	if strays := s.Strays(); len(strays) > 0 {
		t.Errorf("left running: %v", strays)
	}
}

// worker is the process of the client, as its supervisor's record names it.
func (s *stage) worker() int {
	s.t.Helper()
	records, err := filepath.Glob(filepath.Join(s.Dir, ".chipset/run/workers/*.json"))
	if err != nil || len(records) != 1 {
		s.t.Fatalf("records %v, %v", records, err)
	}
	data, err := os.ReadFile(records[0])
	if err != nil {
		s.t.Fatal(err)
	}
	var record struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(data, &record); err != nil || record.PID == 0 {
		s.t.Fatalf("record %s: %v", data, err)
	}
	return record.PID
}
