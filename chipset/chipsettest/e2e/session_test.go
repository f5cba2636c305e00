package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli/agentclitest"
)

// TestOwnSession: with the plugin a person's own Claude Code knows the rig, and is an
// agent of its own in it, whether a command speaks or a tool.
func TestOwnSession(t *testing.T) {
	s := set(t, "claude", "full", "",
		shell("I look and write.", "chipset mail send mayor -s BY-COMMAND && echo SENT"),
		after("SENT", agentclitest.Turn{Say: "I use the tool.", Calls: []agentclitest.Call{
			agentclitest.Use("mcp__plugin_chipset_chipset__mail_send", map[string]any{"to": "mayor", "subject": "BY-TOOL", "body": "x"})}}),
		agentclitest.Turn{Say: "That was all.", Always: true})
	s.Chipset("mail", "send", "human", "-s", "MAIL-FOR-THE-PERSON", "--as", "mayor")
	claude := filepath.Join(os.Getenv("CHIPSET_E2E"), "claude")
	dir := filepath.Join(t.TempDir(), "plugin")
	s.Chipset("plugin", "install", "claude", "--to", dir)
	for _, checked := range []string{dir, filepath.Join(dir, "chipset")} {
		if out, err := s.Command(claude, "plugin", "validate", checked).CombinedOutput(); err != nil {
			t.Errorf("claude plugin validate %s: %v\n%s", checked, err, out)
		}
	}
	client := s.Command(claude, "-p", "Say hello to the mayor.", "--plugin-dir", filepath.Join(dir, "chipset"), "--permission-mode", "bypassPermissions")
	client.Env = append(client.Env, "PATH="+filepath.Dir(os.Getenv(envBinary))+":"+os.Getenv("CHIPSET_E2E")+":"+os.Getenv("PATH"))
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("claude: %v\n%s", err, out)
	}
	if r := s.request(0); !r.Has("you are claude, one of the crew", "MAIL-FOR-THE-PERSON") {
		t.Errorf("it began with\n%s", r.Text)
	}
	s.mailFrom("claude")
}

// TestOwnCodex: a person's own Codex, once the plugin is turned on. Nothing of it is left when it is uninstalled.
func TestOwnCodex(t *testing.T) {
	s := set(t, "codex", "full", "",
		shell("I look and write.", "chipset mail send mayor -s BY-COMMAND && echo SENT"),
		after("SENT", agentclitest.Turn{Say: "I use the tool.", Calls: []agentclitest.Call{
			{Tool: "exec", Raw: `text(JSON.stringify(await tools.mcp__chipset__mail_send({to: "mayor", subject: "BY-TOOL", body: "x"})));`}}}),
		agentclitest.Turn{Say: "That was all.", Always: true})
	s.Chipset("mail", "send", "human", "-s", "MAIL-FOR-THE-PERSON", "--as", "mayor")
	s.Chipset("plugin", "install", "codex", "--enable")
	client := s.Command(filepath.Join(os.Getenv("CHIPSET_E2E"), "codex"), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
		"--dangerously-bypass-approvals-and-sandbox", "-c", "allow_login_shell=false", "Say hello to the mayor.")
	client.Env = append(client.Env, "PATH="+filepath.Dir(os.Getenv(envBinary))+":"+os.Getenv("CHIPSET_E2E")+":"+os.Getenv("PATH"))
	if out, err := client.CombinedOutput(); err != nil {
		t.Fatalf("codex: %v\n%s", err, out)
	}
	if r := s.request(0); !r.Has("you are codex, one of the crew", "MAIL-FOR-THE-PERSON") {
		t.Errorf("it began with\n%s", r.Text)
	}
	s.mailFrom("codex")
	s.Chipset("plugin", "uninstall", "codex")
	if _, err := os.Stat(filepath.Join(s.home, ".codex/hooks.json")); !os.IsNotExist(err) {
		t.Errorf("the hooks are left: %v", err)
	}
	if config, err := os.ReadFile(filepath.Join(s.home, ".codex/config.toml")); err != nil || strings.Contains(string(config), "mcp_servers") || !strings.Contains(string(config), "stand-in") {
		t.Errorf("the settings are %s, %v", config, err)
	}
}

// TestOwnOpencode: a person's own opencode with the plugin: its commands and tools speak as the session, mail wakes it
// while it is idle, once for each message, and work on its hook keeps it going.
func TestOwnOpencode(t *testing.T) {
	nudged := make(chan struct{})
	s := set(t, "opencode", "full", "",
		agentclitest.Turn{Has: []string{"NUDGE-TEXT"}, Say: "I was nudged.", Seen: nudged},
		shell("I look and write.", "chipset mail send mayor -s BY-COMMAND && echo SENT"),
		after("SENT", agentclitest.Turn{Say: "I use the tool.", Calls: []agentclitest.Call{
			agentclitest.Use("chipset_mail_send", map[string]any{"to": "mayor", "subject": "BY-TOOL", "body": "x"})}}),
		agentclitest.Turn{Lacks: []string{"MAIL-FOR-THE-SESSION"}, Say: "I am idle.", Always: true},
		agentclitest.Turn{Has: []string{"MAIL-FOR-THE-SESSION"}, Say: "I was woken.", Always: true})
	s.Chipset("mail", "send", "human", "-s", "MAIL-FOR-THE-PERSON", "--as", "mayor")
	s.Chipset("plugin", "install", "opencode", "--enable")
	term := s.screen("env", "PATH="+filepath.Dir(os.Getenv(envBinary))+":"+os.Getenv("CHIPSET_E2E")+":"+os.Getenv("PATH"),
		"opencode", "--prompt", "Say hello to the mayor.")
	term.until("I am idle.")
	if r := s.request(0); !r.Has("you are opencode, one of the crew", "MAIL-FOR-THE-PERSON") {
		t.Errorf("it began with\n%s", r.Text)
	}
	s.mailFrom("opencode")
	asked := len(s.model.Requests())
	s.Chipset("mail", "send", "opencode", "-s", "MAIL-FOR-THE-SESSION", "--as", "mayor")
	term.until("I was woken.")
	s.Chipset("nudge", "send", "opencode", "--type", "sync_request", "-m", "NUDGE-TEXT", "--as", "mayor")
	<-nudged
	term.until("I was nudged.")
	if now := len(s.model.Requests()); now != asked+2 {
		t.Errorf("one message and one nudge were %d requests", now-asked)
	}
	term.keys("C-c", "C-c")
	s.Chipset("plugin", "uninstall", "opencode")
	if _, err := os.Stat(filepath.Join(s.home, ".config/opencode/plugin/chipset.js")); !os.IsNotExist(err) {
		t.Errorf("the plugin is left: %v", err)
	}
}

// mailFrom fails the test unless the session has written to the mayor by command and by tool.
func (s *stage) mailFrom(session string) {
	s.t.Helper()
	inbox := s.Chipset("mail", "inbox", "mayor")
	for _, subject := range []string{"BY-COMMAND", "BY-TOOL"} {
		found := false
		for _, line := range strings.Split(inbox, "\n") {
			found = found || strings.Contains(line, subject) && strings.Contains(line, session)
		}
		if !found {
			s.t.Errorf("%s is not from %s in\n%s", subject, session, inbox)
		}
	}
}

// TestIdleSessions: mail and a nudge wake a session that a person has open, each once, in which nothing happens: before
// its first prompt, where its hooks run by then, and after a turn. When the client ends, or is killed, nothing is left.
func TestIdleSessions(t *testing.T) {
	tests := []struct {
		client, ready string
		args          []string
		// early: it asks its hooks before its first prompt.
		early bool
	}{
		{"claude", "bypass permissions", []string{"--dangerously-skip-permissions"}, true},
		{"codex", "? for shortcuts", []string{"--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.client, func(t *testing.T) {
			s := set(t, tt.client, "full", "",
				agentclitest.Turn{Has: []string{"NUDGE-TEXT"}, Say: "I was nudged.", Always: true},
				agentclitest.Turn{Has: []string{"MAIL-TWO"}, Say: "I was woken again.", Always: true},
				agentclitest.Turn{Has: []string{"MAIL-ONE"}, Say: "I was woken.", Always: true},
				agentclitest.Turn{Say: "I am idle.", Always: true})
			s.onboarded()
			s.Chipset("plugin", "install", tt.client, "--enable")
			term := s.screen(append([]string{"env", "PATH=" + filepath.Dir(os.Getenv(envBinary)) + ":" + os.Getenv("CHIPSET_E2E") + ":" + os.Getenv("PATH"), tt.client}, tt.args...)...)
			term.until(tt.ready)
			if !tt.early {
				term.keys("-l", "Hello.")
				term.until("Hello.")
				term.enter("I am idle.")
			}
			s.awaitMember(tt.client)
			send := func(subject string) { s.Chipset("mail", "send", tt.client, "-s", subject, "--as", "mayor") }
			send("MAIL-ONE")
			term.until("I was woken.")
			send("MAIL-TWO")
			term.until("I was woken again.")
			s.Chipset("nudge", "send", tt.client, "--type", "sync_request", "-m", "NUDGE-TEXT", "--as", "mayor")
			term.until("I was nudged.")
			turns := map[string]bool{}
			for _, r := range s.model.Requests() {
				if !strings.Contains(r.Last, "task title") { // which Codex asks for by itself
					turns[r.Last] = true
				}
			}
			want := 3
			if !tt.early {
				want++
			}
			if len(turns) > want {
				t.Errorf("%d turns, want %d", len(turns), want)
			}
			if injected, seen := len(s.events("mail.injected")), len(s.events("mail.seen")); injected != 2 || seen != 2 {
				t.Errorf("%d messages are recorded as injected, %d as seen", injected, seen)
			}
			if tt.early { // its end can be told from a kill: hooks that it started outlive it then
				pid := strings.TrimSpace(term.tmux("display-message", "-p", "-t", "x", "#{pane_pid}"))
				if err := s.Command("kill", "-9", pid).Run(); err != nil {
					t.Fatal(err)
				}
			} else {
				term.leave(nil)
			}
			s.noneWaits()
		})
	}
}

// awaitMember waits until the session waits for news.
func (s *stage) awaitMember(client string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(s.Dir, ".chipset/run/clients/*/memory.json"))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), `"waits"`) {
				return
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no session of %s waits", client)
		}
	}
}

// noneWaits waits until no hook of a session runs any more.
func (s *stage) noneWaits() {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		out, err := s.Command("ps", "-eo", "args").Output()
		if err != nil {
			s.t.Fatal(err)
		}
		if !strings.Contains(string(out), os.Getenv(envBinary)+" client-hook") {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("a hook is left:\n%s", out)
		}
	}
}

// TestOwnBead: a session of a person's own takes a bead, and is woken by the mail that says where its worktree is. It works
// there and ends it, and what it committed lands.
func TestOwnBead(t *testing.T) {
	s := set(t, "claude", "full", "")
	id := s.Chipset("work", "add", "Write the greeting", "-d", "Put ASSIGNED-TEXT into greeting.txt")
	worktree := filepath.Join(s.Dir, ".chipset/worktrees/claude")
	s.model.Play(
		agentclitest.Turn{Has: []string{"TAKE-ONE"}, Lacks: []string{"CLAIMED-IT"}, Say: "I take it.", Calls: []agentclitest.Call{
			agentclitest.Shell("chipset work claim " + id + " && printf 'CLAIMED-%s' IT")}},
		agentclitest.Turn{Has: []string{"REPORTED"}, Say: "That was all.", Always: true},
		agentclitest.Turn{Has: []string{"COMMITTED"}, Say: "I report.", Calls: []agentclitest.Call{agentclitest.Shell(reports)}},
		agentclitest.Turn{Has: []string{"ASSIGNED-TEXT"}, Say: "I write it.", Calls: []agentclitest.Call{agentclitest.Shell("cd '" + worktree + "' && " + writes)}},
		agentclitest.Turn{Has: []string{"CLAIMED-IT", id + " is yours", worktree}, Say: "I read it.", Calls: []agentclitest.Call{agentclitest.Shell("chipset work show " + id)}},
		agentclitest.Turn{Say: "I wait for my worktree.", Always: true})
	s.onboarded()
	s.Chipset("plugin", "install", "claude", "--enable")
	term := s.screen("env", "PATH="+filepath.Dir(os.Getenv(envBinary))+":"+os.Getenv("CHIPSET_E2E")+":"+os.Getenv("PATH"), "claude", "--dangerously-skip-permissions")
	term.until("bypass permissions")
	term.keys("-l", "TAKE-ONE")
	term.until("TAKE-ONE")
	term.enter("I wait for my worktree.")
	up := s.Start("up", "--timeout", upTime)
	term.until("That was all.")
	s.Chipset("down")
	<-up.Done()
	s.lands(id)
	if b := s.bead(id); b.Attempts != 0 || b.Assignments != 1 {
		t.Errorf("%d attempts charged, %d assignments", b.Attempts, b.Assignments)
	}
	term.leave(nil)
	s.noneWaits()
}
