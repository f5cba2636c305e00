package chipsettest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/chipsettest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
)

// wrong holds files and git against what must be true, from the outside.
func (s *soak) wrong() []string {
	s.t.Helper()
	var all []string
	for _, b := range s.Beads() {
		if b.Status != bead.Merged {
			all = append(all, fmt.Sprintf("bead %s is %s", b.ID, b.Status))
		}
	}
	all = append(all, s.lostMail()...)
	all = append(all, s.untested()...)
	all = append(all, s.toldTwice()...)
	return append(all, s.illegal()...)
}

// illegal is what the audit finds in the history that the rig itself has kept.
func (s *soak) illegal() []string {
	s.t.Helper()
	if out, code := s.Try("audit", "commit"); code != 0 {
		return []string{fmt.Sprintf("audit commit: exit %d\n%s", code, out)}
	}
	out, code := s.Try("audit", "verify")
	if code != 0 {
		return []string{fmt.Sprintf("audit verify: exit %d\n%s", code, out)}
	}
	s.t.Log(out)
	return nil
}

// lostMail: every message whose name was printed stands in its mailbox or archive, with the
// body it was sent with.
func (s *soak) lostMail() []string {
	var all []string
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
			all = append(all, fmt.Sprintf("acknowledged mail to %s, %s: %v, body %q instead of %q", to, name, err, m.Body, body))
		}
	}
	return all
}

// untested: no commit came to the target without a green test of its very tree.
func (s *soak) untested() []string {
	s.t.Helper()
	words, err := os.ReadFile(s.green)
	if err != nil {
		return []string{err.Error()}
	}
	green := map[string]bool{}
	for word := range strings.FieldsSeq(string(words)) {
		green[word] = true
	}
	var all []string
	for l := range strings.Lines(s.Git("log", "--format=%T %s", "main")) {
		tree, subject, _ := strings.Cut(strings.TrimSpace(l), " ")
		if strings.HasPrefix(subject, "mark ") && !green[tree] {
			all = append(all, fmt.Sprintf("%q is on main, but no test was green for its tree %s", subject, tree))
		}
	}
	return all
}

// toldTwice: however the story was cut by kills, it tells of no step twice that an
// assignment takes once.
func (s *soak) toldTwice() []string {
	s.t.Helper()
	var all []string
	once := map[string]int{}
	for l := range strings.Lines(s.Chipset("log", "--type", "hook", "--json")) {
		var e event.Event
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			all = append(all, fmt.Sprintf("the story: %v: %q", err, l))
			continue
		}
		switch e.Type {
		case "hook.set", "hook.activated", "hook.completed", "hook.cleared":
			once[e.Type+" "+string(e.Assignment)]++
		}
	}
	for step, n := range once {
		if n > 1 {
			all = append(all, fmt.Sprintf("%s is told %d times", step, n))
		}
	}
	s.figures["hook steps told"] = len(once)
	return all
}

// TestSoakSees: a soak that finds nothing proves something only if it finds what is there.
func TestSoakSees(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a whole rig")
	}
	s := newSoak(t, chipsettest.Build(t), seed(t))
	s.addBead()
	s.send()
	s.finish()
	if found := s.wrong(); len(found) > 0 {
		t.Fatalf("before anything was done: %v", found)
	}
	sees := func(what, text string) {
		t.Helper()
		found := s.wrong()
		for _, f := range found {
			if strings.Contains(f, text) {
				return
			}
		}
		t.Errorf("%s: found %q", what, found)
	}
	line := fmt.Sprintf("{\"assignment_id\":\"as-twice\",\"subject\":\"mayor\",\"time\":%q,\"type\":\"hook.set\"}\n", time.Now().UTC().Format(time.RFC3339))
	days, err := filepath.Glob(filepath.Join(s.Dir, ".chipset", "state", "events", "*.jsonl"))
	if err != nil || len(days) == 0 {
		t.Fatal(err, days)
	}
	f, err := os.OpenFile(days[len(days)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(line + line); err != nil {
		t.Fatal(err)
	}
	f.Close()
	sees("a step told twice", "hook.set as-twice is told 2 times")
	s.Git("commit", "-q", "--allow-empty", "-m", "mark by nobody")
	s.Write("untested", "x")
	s.Git("add", "untested")
	s.Git("commit", "-q", "-m", "mark untested")
	sees("a commit that no test saw", "\"mark untested\" is on main, but no test")
	for at := range s.mail {
		to, name, _ := strings.Cut(at, "/")
		if err := os.Remove(filepath.Join(s.Dir, ".chipset", "state", "mail", to, name)); err != nil {
			t.Fatal(err)
		}
	}
	sees("lost mail", "acknowledged mail to")
	sees("lost mail", "it was removed")
	s.addBead()
	sees("a bead that did not land", "is open")
}
