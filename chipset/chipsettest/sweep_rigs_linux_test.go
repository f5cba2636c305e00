package chipsettest_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

// rigActs run the whole rig until it has nothing left to do. Whatever happens to
// it and to the disk, doing that again leads to the same end.
func rigActs() []act {
	up := invocation{args: []string{"up", "--until-idle", "--timeout", "2m"}, patience: time.Second}
	type judge = func(*chipsettest.World, view, int) error
	judged := func(name string, git judge, prepare func(b *bench)) act {
		return act{name: "rig-" + name, touches: []string{""}, repeatable: true, effect: merged, git: git,
			acks: func(o outcome) int { return count(o.code == 0) },
			prepare: func(b *bench) invocation {
				prepare(b)
				return up
			}}
	}
	rig := func(name string, prepare func(b *bench)) act { return judged(name, landed, prepare) }
	return []act{
		judged("content", landedWhole, func(b *bench) { b.world.Chipset("sling", writing(b, ""), alpha) }),
		judged("done", landedWhole, func(b *bench) {
			b.world.Chipset("sling", writing(b, "chipset done --summary written\nprintf 'after %s\\n' $CHIPSET_BEAD > made/after\n"), alpha)
		}),
		rig("work", func(b *bench) { b.world.Chipset("sling", mark(b), alpha) }),
		rig("merge", func(b *bench) {
			b.world.Chipset("sling", mark(b), alpha)
			p := b.world.Start("polecat", alpha)
			b.world.Eventually(time.Minute, "the merge request", func() bool {
				v := b.view()
				return v.object("hooks/"+alpha+".json").text("status") == "completed" && v.count("merge-queue", status("pending")) == 1
			})
			p.KillGroup()
			b.endAll()
		}),
	}
}

// mark adds a bead whose worker leaves one commit behind, without any fsync of its own.
func mark(b *bench) string {
	return strings.TrimSpace(b.world.Chipset("work", "add", "mark", "-d",
		"mkdir -p marks\necho ran >> marks/$CHIPSET_BEAD\ngit add -A\ngit commit -q -m \"mark $CHIPSET_BEAD\"\n"))
}

// writing adds a bead whose worker changes files, commits nothing and syncs nothing.
// What it does after that is more. The person works on another branch: what a fault
// tears in a checkout of the target is theirs to judge, and told to them.
func writing(b *bench, more string) string {
	b.world.Git("switch", "-q", "-c", "person")
	return strings.TrimSpace(b.world.Chipset("work", "add", "write", "-d",
		"mkdir -p made\nfor i in 1 2 3 4; do printf '%s in %s\\n' $CHIPSET_BEAD $i > made/$i; done\n"+
			"printf 'and %s\\n' $CHIPSET_BEAD >> README.md\n"+more))
}

// landedWhole wants on the target branch, byte for byte, what the worker wrote, and
// what it did not touch as it was.
func landedWhole(w *chipsettest.World, v view, _ int) error {
	for _, name := range v.below("work") {
		o := v.object(name)
		if o.text("status") != "merged" {
			continue
		}
		id := o.text("id")
		want := map[string]string{"README.md": "a repository\nand " + id + "\n"}
		for i := 1; i <= 4; i++ {
			want[fmt.Sprintf("made/%d", i)] = fmt.Sprintf("%s in %d\n", id, i)
		}
		for path, text := range want {
			if got, err := w.TryGit("cat-file", "blob", "main:"+path); err != nil || got != text {
				return fmt.Errorf("%s has landed as %q (%v), and its worker wrote %q", path, got, err, text)
			}
		}
		if got, err := w.TryGit("cat-file", "blob", "main:made/after"); err == nil && got != "after "+id+"\n" {
			return fmt.Errorf("made/after has landed as %q", got)
		}
	}
	return nil
}

// merged wants the bead and its one merge request merged, the reports sent once,
// and the hook free.
func merged(v view) (int, error) {
	// A worker that the disk failed is a failed attempt, and the next one reports for itself.
	told := map[string]int{}
	reports := 0
	for _, name := range v.below("mail/mayor") {
		o := v.object(name)
		kind := o.text("type")
		if kind != "completion_report" && kind != "merge_notification" {
			continue
		}
		reports++
		key := fmt.Sprint(kind, " of ", o.sub("ref")["assignment_id"])
		if told[key]++; told[key] > 1 {
			return 0, fmt.Errorf("two messages to the mayor: %s", key)
		}
	}
	if reports == 0 && v.count("work", status("merged")) > 0 {
		return 0, fmt.Errorf("a merged bead of which nothing was reported")
	}
	if n := v.count("merge-queue", status("merged")); n > 1 {
		return 0, fmt.Errorf("%d merge requests landed", n)
	}
	return count(v.count("work", status("merged")) == 1 && v.count("merge-queue", status("merged")) == 1 &&
		v.object("hooks/"+alpha+".json").text("status") == "empty"), nil
}

// landed wants on the target branch what the tree says has landed, and once.
func landed(w *chipsettest.World, v view, _ int) error {
	log, err := w.TryGit("log", "--format=%H %s", "main", "--")
	if err != nil {
		return fmt.Errorf("git log main: %w: %s", err, log)
	}
	for _, name := range v.below("work") {
		o := v.object(name)
		n := strings.Count(log, "mark "+o.text("id")+"\n")
		if n > 1 || n == 0 && o.text("status") == "merged" {
			return fmt.Errorf("bead %s is %s and stands %d times on main", o.text("id"), o.text("status"), n)
		}
	}
	for _, name := range v.below("merge-queue") {
		o := v.object(name)
		sha := o.text("merged_sha")
		if o.text("status") == "merged" && (sha == "" || !strings.Contains(log, sha)) {
			return fmt.Errorf("%s is merged as %q, which is not on main:\n%s", name, sha, log)
		}
		// What was submitted can be landed: the refinery takes exactly this commit.
		head := o.text("head")
		if out, err := w.TryGit("rev-list", "--objects", head, "--"); err != nil {
			return fmt.Errorf("%s: its head %s is not whole: %w: %s", name, head, err, out)
		}
		if out, err := w.TryGit("show", "--stat", head, "--"); err != nil {
			return fmt.Errorf("%s: its head %s can't be read: %w: %s", name, head, err, out)
		}
	}
	return nil
}
