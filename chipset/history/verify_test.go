package history

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// TestTampering goes through git: a history of legal steps is proved, each illegal one is named
// with its commit, and what comes after it is not.
func TestTampering(t *testing.T) {
	y := newYard(t)
	name, err := y.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "witness", Type: mail.Coordination, Subject: "s", Body: "sound"})
	must(t, err)
	y.commit()
	for range 15 {
		for range 5 {
			y.act()
		}
		y.commit()
	}
	if report := y.verify(""); report.Commits < 10 || report.Changes < 20 {
		t.Errorf("proved too little: %+v", report)
	}
	p := "mail/witness/" + string(name)
	if there, err := y.Tree.Exists(state.StateDir.Join(p)); err != nil || !there {
		p = "mail/witness/archive/" + string(name)
	}
	y.plant(p, strings.Replace(y.tree()[p], "sound", "forged", 1))
	forged := y.commit()
	report := y.verify("", p)
	if v := report.Violations[0]; v.Commit != forged.Commit || !strings.Contains(v.Reason, `field "body" differs`) {
		t.Errorf("%+v", v)
	}
	h, err := y.Hooks.Get("mayor")
	must(t, err)
	h.Gen, h.Status, h.WorkItem = h.Gen+1, hook.Completed, &hook.WorkItem{AssignmentID: "as-none", BeadID: "gt-abc12", AssignedAt: y.Clock.Now()}
	must(t, y.Hooks.Put("mayor", h))
	y.commit()
	must(t, os.Remove(y.Tree.Abs(state.StateDir.Join(p))))
	last := y.commit()
	report = y.verify("", p, "hooks/mayor.json", p)
	if v := report.Violations[2]; v.Commit != last.Commit || v.Reason != "it was removed" {
		t.Errorf("%+v", v)
	}
}

// TestOwnBranch: a person commits the tree on a branch of their own, with branches and merges.
func TestOwnBranch(t *testing.T) {
	y := newYard(t)
	add := func(message string) {
		y.git("add", "-f", ".chipset/state")
		y.git("commit", "-q", "--allow-empty", "-m", message)
	}
	y.git("commit", "-q", "--allow-empty", "-m", "before there was a tree")
	add("first")
	y.git("branch", "side")
	for range 6 {
		y.act()
		y.act()
		add("more")
	}
	// A branch with an older tree comes in; the merge keeps the newer one.
	side := y.git("commit-tree", "side^{tree}", "-p", "side", "-m", "on the side")
	y.git("branch", "-f", "side", side)
	y.git("merge", "-q", "-s", "ours", "--no-ff", "-m", "merge", "side")
	y.act()
	add("after the merge")
	if report := y.verify("main"); report.Commits < 8 {
		t.Errorf("proved too little: %+v", report)
	}
	before := y.git("rev-parse", "main")
	// A merge that takes the older tree takes messages back.
	bad := y.git("commit-tree", "side^{tree}", "-p", "main", "-p", "side", "-m", "the wrong side")
	report, err := Verify(t.Context(), y.Rig, bad)
	must(t, err)
	if len(report.Violations) == 0 || string(report.Violations[0].Commit) != bad || string(report.Violations[0].Parent) != before {
		t.Errorf("the wrong side of a merge: %+v", report.Violations)
	}
	y.git("rm", "-r", "-q", "--cached", ".chipset/state")
	y.git("commit", "-q", "-m", "gone")
	report, err = Verify(t.Context(), y.Rig, "main")
	must(t, err)
	if len(report.Violations) != 1 || report.Violations[0].Path != path.Clean(".chipset/state") {
		t.Errorf("without the tree: %+v", report.Violations)
	}
}

// TestReplacedHistory: what git was told to show instead of a commit proves nothing.
func TestReplacedHistory(t *testing.T) {
	y := newYard(t)
	first := y.commit()
	y.act()
	y.plant("events/2026-03-05.jsonl", "{}\n")
	forged := y.commit()
	y.git("replace", string(forged.Commit), string(first.Commit))
	y.verify("", "events/2026-03-05.jsonl")
}

// TestShallowHistory: what a shallow clone does not show is not proved.
func TestShallowHistory(t *testing.T) {
	y := newYard(t)
	y.commit()
	_, err := y.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "witness", Type: mail.Coordination, Subject: "s", Body: "b"})
	must(t, err)
	tip := y.commit()
	y.verify("")
	must(t, os.WriteFile(filepath.Join(y.Git.CommonDir(), "shallow"), []byte(string(tip.Commit)+"\n"), 0o644))
	report, err := Verify(t.Context(), y.Rig, "")
	must(t, err)
	if len(report.Violations) != 1 || report.Violations[0].Commit != tip.Commit || !strings.Contains(report.Violations[0].Reason, "shallow") {
		t.Errorf("cut off at its tip: %+v", report)
	}
}

// TestLostContents: a snapshot of which a file can't be read any more proves nothing, also when it is the only one, and
// when no later one touched the file.
func TestLostContents(t *testing.T) {
	for name, lose := range map[string]func(object string){
		"gone":  func(object string) { must(t, os.Remove(object)) },
		"empty": func(object string) { spoil(t, object, nil) },
		"torn": func(object string) {
			whole, err := os.ReadFile(object)
			must(t, err)
			spoil(t, object, whole[:len(whole)-4])
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			first := y.commit()
			_, err := y.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "witness", Type: mail.Coordination, Subject: "s", Body: "b"})
			must(t, err)
			if name != "torn" { // once the only snapshot, else not the last
				y.commit()
			}
			y.verify("")
			blob := y.git("rev-parse", string(first.Commit)+":.chipset/state/hooks/mayor.json")
			lose(filepath.Join(y.Dir, ".git", "objects", blob[:2], blob[2:]))
			report := y.verify("", "hooks/mayor.json")
			if v := report.Violations[0]; v.Commit != first.Commit || !strings.Contains(v.Reason, "not in the repository any more") {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestLostFolder: neither can a folder be missing.
func TestLostFolder(t *testing.T) {
	y := newYard(t)
	first := y.commit()
	tree := y.git("rev-parse", string(first.Commit)+":.chipset/state/hooks")
	must(t, os.Remove(filepath.Join(y.Dir, ".git", "objects", tree[:2], tree[2:])))
	report, err := Verify(t.Context(), y.Rig, "")
	must(t, err)
	if len(report.Violations) != 1 || report.Violations[0].Commit != first.Commit || !strings.Contains(report.Violations[0].Reason, "folder") {
		t.Errorf("%+v", report)
	}
}

// TestPackedContents: what lies in packs is there.
func TestPackedContents(t *testing.T) {
	y := newYard(t)
	y.commit()
	y.git("gc", "--quiet", "--prune=now")
	y.verify("")
}
