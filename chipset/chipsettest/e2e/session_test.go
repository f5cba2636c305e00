package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
