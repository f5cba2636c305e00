package chipsettest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// TestSiege does each hostile act to a rig of its own, with the real binary. "make siege" runs it. To add an act,
// add a row to one of the siege_*_test.go files, and one to the table in docs/SECURITY.md.
//
// Of every act these must be true: nothing of the attacker's has run in the person's name, the rig comes to rest, an honest
// bead that was added after the hostile one lands.

// hostileAct is one row: what a worker, a branch or a repository does, and what must happen.
type hostileAct struct {
	name string
	// before readies the repository, before any worker runs. It may be nil.
	before func(s *siege)
	// worker is the script of the hostile bead; it runs in its worktree. $PROGRAM is the path of a program which tells
	// when the rig or the person runs it; a worker that runs it itself does no harm. $NEXT is the branch of the honest bead.
	worker string
	// limits are those of the definition, "" for the usual ones.
	limits string
	// refused is what the bead's reason says when its work must not land; "" means that it lands.
	refused string
	// told is what a mail to the person says, or "".
	told string
	// waits: neither lands nor fails before the person says so.
	waits bool
	// stopped: in a sandbox the worker can't even do it: its attempt fails.
	stopped bool
	// boxed: without a sandbox it succeeds.
	boxed bool
	// persons: the worker stands for the person, who is in no sandbox.
	persons bool
	// after checks more. It may be nil.
	after func(s *siege)
}

// siege is the rig of one act.
type siege struct {
	*testing.T
	*chipsettest.World
	// box is what the definition says of a sandbox.
	box string
	// evil and honest are the beads.
	evil, honest string
	// canary exists once the attacker's program ran outside of a worker.
	canary string
}

const siegeDefinition = `agents:
  topology: mayor-witness-polecat
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: 1}
rig: {name: siege, bead_prefix: sg}
worker: {default: sh}
merge: {target: main, test: "true", protect: [.claude/, .husky/, .github/workflows/]} # not .gitattributes: git must stand it
gupp: {limits: {max_attempts_per_bead: 1}}
`

// definition is that of the siege's rigs, with more sections behind it.
func (s *siege) definition(more ...string) string {
	return siegeDefinition + "sandbox: " + s.box + "\n" + strings.Join(more, "\n")
}

// newSiege makes a rig whose workers run in a kind of sandbox.
func newSiege(t *testing.T, bin, box string, more ...string) *siege {
	s := &siege{T: t, box: box}
	s.World = chipsettest.New(t, bin, chipsettest.Options{Definition: s.definition(more...)})
	return s
}

func TestSiege(t *testing.T) {
	bin := chipsettest.Build(t)
	for _, box := range []string{"off", "auto"} {
		t.Run("sandbox_"+box, func(t *testing.T) {
			if kind, missing := sandbox.Kind(); box != "off" && missing != "" {
				t.Skipf("this machine has no whole sandbox but %q: %s", kind, missing)
			}
			t.Parallel()
			for i, a := range slices.Concat(gitActs(), treeActs(), fileActs(), limitActs()) {
				if a.persons && box != "off" || a.boxed && box == "off" || !statetest.Drawn(t, i, 4) {
					continue
				}
				a.run(t, func(t *testing.T) { laySiege(newSiege(t, bin, box, "limits: {"+a.limits+"}"), a) })
			}
			for name, lay := range map[string]func(*siege){"speech": laySpeech, "prompts": layPrompts} {
				t.Run(name, func(t *testing.T) { t.Parallel(); lay(newSiege(t, bin, box, siegeLimits)) })
			}
			if box != "off" {
				t.Run("box", func(t *testing.T) { t.Parallel(); layBox(t, bin) })
				t.Run("network", func(t *testing.T) { t.Parallel(); layNetwork(t, bin) })
			}
		})
	}
	for _, a := range repositoryActs() {
		t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) { t.Parallel(); layRepository(newSiege(t, bin, "off"), a) })
	}
	for name, lay := range map[string]func(*siege){"clone": layClone, "pages": layPages} {
		t.Run(name, func(t *testing.T) { t.Parallel(); lay(newSiege(t, bin, "off")) })
	}
}

// run is a parallel subtest of the act.
func (a *hostileAct) run(t *testing.T, lay func(*testing.T)) {
	t.Run(strings.ReplaceAll(a.name, " ", "_"), func(t *testing.T) {
		t.Parallel()
		lay(t)
	})
}

// laySiege does one act, and judges what came of it.
func laySiege(s *siege, a hostileAct) {
	t := s.T
	dir := t.TempDir()
	s.canary = filepath.Join(dir, "canary")
	program := filepath.Join(dir, "program")
	text := fmt.Sprintf("#!/bin/sh\n[ -n \"$CHIPSET_SESSION\" ] || echo \"$0 $*\" >> '%s'\n[ -t 0 ] || cat\n", s.canary)
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	if a.before != nil {
		a.before(s)
	}
	s.honest = s.Chipset("work", "add", "honest", "-p", "P3", "-d", "echo honest > honest.txt")
	s.evil = s.Chipset("work", "add", "evil", "-p", "P1", "-d", fmt.Sprintf("PROGRAM='%s' MAIN='%s' NEXT=polecat/%s\n%s", program, s.Dir, s.honest, a.worker))
	begun := time.Now()
	out, code := s.Try("up", "--until-idle", "--timeout", "100s")
	if code != 0 && code != 7 { // 7: a bead waits for the person
		t.Fatalf("up --until-idle: exit %d after %s\n%s\n%s", code, time.Since(begun), out, s.Chipset("status"))
	}
	if strings.Contains(out, " has been paused since ") {
		t.Errorf("the honest bead had to wait:\n%s", out)
	}
	if a.stopped && s.box != "off" {
		a = hostileAct{refused: "failed: exit code"}
	}
	s.judge(a)
	if a.after != nil {
		a.after(s)
	}
	if t.Failed() {
		story, _ := s.Try("why", s.evil)
		t.Logf("%s\n%s", out, story)
	}
}

// judge holds what must be true after every act.
func (s *siege) judge(a hostileAct) {
	s.Helper()
	if ran, err := os.ReadFile(s.canary); err == nil {
		s.Errorf("a program of the attacker ran: %s", ran)
	}
	if got := s.Git("-c", "advice.graftFileDeprecated=false", "show", "main:honest.txt"); got != "honest" {
		s.Errorf("the honest bead did not land: %q", got)
	}
	status := s.bead(s.evil).Status
	story, _ := s.Try("why", s.evil)
	switch {
	case a.waits:
		if status != bead.Done {
			s.Errorf("the bead is %s, and not waiting", status)
		}
	case a.refused == "":
		if status != bead.Merged {
			s.Errorf("the bead is %s", status)
		}
	case status == bead.Merged || !strings.Contains(story, a.refused):
		s.Errorf("the bead is %s: its story does not say %q", status, a.refused)
	}
	if inbox, _ := s.Try("mail", "inbox", "--as", string(state.Human)); a.told != "" && !strings.Contains(inbox, a.told) {
		s.Errorf("the person was not told %q:\n%s", a.told, inbox)
	}
}

func (s *siege) bead(id string) bead.Bead {
	s.Helper()
	for _, b := range s.Beads() {
		if string(b.ID) == id {
			return b
		}
	}
	s.Fatalf("no bead %s", id)
	return bead.Bead{}
}
