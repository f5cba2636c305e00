package chipsettest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
)

// check holds files and git against what must be true, from the outside.
func (s *soak) check() {
	s.t.Helper()
	checkLanded(s.t, s.World, s.beads)
	for _, b := range s.Beads() {
		if b.Status != bead.Merged {
			s.t.Errorf("bead %s is %s", b.ID, b.Status)
		}
	}
	s.checkMail()
	s.checkTested()
	s.checkStory()
	s.Try("audit", "commit")
	out, code := s.Try("audit", "verify")
	if code != 0 {
		s.t.Errorf("audit verify: exit %d\n%s", code, out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	s.t.Log(lines[len(lines)-1])
}

// checkMail: every message whose name was printed stands in its mailbox or archive, with the
// body it was sent with.
func (s *soak) checkMail() {
	s.t.Helper()
	for at, body := range s.mail {
		to, name, _ := strings.Cut(at, "/")
		box := filepath.Join(s.Dir, ".chipset", "state", "mail", to)
		data, err := os.ReadFile(filepath.Join(box, name))
		if err != nil {
			data, err = os.ReadFile(filepath.Join(box, "archive", name))
		}
		var m mail.Message
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil || m.Body != body {
			s.t.Errorf("acknowledged mail to %s, %s: %v, body %q instead of %q", to, name, err, m.Body, body)
		}
	}
}

// checkTested: no commit came to the target without a green test of its very tree.
func (s *soak) checkTested() {
	s.t.Helper()
	words, err := os.ReadFile(s.green)
	if err != nil {
		s.t.Fatal(err)
	}
	green := map[string]bool{}
	for word := range strings.FieldsSeq(string(words)) {
		green[word] = true
	}
	for l := range strings.Lines(s.Git("log", "--format=%T %s", "main")) {
		tree, subject, _ := strings.Cut(strings.TrimSpace(l), " ")
		if strings.HasPrefix(subject, "mark ") && !green[tree] {
			s.t.Errorf("%q is on main, but no test was green for its tree %s", subject, tree)
		}
	}
}

// checkStory: however the story was cut by kills, it tells of no step twice that an
// assignment takes once.
func (s *soak) checkStory() {
	s.t.Helper()
	once := map[string]int{}
	for l := range strings.Lines(s.Chipset("log", "--type", "hook", "--json")) {
		var e event.Event
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			s.t.Errorf("the story: %v: %q", err, l)
			continue
		}
		switch e.Type {
		case "hook.set", "hook.activated", "hook.completed", "hook.cleared":
			once[e.Type+" "+string(e.Assignment)]++
		}
	}
	for step, n := range once {
		if n > 1 {
			s.t.Errorf("%s is told %d times", step, n)
		}
	}
	s.figures["hook steps told"] = len(once)
}
