package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
	"github.com/gastown-chipset/chipset/state/bead"
)

const (
	writes  = "echo hello > greeting.txt && git add greeting.txt && git commit -qm greeting && echo COMMITTED"
	reports = "chipset done --summary 'wrote it' && echo REPORTED"
)

// TestLands: a real client is the worker of a bead. It begins with assignment and
// mail before it, gets another mail at a step that fails, is not let go when it ends too
// early, and what it commits lands.
func TestLands(t *testing.T) {
	tests := []struct {
		client string
		// kept: it is kept going in its turn; else it is resumed after it.
		kept bool
	}{{"claude", true}, {"codex", true}, {"gemini", true}, {"opencode", false}}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			asked, mailed := make(chan struct{}), make(chan struct{})
			s := set(t, tt.client, "full", "",
				agentclitest.Turn{Say: "I look around.", Calls: []agentclitest.Call{agentclitest.Shell("echo LOOKED; false")}, Seen: asked, Hold: mailed},
				agentclitest.Turn{Has: []string{"LOOKED"}, Say: "I think I am finished."},
				agentclitest.Turn{Has: []string{"still on your hook"}, Say: "I write it.", Calls: []agentclitest.Call{agentclitest.Shell(writes)}},
				agentclitest.Turn{Has: []string{"COMMITTED"}, Say: "I report.", Calls: []agentclitest.Call{agentclitest.Shell(reports)}},
				agentclitest.Turn{Has: []string{"REPORTED"}, Say: "That was all.", Always: true})
			id := s.add()
			go func() {
				<-asked
				s.Try("mail", "send", "polecat-alpha", "--subject", "while you work", "--body", "MAIL-MEANWHILE")
				close(mailed)
			}()
			s.lands(id)
			if r := s.request(0); !r.Has(id, "ASSIGNED-TEXT", "MAIL-BEFORE", "chipset done") {
				t.Errorf("it began with\n%s", r.Text)
			}
			if r := s.request(1); !r.Has("MAIL-MEANWHILE") {
				t.Errorf("its second step had %s", r.Last)
			}
			if kept := len(s.events("client.kept_going")); kept > 1 || (kept == 1) != tt.kept {
				t.Errorf("kept going %d times", kept)
			}
			if resumed := len(s.events("worker.resumed")); (resumed == 1) == tt.kept {
				t.Errorf("resumed %d times", resumed)
			}
			totals := s.events("worker.totals")
			if len(totals) != 1 || !strings.HasPrefix(totals[0].Text, tt.client+": ") || !strings.Contains(totals[0].Text, "tool call") {
				t.Errorf("totals %+v", totals)
			}
			if strays := s.Strays(); len(strays) > 0 {
				t.Errorf("left running: %v", strays)
			}
		})
	}
}

// TestBadKey: a key that the API refuses is not the bead's fault. The client is paused after one session, the person
// is asked once, and with another key that session goes on.
func TestBadKey(t *testing.T) {
	// opencode tries for a minute; what it says then is among the recordings. Gemini CLI keeps no session whose first request
	// was refused: it begins again.
	for client, begins := range map[string]int{"claude": 1, "codex": 1, "gemini": 2} {
		t.Run(client, func(t *testing.T) {
			s := set(t, client, "full", "", agentclitest.Turn{Status: 401, Say: "that key is not known here", Always: true})
			id := s.add()
			out, code := s.Try("up", "--until-idle", "--timeout", upTime)
			if b := s.bead(id); code != 7 || b.Status.Finished() || b.Attempts != 0 || b.Status == bead.Blocked {
				t.Fatalf("up: exit %d, %s is %s after %d attempts\n%s", code, id, b.Status, b.Attempts, out)
			}
			if begun, resumed := len(s.events("worker.started")), len(s.events("worker.resumed")); begun != 1 || resumed != 0 {
				t.Errorf("begun %d times, resumed %d times", begun, resumed)
			}
			inbox := s.Chipset("inbox")
			if strings.Count(inbox, "does not accept the key") != 1 || !strings.Contains(inbox, "chipset resume client:"+client) || strings.Contains(inbox, id+" is blocked") {
				t.Errorf("the person is asked\n%s", inbox)
			}
			first := shell("I write it.", writes)
			if begins == 1 {
				first = after("your turn was cut short: the model's API does not accept the key", first)
			}
			s.model.Play(first,
				after("COMMITTED", shell("I report.", reports)),
				after("REPORTED", agentclitest.Turn{Say: "That was all.", Always: true}))
			s.lands(id)
			if begun := s.events("worker.started"); len(begun) != begins {
				t.Errorf("begun %d times, want %d", len(begun), begins)
			}
		})
	}
}

// TestEditsAndReportsByTool: with no more permission than to edit, an agent still
// reports, because the rig's tools are its to use. What it could not commit, the
// rig does.
func TestEditsAndReportsByTool(t *testing.T) {
	write := func(tool, path string) func(file string) agentclitest.Call {
		return func(file string) agentclitest.Call {
			return agentclitest.Use(tool, map[string]any{path: file, "content": "hello\n"})
		}
	}
	report := func(tool string) agentclitest.Call {
		return agentclitest.Use(tool, map[string]any{"summary": "wrote it"})
	}
	tests := []struct {
		client string
		write  func(file string) agentclitest.Call
		report agentclitest.Call
	}{
		{"claude", write("Write", "file_path"), report("mcp__chipset__done")},
		{"codex", func(string) agentclitest.Call { return agentclitest.Shell("echo hello > greeting.txt") },
			agentclitest.Call{Tool: "exec", Raw: `text(JSON.stringify(await tools.mcp__chipset__done({summary: "wrote it"})));`}},
		{"gemini", write("write_file", "file_path"), report("mcp_chipset_done")},
		{"opencode", write("write", "filePath"), report("chipset_done")},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			s := set(t, tt.client, "edit", "")
			id := s.add()
			s.model.Play(
				agentclitest.Turn{Say: "I write.", Calls: []agentclitest.Call{tt.write(filepath.Join(s.Dir, ".chipset/worktrees/polecat-alpha/greeting.txt"))}},
				agentclitest.Turn{Say: "I report.", Calls: []agentclitest.Call{tt.report}},
				agentclitest.Turn{Say: "That was all.", Always: true})
			s.lands(id)
			if done := s.events("retire.published"); len(done) != 1 || s.bead(id).Assignments != 1 {
				t.Errorf("reported %+v", done)
			}
			if resumed := s.events("worker.resumed"); len(resumed) > 0 {
				t.Errorf("resumed %+v", resumed)
			}
			if log := s.transcripts(); !strings.Contains(log, "This session is over") {
				t.Errorf("the tool's answer is not in\n%s", log)
			}
		})
	}
}
