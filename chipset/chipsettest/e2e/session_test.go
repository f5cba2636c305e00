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
	inbox := s.Chipset("mail", "inbox", "mayor")
	for _, subject := range []string{"BY-COMMAND", "BY-TOOL"} {
		found := false
		for _, line := range strings.Split(inbox, "\n") {
			found = found || strings.Contains(line, subject) && strings.Contains(line, "claude")
		}
		if !found {
			t.Errorf("%s is not from claude in\n%s", subject, inbox)
		}
	}
}
