package chipsettest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
)

// args are hostile wherever a command wants a name.
func args(canary string) []string {
	return []string{
		"..", ".", "../../../etc/passwd", "/etc/passwd", canary, "a/b", "archive", "latest", "from", "-rf", "--upload-pack=touch " + canary,
		"UPPER", "gt-ümlaut", "new\nline", "bad\xff", strings.Repeat("a", 65), strings.Repeat("a", 100000), "$(touch " + canary + ".x)", "gt-*",
		"\x1b[31mred", "HEAD", "refs/heads/main", "@{-1}", "%s%n",
	}
}

// commands take such a name; -- keeps it from being an option of chipset's own.
func commands(name string) [][]string {
	return [][]string{
		{"work", "show", "--", name}, {"work", "edit", "--title", "t", "--", name}, {"work", "cancel", "--", name}, {"work", "reopen", "--", name},
		{"work", "add", "t", "--blocked-by=" + name}, {"why", "--", name}, {"hook", "show", "--", name}, {"mail", "inbox", "--", name},
		{"mail", "send", "--from=human", "--to=" + name, "--subject=s", "--body=b"}, {"mail", "read", "--agent=mayor", "--", name},
		{"queue", "show", "--", name}, {"queue", "drop", "--", name}, {"convoy", "show", "--", name}, {"convoy", "create", "c", "--", name},
		{"sling", "--", name, "polecat-alpha"}, {"sling", "--", "gt-aaaaa", name}, {"unsling", "--", name}, {"nudge", "send", "--from=human", "--to=" + name, "--type=abort"},
		{"polecat", "--", name}, {"prime", "--agent=" + name}, {"handoff", "show", "--", name},
	}
}

// No name that a command is given hangs it, crashes it, succeeds, or reaches
// anything outside of the tree.
func TestHostileArguments(t *testing.T) {
	h := newHostile(t, chipsettest.Build(t))
	h.keepSafe()
	before := h.listing()
	rows := 0
	for _, name := range args(h.canary) {
		for _, c := range commands(name) {
			rows++
			out, errs, code := h.run(c...)
			if code == 0 || strings.Contains(errs+out, "\x1b") {
				t.Errorf("chipset %.200q: exit %d\n%s%s", c, code, out, errs)
			}
		}
	}
	if now := h.listing(); now != before {
		t.Errorf("the tree was\n%s\nand is\n%s", before, now)
	}
	h.checkSafe()
	t.Logf("%d hostile arguments", rows)
}

// listing is what lies in the tree but for its story.
func (h *hostile) listing() string {
	h.t.Helper()
	var all []string
	h.must(filepath.WalkDir(h.state(), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.Contains(path, "/events/") {
			all = append(all, h.rel(path))
		}
		return err
	}))
	return strings.Join(all, "\n")
}

// What git would take for an option never reaches it as one: not from a bead, a
// request, a record or the definition.
func TestHostileNamesForGit(t *testing.T) {
	bin := chipsettest.Build(t)
	const when = `"2026-03-05T10:00:00.000000000Z"`
	for _, branch := range []string{"-rf", "--upload-pack=touch $CANARY", "--exec=touch $CANARY", "--output=$CANARY", "a..b", "@{-1}", "HEAD", "refs/heads/main", "x\ny", "a b", "~1", ""} {
		t.Run(branch, func(t *testing.T) { hostileBranch(t, bin, branch, when) })
	}
}

func hostileBranch(t *testing.T, bin, branch, when string) {
	t.Parallel()
	h := newHostile(t, bin)
	h.keepSafe()
	b := strings.ReplaceAll(branch, "$CANARY", h.canary+".x")
	quoted := strings.ReplaceAll(strings.ReplaceAll(b, `"`, `\"`), "\n", `\n`)
	h.put(h.state("work", "gt-aaaaa.json"), `{"id":"gt-aaaaa","title":"t","status":"done","priority":"P1","assignment_id":"as-1","assignee":"polecat-alpha","assignments":1,"branch":"`+quoted+`","created_at":`+when+`,"updated_at":`+when+`,"gen":1}`)
	h.put(h.state("merge-queue", "mr-gt-aaaaa.json"), `{"id":"mr-gt-aaaaa","seq":1,"bead_id":"gt-aaaaa","assignment_id":"as-1","agent_id":"polecat-alpha","source_branch":"`+quoted+`","target_branch":"main","head":"1111111111111111111111111111111111111111","status":"pending","attempts":0,"submitted_at":`+when+`,"updated_at":`+when+`}`)
	h.put(h.state("retire", "as-1.json"), `{"assignment_id":"as-1","agent_id":"polecat-alpha","bead_id":"gt-aaaaa","outcome":"done","stage":"published","branch":"`+quoted+`","salvage":"`+quoted+`","created_at":`+when+`,"updated_at":`+when+`}`)
	h.doctor()
	h.doctor("--fix")
	h.run("why", "gt-aaaaa")
	h.run("status")
	h.run("up", "--until-idle", "--timeout", "2s")
	h.checkSafe()
}
