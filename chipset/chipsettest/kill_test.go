package chipsettest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/statetest"
)

// seed draws what CHIPSET_SEED says.
func seed(t *testing.T) *rand.Rand { return rand.New(rand.NewPCG(statetest.Seed(t), 0)) }

const killDefinition = `rig: {name: kills, bead_prefix: k, tick: 300ms, patrol: 300ms}
agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    - {name: polecat-pool, role: polecat, count: 3}
worker: {default: sh, grace: 1s}
merge: {target: main, test: "sh test.sh"}
gupp: {limits: {restart_cooldown: 0s}}
sandbox: off
`

// addBeads adds n beads, some of which wait for others. Each leaves its mark
// once: a file of its own with one line, and a line of a file that all share.
func addBeads(w *chipsettest.World, rnd *rand.Rand, n int) []string {
	var ids []string
	for i := range n {
		args := []string{"work", "add", fmt.Sprintf("mark %d", i), "-d", markScript(rnd)}
		if i > 2 && rnd.IntN(3) == 0 {
			args = append(args, "--blocked-by", ids[rnd.IntN(len(ids))])
		}
		ids = append(ids, strings.TrimSpace(w.Chipset(args...)))
	}
	return ids
}

func markScript(rnd *rand.Rand) string {
	return fmt.Sprintf("mkdir -p marks\necho ran >> marks/$CHIPSET_BEAD\nsleep 0.0%d\ngit add -A\ngit commit -q -m \"mark $CHIPSET_BEAD\"\n", rnd.IntN(10))
}

// roleCommands are the command lines that together run the rig of killDefinition.
func roleCommands() [][]string {
	return [][]string{{"mayor"}, {"witness"}, {"refinery"}, {"polecat", "polecat-alpha"}, {"polecat", "polecat-bravo"}, {"polecat", "polecat-charlie"}}
}

// TestKillsAtRandomMoments kills role processes and whole rigs with -9 at
// random moments, disturbs the checkout, starts again, and in the end holds
// everything from the outside against what must be true.
func TestKillsAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("kills real processes for several seconds")
	}
	bin := chipsettest.Build(t)
	rnd := seed(t)
	for _, mode := range []string{"target checked out", "target elsewhere", "in stacks"} {
		t.Run(mode, func(t *testing.T) {
			opts := chipsettest.Options{Definition: killDefinition}
			if mode == "in stacks" {
				opts.Definition = strings.Replace(killDefinition, "test: \"sh test.sh\"", "test: \"sh test.sh\", batch: 4", 1)
			}
			if mode == "target elsewhere" {
				opts.Checkout = "person"
			}
			w := chipsettest.New(t, bin, opts)
			w.Write("test.sh", "for f in marks/*; do [ ! -f \"$f\" ] || [ \"$(cat $f)\" = ran ] || { echo twice: $f; exit 1; }; done\n")
			w.Git("add", "test.sh")
			w.Git("commit", "-q", "-m", "test")
			if mode == "target elsewhere" {
				w.Git("branch", "-f", "main", "person")
			}
			ids := addBeads(w, rnd, statetest.Number(t, "CHIPSET_BEADS", 14))
			w.Write("person.txt", "one\ntwo, changed by the person\nthree\n")
			w.Write("untracked.txt", "the person's own\n")
			kills := rampage(t, w, rnd, statetest.Number(t, "CHIPSET_KILLS", 20))
			out, code := w.Try("up", "--until-idle", "--timeout", "120s")
			if code != 0 {
				t.Fatalf("after %d kills: up --until-idle: exit %d\n%s\n%s", kills, code, out, w.Chipset("status"))
			}
			statetest.Figures(t, "%d kills", kills)
			checkLanded(t, w, ids)
			if got := w.Read("person.txt"); !strings.Contains(got, "changed by the person") {
				t.Errorf("the person's change is gone: %q", got)
			}
			if got := w.Git("status", "--porcelain", "--", ":!.chipset"); got != " M person.txt\n?? untracked.txt" {
				t.Errorf("the checkout shows more than the person's changes:\n%s", got)
			}
			if got := w.Read("untracked.txt"); got != "the person's own\n" {
				t.Errorf("the person's file is gone: %q", got)
			}
		})
	}
}

// rampage starts and kills until the beads have landed or n kills are done.
func rampage(t *testing.T, w *chipsettest.World, rnd *rand.Rand, n int) int {
	roles := roleCommands()
	kills := 0
	for kills < n && !allFinished(w) {
		var running []*chipsettest.Process
		if rnd.IntN(2) == 0 {
			running = append(running, w.Start("up"))
		} else {
			for _, r := range roles {
				running = append(running, w.Start(r...))
			}
		}
		for range 1 + rnd.IntN(3) {
			// The moment of the kill is what is random here; nothing is waited for.
			time.Sleep(time.Duration(rnd.IntN(700)) * time.Millisecond)
			victim := running[rnd.IntN(len(running))]
			if rnd.IntN(2) == 0 {
				victim.Kill()
			} else {
				victim.KillGroup()
			}
			kills++
			if os.Getenv("CHIPSET_DISTURB") == "live" {
				disturb(w, rnd)
			}
			if len(running) > 1 && rnd.IntN(2) == 0 {
				running = append(running, w.Start("up"))
			}
		}
		for _, p := range running {
			if p.Running() {
				p.Kill()
				kills++
			}
		}
		disturb(w, rnd)
	}
	return kills
}

func allFinished(w *chipsettest.World) bool {
	for _, b := range w.Beads() {
		if !b.Status.Finished() {
			return false
		}
	}
	return true
}

// disturb does to the checkout what people do to it. By default it does so while
// nothing runs: two gits in one checkout at the same instant can get in each
// other's way without any rig. CHIPSET_DISTURB=live does it beside the rig.
func disturb(w *chipsettest.World, rnd *rand.Rand) {
	try := func(args ...string) bool {
		_, err := w.TryGit(args...)
		return err == nil
	}
	switch rnd.IntN(6) {
	case 0:
		try("stash", "-u") // may be cut short by a lock, with everything stashed already
		w.Eventually(patience, "git stash pop", func() bool {
			list, err := w.TryGit("stash", "list")
			return err == nil && (list == "" || try("stash", "pop"))
		})
	case 1:
		try("clean", "-fd", "-e", "untracked.txt") // that file is the person's
	case 2:
		if try("switch", "-q", "-C", "elsewhere") {
			try("commit", "-q", "--allow-empty", "-m", "elsewhere")
			w.Eventually(patience, "git switch -", func() bool { return try("switch", "-q", "-") })
		}
	}
}

// checkLanded holds files and git against what must be true.
func checkLanded(t *testing.T, w *chipsettest.World, ids []string) {
	t.Helper()
	status := map[string]bead.Status{}
	for _, b := range w.Beads() {
		status[string(b.ID)] = b.Status
	}
	for _, id := range ids {
		if status[id] != bead.Merged {
			t.Errorf("bead %s is %s", id, status[id])
		}
		if n := strings.Count(w.Git("log", "--format=%s", "main"), "mark "+id); n != 1 {
			t.Errorf("bead %s stands %d times on main", id, n)
		}
		if got := w.Git("show", "main:marks/"+id); got != "ran" {
			t.Errorf("marks/%s on main is %q", id, got)
		}
	}
	if merges := w.Git("log", "--merges", "--format=%h", "main"); merges != "" {
		t.Errorf("main is not linear: %s", merges)
	}
	landed := map[string]int{}
	for _, r := range w.Queue() {
		if r.Status == mergequeue.Merged {
			landed[string(r.BeadID)]++
		}
	}
	for id, n := range landed {
		if n != 1 {
			t.Errorf("bead %s has %d landed merge requests", id, n)
		}
	}
	checkMail(t, w)
	checkClean(t, w)
}

// checkMail looks into the mailboxes themselves: no message stands there twice,
// and every landed bead was reported and told of. (The assignment mail is sent
// after the hook is set; a polecat can be done before a killed mayor comes back
// to it, and then there is nothing left to assign.)
func checkMail(t *testing.T, w *chipsettest.World) {
	t.Helper()
	seen := map[string]string{}
	count := map[string]int{}
	files, err := filepath.Glob(filepath.Join(w.Dir, ".chipset", "state", "mail", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			From, To, ID, Type string
			Read               bool
			Ref                struct {
				BeadID string `json:"bead_id"`
			}
		}
		if err := json.Unmarshal(data, &m); err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if key := m.From + " " + m.To + " " + m.ID; m.ID != "" {
			if other, twice := seen[key]; twice {
				t.Errorf("delivered twice: %s and %s", other, f)
			}
			seen[key] = f
		}
		count[m.Type+" "+m.Ref.BeadID]++
	}
	for _, b := range w.Beads() {
		for _, kind := range []string{"completion_report", "merge_notification"} {
			if b.Status == bead.Merged && count[kind+" "+string(b.ID)] == 0 {
				t.Errorf("bead %s landed without a %s", b.ID, kind)
			}
		}
	}
}

func checkClean(t *testing.T, w *chipsettest.World) {
	t.Helper()
	if strays := w.Strays(); len(strays) > 0 {
		t.Errorf("left running: %v", strays)
	}
	if out, code := w.Try("doctor"); code != 0 {
		t.Errorf("doctor: exit %d\n%s", code, out)
	}
	dirs, err := os.ReadDir(filepath.Join(w.Dir, ".chipset", "worktrees"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		out, err := w.TryGit("-C", filepath.Join(w.Dir, ".chipset", "worktrees", d.Name()), "status", "--porcelain")
		if err != nil || out != "" {
			t.Errorf("worktree %s is not clean: %v %s", d.Name(), err, out)
		}
	}
}
