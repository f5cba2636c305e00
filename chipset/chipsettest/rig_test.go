package chipsettest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/statetest"
)

const patience = 60 * time.Second

// TestManyBeadsLandInOrder lets a rig do a pile of beads with dependencies.
func TestManyBeadsLandInOrder(t *testing.T) {
	t.Parallel()
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 4, Test: "sh test.sh"})
	w.Write("test.sh", "for f in marks/*; do [ ! -f \"$f\" ] || [ \"$(cat $f)\" = ran ] || exit 1; done\n")
	w.Git("add", "test.sh")
	w.Git("commit", "-q", "-m", "test")
	rnd := seed(t)
	ids := addBeads(w, rnd, statetest.Number(t, "CHIPSET_BEADS", 20))
	w.Chipset("up", "--until-idle", "--timeout", "120s")
	checkLanded(t, w, ids)
	position := map[string]int{}
	for i, subject := range strings.Split(w.Git("log", "--reverse", "--format=%s", "main"), "\n") {
		position[strings.TrimPrefix(subject, "mark ")] = i
	}
	for _, b := range w.Beads() {
		for _, dep := range b.BlockedBy {
			if position[string(dep)] >= position[string(b.ID)] {
				t.Errorf("%s landed before %s, which it waits for", b.ID, dep)
			}
		}
		if b.Assignments != 1 {
			t.Errorf("%s was slung %d times", b.ID, b.Assignments)
		}
	}
}

// TestRolesInTerminals runs each role in a process of its own, and ends them
// politely.
func TestRolesInTerminals(t *testing.T) {
	t.Parallel()
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 2, Test: "true"})
	var running []*chipsettest.Process
	for _, role := range [][]string{{"witness"}, {"refinery"}, {"polecat", "polecat-bravo"}, {"mayor"}} {
		running = append(running, w.Start(role...))
	}
	w.Eventually(patience, "the mayor runs", func() bool { return strings.Contains(w.Chipset("status"), "4 of 5 running") })
	if out, code := w.Try("mayor"); code != 4 || !strings.Contains(out, fmt.Sprint(running[3].Cmd.Process.Pid)) {
		t.Errorf("a second mayor: exit %d, want 4 and the pid of the first\n%s", code, out)
	}
	id := w.Chipset("work", "add", "one", "-d", "echo one > one.txt")
	w.Eventually(patience, id+" lands", func() bool { return allFinished(w) })
	if got := w.Read("one.txt"); got != "one\n" {
		t.Errorf("one.txt in the checkout is %q", got)
	}
	w.Chipset("down")
	for _, p := range running {
		select {
		case <-p.Done():
		case <-time.After(patience):
			t.Fatalf("%v runs after down\n%s", p.Cmd.Args, p.Output)
		}
		if code := p.Cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%v: exit %d\n%s", p.Cmd.Args, code, p.Output)
		}
	}
	checkClean(t, w)
}

// TestInterruptLeavesNothing ends a rig in the middle of a bead: at the second Ctrl-C, because what runs may
// finish after the first, or at TERM.
func TestInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 1, Test: "true"})
			w.Write(".chipset/chipset.yaml", strings.Replace(w.Read(".chipset/chipset.yaml"), "sandbox: auto", "sandbox: off", 1)) // its marks lie outside
			flag := filepath.Join(t.TempDir(), "go")
			id := w.Chipset("work", "add", "slow", "-d",
				fmt.Sprintf("echo ran >> mark\ntouch %s.seen\nwhile [ ! -f %s ]; do sleep 0.05; done\ngit add -A\ngit commit -q -m slow", flag, flag))
			p := w.Start("up")
			w.Eventually(patience, "the worker runs", func() bool { _, err := os.Stat(flag + ".seen"); return err == nil })
			p.Cmd.Process.Signal(sig)
			again := time.NewTicker(time.Second) // sooner it may count as the same one
			defer again.Stop()
			for signals := 1; p.Running(); {
				select {
				case <-p.Done():
				case <-again.C:
					if signals++; sig == syscall.SIGINT && signals == 2 {
						p.Cmd.Process.Signal(sig)
					}
					if time.Duration(signals)*time.Second > patience {
						t.Fatal("up does not end")
					}
				}
			}
			if code := p.Cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit %d, want 130\n%s", code, p.Output)
			}
			if strays := w.Strays(); len(strays) > 0 {
				t.Errorf("left running: %v", strays)
			}
			if err := os.WriteFile(flag, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			w.Chipset("up", "--until-idle", "--timeout", "60s")
			if got := w.Git("show", "main:mark"); got != "ran" {
				t.Errorf("the bead left %q, want one line: the first session's work must not count", got)
			}
			if b := w.Beads()[0]; b.Status != bead.Merged || b.Attempts+b.Restarts != 0 {
				t.Errorf("bead %s is %s after %s; an interrupted session charges nothing", id, b.Status, b.FailureCounts())
			}
			checkClean(t, w)
		})
	}
}

// TestWaitsForAPerson ends with exit 7 and the names of what waits.
func TestWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 2, Test: "true"})
	asks := w.Chipset("work", "add", "asks", "-d", "chipset block --reason 'which licence?'")
	behind := w.Chipset("work", "add", "behind", "-d", "echo x > x", "--blocked-by", asks)
	fine := w.Chipset("work", "add", "fine", "-d", "echo y > y")
	out, code := w.Try("up", "--until-idle", "--timeout", "60s")
	if code != 7 || !strings.Contains(out, asks) || !strings.Contains(out, behind) || strings.Contains(out, fine+" (") {
		t.Errorf("exit %d, want 7 naming %s and %s\n%s", code, asks, behind, out)
	}
	if got := w.Git("show", "main:y"); got != "y" {
		t.Errorf("what does not wait has not landed: %q", got)
	}
	mails := w.Chipset("mail", "inbox", "human")
	if strings.Count(mails, "which licence?") != 1 {
		t.Errorf("the person must be asked once:\n%s", mails)
	}
	w.Chipset("work", "edit", asks, "-d", "echo licensed > LICENCE")
	w.Chipset("work", "reopen", asks)
	w.Chipset("up", "--until-idle", "--timeout", "60s")
	if got := w.Git("show", "main:LICENCE"); got != "licensed" {
		t.Errorf("LICENCE on main is %q", got)
	}
}

// TestClassicDefinitionRuns runs a definition that has only the sections that
// existing chipset definitions have.
func TestClassicDefinitionRuns(t *testing.T) {
	t.Parallel()
	classic, err := os.ReadFile(filepath.Join("..", "definition", "testdata", "classic.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Definition: string(classic)})
	w.Chipset("validate")
	w.Chipset("work", "add", "one", "-d", "echo one > one.txt", "--worker", "sh")
	w.Chipset("up", "--until-idle", "--timeout", "60s")
	if got := w.Git("show", "main:one.txt"); got != "one" {
		t.Errorf("one.txt on main is %q", got)
	}
	checkClean(t, w)
}

// TestDemo plays the whole story.
func TestDemo(t *testing.T) {
	t.Parallel()
	w := chipsettest.New(t, chipsettest.Build(t), chipsettest.Options{Polecats: 1, Test: "true"})
	out := w.Chipset("demo")
	for _, part := range []string{"did not land (conflict)", "did not land (tests_failed)", "restart 1 of 3", "7 beads in", "everything is in order"} {
		if !strings.Contains(out, part) {
			t.Errorf("the story does not tell %q", part)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestWorkersFindThisBinary runs a rig from a binary of another name, in a
// folder with another chipset: its workers must speak to the one that runs.
func TestWorkersFindThisBinary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	odd := filepath.Join(dir, "chipset-for-linux")
	if err := os.Link(chipsettest.Build(t), odd); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chipset"), []byte("#!/bin/sh\nexit 99\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := chipsettest.New(t, odd, chipsettest.Options{Polecats: 1, Test: "true"})
	w.Chipset("work", "add", "one", "-d", "echo one > one.txt\nchipset done --summary fine")
	w.Chipset("up", "--until-idle", "--timeout", "60s")
	if got := w.Git("show", "main:one.txt"); got != "one" {
		t.Errorf("one.txt on main is %q", got)
	}
}
