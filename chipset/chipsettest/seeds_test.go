package chipsettest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// other is another program, in its own language, that shares files with a rig.
type other struct {
	*testing.T
	script string
	args   []string
}

func newOther(t *testing.T, script string, args ...string) *other {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		statetest.Missing(t, "python3, in which the other program is written, is not installed")
	}
	return &other{T: t, script: filepath.Join("testdata", "seeds", script), args: args}
}

func (o *other) run(args ...string) string {
	o.Helper()
	out, err := exec.Command("python3", append(append([]string{o.script}, o.args...), args...)...).CombinedOutput()
	if err != nil {
		o.Fatalf("%s %v: %v\n%s", o.script, args, err, out)
	}
	return string(out)
}

func (o *other) json(to any, args ...string) {
	o.Helper()
	if out := o.run(args...); json.Unmarshal([]byte(out), to) != nil {
		o.Fatalf("%v printed %s", args, out)
	}
}

// TestAnotherProgramSharesTheTree runs a program that writes mail, nudges and hooks
// without any field of this project, beside a rig, and reads what the rig writes.
func TestAnotherProgramSharesTheTree(t *testing.T) {
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 2, Test: "true"})
	tree := filepath.Join(w.Dir, ".chipset", "state")
	they := newOther(t, "channels.py", tree)
	id := w.Chipset("work", "add", "theirs", "-d", "echo theirs > theirs.txt")
	they.run("hang", "polecat-bravo", id, "theirs")
	up := w.Start("up")
	w.Eventually(patience, "the bead that they hung there lands", func() bool { return allFinished(w) })
	if b := w.Beads()[0]; b.Assignee != "polecat-bravo" || b.Assignments != 1 || w.Read("theirs.txt") != "theirs\n" {
		t.Errorf("%+v", b)
	}

	unfinished := []string{"mail/mayor/.msg.tmp", "mail/mayor/2026-03-05T10-30-00Z-polecat-alpha.json.tmp", "hooks/polecat-alpha.json.tmp",
		"agents/mayor.json.tmp", "nudge/polecat-bravo/latest.json.tmp", "work/" + id + ".json.tmp"}
	they.run(append([]string{"begin"}, unfinished...)...)

	they.run("nudge", "polecat-alpha", "mayor", "health_check")
	w.Eventually(patience, "the nudge is answered", func() bool {
		var n nudge.Nudge
		data, err := os.ReadFile(filepath.Join(tree, "nudge", "mayor", "latest.json"))
		return err == nil && json.Unmarshal(data, &n) == nil && n.From == "polecat-alpha" && n.Type == nudge.Response
	})
	var answer map[string]any
	if they.json(&answer, "latest", "mayor"); answer["message"] != "idle: hook empty" {
		t.Errorf("they read %v", answer)
	}

	they.run("send", "human", "polecat-alpha", "coordination", "A word", "to the person")
	w.Eventually(patience, "the person gets their mail", func() bool { return strings.Contains(w.Chipset("mail", "inbox"), "A word") })
	w.Chipset("mail", "send", "refinery", "--subject", "Back", "--body", "to them", "--type", "x-theirs")
	var got []mail.Message
	w.Chipset("mail", "send", "human", "--subject", "Shown", "--body", "b", "--as", "mayor")
	if they.json(&got, "unread", "human"); len(got) < 2 {
		t.Errorf("they read %+v", got)
	}
	they.run("read", "human")
	if out := w.Chipset("mail", "inbox"); strings.Contains(out, "A word") || strings.Contains(out, "Shown") {
		t.Errorf("they read and archived it, and it is still there:\n%s", out)
	}

	they.run("send", "polecat-alpha", "mayor", "shutdown_request", "Please end", "")
	w.Eventually(patience, "the request is answered", func() bool {
		found, _ := filepath.Glob(filepath.Join(tree, "mail", "mayor", "*-polecat-alpha.json"))
		for _, file := range found {
			if data, _ := os.ReadFile(file); strings.Contains(string(data), "shutdown_response") {
				return true
			}
		}
		return false
	})
	w.Eventually(patience, "it ends", func() bool { return strings.Contains(w.Chipset("status"), "4 of 5 running") })

	for _, file := range unfinished {
		if _, err := os.Stat(filepath.Join(tree, file)); err != nil {
			t.Errorf("what they have begun to write was taken away: %v", err)
		}
	}
	if kept, err := os.ReadDir(filepath.Join(tree, "quarantine")); err == nil && len(kept) > 0 {
		t.Errorf("in quarantine: %v", kept)
	}
	if out, code := w.Try("doctor"); code != 0 {
		t.Errorf("doctor:\n%s", out)
	}
	w.Chipset("down")
	<-up.Done()
}
