package execute

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/retire"
)

// beside is a rig in which a person's own session has been given a bead.
type beside struct {
	*kennel
	id   state.AgentID
	bead state.BeadID
}

func newBeside(t *testing.T, more string) *beside {
	t.Helper()
	k := newKennel(t, more)
	k.write(".env", "of the person")
	id, err := actor.Crew(t.Context(), k.rig, "claude", "claude")
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.rig.Beads.Add(bead.Bead{Title: "a task", CreatedBy: state.Human}, "tt", k.rig.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &beside{kennel: k, id: id, bead: b.ID}
	if _, err := carry.Sling(t.Context(), k.rig, b.ID, id, state.Human); err != nil {
		t.Fatal(err)
	}
	s.begin()
	s.until("the session has it", s.given)
	return s
}

// begin begins a process, as after kill -9 of the one before.
func (s *beside) begin() {
	s.t.Helper()
	s.p = NewPolecat(Agent{Rig: s.rig, ID: s.id, Session: state.NewSessionID(), Say: s.say})
	s.t.Cleanup(s.p.Close)
	if err := s.p.Recover(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *beside) given() bool { return s.p.given.BeadID == s.bead }

// change rewrites the record of the worktree.
func (s *beside) change(change func(*carry.Worktree)) {
	s.t.Helper()
	use, known := carry.ReadWorktree(s.rig, s.id)
	if !known {
		s.t.Fatal("nothing says whose the worktree is")
	}
	change(&use)
	if err := carry.WriteWorktree(s.rig, use); err != nil {
		s.t.Fatal(err)
	}
}

// told are the subjects of what the session was written.
func (s *beside) told() []string {
	s.t.Helper()
	unread, _, err := s.rig.Mailbox(s.id).Unread()
	if err != nil {
		s.t.Fatal(err)
	}
	var subjects []string
	for _, e := range unread {
		subjects = append(subjects, e.Subject+"\n"+e.Body)
	}
	return subjects
}

func (s *beside) file(name string) string {
	data, _ := os.ReadFile(filepath.Join(s.rig.Worktree(s.id), name))
	return string(data)
}

// saved is what is saved of a file of an attempt that did not come to its end.
func (s *beside) saved(name string) string {
	s.t.Helper()
	text := ""
	for _, ref := range strings.Fields(s.git("for-each-ref", "--format=%(refname)", "refs/chipset/salvage/")) {
		text += s.git("show", ref+":"+name)
	}
	return text
}

// TestBesideKeepsItsWorktree: whatever becomes of the process between two steps, the session is told once, and what it has written since
// stays as it is.
func TestBesideKeepsItsWorktree(t *testing.T) {
	s := newBeside(t, "worktree: {copy: [.env]}\n")
	work := s.rig.Worktree(s.id)
	if told := s.told(); len(told) != 1 || !strings.Contains(told[0], string(s.bead)+" is yours: a task") || !strings.Contains(told[0], work) {
		t.Fatalf("told %q", told)
	}
	if h, _ := s.rig.Hooks.Get(string(s.id)); h.Status != hook.Active || s.kennel.bead(s.bead).Status != bead.InProgress {
		t.Errorf("hook %s, bead %s", h.Status, s.kennel.bead(s.bead).Status)
	}
	if a, err := s.rig.Agents.Get(string(s.id)); err != nil || a.Status != "active" {
		t.Errorf("the session's status is %s, %v", a.Status, err)
	}
	gittest.Write(t, work, "mine.txt", "mine")
	gittest.Write(t, work, ".env", "of the session")
	s.begin()
	s.until("it has it again", s.given)
	if s.file("mine.txt") != "mine" || s.file(".env") != "of the session" || len(s.told()) != 1 {
		t.Errorf("mine.txt %q, .env %q, told %q", s.file("mine.txt"), s.file(".env"), s.told())
	}

	// Killed after the mail and before the record of it: it is not told twice, and the worktree is furnished.
	s.change(func(w *carry.Worktree) { w.Ready = false })
	s.begin()
	s.until("it has it again", s.given)
	if s.file("mine.txt") != "mine" || s.file(".env") != "of the person" || len(s.told()) != 1 {
		t.Errorf("mine.txt %q, .env %q, told %q", s.file("mine.txt"), s.file(".env"), s.told())
	}
}

// TestBesideLosesNothing: where its worktree is gone or nobody knows whose it is, what can be saved is saved.
func TestBesideLosesNothing(t *testing.T) {
	t.Run("gone", func(t *testing.T) {
		s := newBeside(t, "")
		work := s.rig.Worktree(s.id)
		gittest.Write(t, work, "mine.txt", "mine")
		gittest.Run(t, work, "add", "mine.txt")
		gittest.Run(t, work, "-c", "user.name=me", "-c", "user.email=me@example.org", "commit", "-qm", "mine")
		if err := os.RemoveAll(work); err != nil {
			t.Fatal(err)
		}
		s.begin()
		s.until("it has another", s.given)
		if told := s.told(); len(told) != 2 || !strings.Contains(told[1], "refs/chipset/salvage/") || s.saved("mine.txt") != "mine" {
			t.Errorf("told %q, saved %q", told, s.saved("mine.txt"))
		}
	})
	t.Run("unknown", func(t *testing.T) {
		s := newBeside(t, "")
		gittest.Write(t, s.rig.Worktree(s.id), "mine.txt", "mine")
		if err := carry.ForgetWorktree(s.rig, s.id); err != nil {
			t.Fatal(err)
		}
		s.begin()
		s.until("it has another", s.given)
		if s.saved("mine.txt") != "mine" {
			t.Error("what it had written is lost")
		}
	})
	t.Run("taken away while nobody ran", func(t *testing.T) {
		s := newBeside(t, "")
		gittest.Write(t, s.rig.Worktree(s.id), "mine.txt", "mine")
		if _, err := carry.Unsling(t.Context(), s.rig, s.bead, state.Human); err != nil {
			t.Fatal(err)
		}
		s.begin()
		if told := s.told(); !strings.Contains(told[len(told)-1], "was taken from you") || s.saved("mine.txt") != "mine" || s.file("mine.txt") != "" {
			t.Errorf("told %q, saved %q", told, s.saved("mine.txt"))
		}
	})
}

// TestBesideRetires: what the session reports is carried out, also what it reported while no process ran.
func TestBesideRetires(t *testing.T) {
	s := newBeside(t, "")
	gittest.Write(t, s.rig.Worktree(s.id), "mine.txt", "mine")
	me := &actor.Actor{Rig: s.rig, ID: s.id}
	rec, err := me.Verdict(t.Context(), retire.Done, "wrote it", "")
	if err != nil {
		t.Fatal(err)
	}
	s.begin()
	if rec = s.record(rec.AssignmentID); rec.Stage != retire.Released || s.kennel.bead(s.bead).Status != bead.Done {
		t.Fatalf("%s, the bead is %s", rec.Stage, s.kennel.bead(s.bead).Status)
	}
	if got := s.git("show", rec.Branch+":mine.txt"); got != "mine" {
		t.Errorf("the branch holds %q", got)
	}
	if told := s.told(); len(told) > 0 {
		t.Errorf("the next session hears about work that is over: %q", told)
	}
	if letters, _, err := s.rig.Mailbox("mayor").Unread(); err != nil || len(letters) != 1 || letters[0].From != s.id {
		t.Errorf("the mayor was told %v, %v", letters, err)
	}
}
