package execute

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// mill is a rig with a refinery and nobody else: the test plays the polecats,
// the mayor and the person.
type mill struct {
	testing.TB
	ctx  context.Context
	dir  string
	from string // the commit that branches begin at
	rig  *rig.Rig
	r    *Refinery
	now  time.Time
	said []string
	n    int
}

// patience bounds every wait for another process; it is reached only by a failure.
const patience = time.Minute

// newMill makes a repository whose definition has the given merge section, one
// line or more of YAML, or none at all for "".
func newMill(t testing.TB, merge string) *mill {
	t.Helper()
	m := &mill{TB: t, ctx: t.Context(), from: "main", dir: filepath.Join(gittest.Dir(t), "repo"), now: time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC)}
	m.must(os.MkdirAll(m.dir, 0o755))
	m.git(m.dir, "init", "-q", "-b", "main")
	m.git(m.dir, "config", "user.name", "Person")
	m.git(m.dir, "config", "user.email", "person@example.org")
	m.write(m.dir, "a.txt", "one\ntwo\nthree\n")
	m.write(m.dir, ".gitignore", ".chipset/\n")
	m.git(m.dir, "add", "-A")
	m.git(m.dir, "commit", "-q", "-m", "first")
	text := "agents:\n  agents:\n    - {name: mayor, role: mayor}\n    - {name: witness, role: witness}\n" +
		"    - {name: refinery, role: refinery}\n    - {name: polecat-alpha, role: polecat}\nrig: {name: mill, bead_prefix: gt}\n"
	if merge != "" {
		text += "merge:\n  " + strings.ReplaceAll(merge, "\n", "\n  ") + "\n"
	}
	m.write(m.dir, ".chipset/chipset.yaml", text)
	r, err := rig.Init(m.ctx, rig.InitOptions{Dir: m.dir, Clock: m.clock, Template: definition.TemplateOptions{}})
	m.must(err)
	m.rig = r
	letWrite(r)
	m.restart()
	return m
}

func (m *mill) clock() time.Time { return m.now }

// restart replaces the refinery's process, as after a crash.
func (m *mill) restart() {
	m.Helper()
	if m.r != nil {
		m.r.Close()
	}
	self, err := os.Executable()
	m.must(err)
	m.r = NewRefinery(Agent{Rig: m.rig, ID: m.rig.Refinery(), Session: state.NewSessionID(), Self: self,
		Say: func(format string, args ...any) { m.said = append(m.said, fmt.Sprintf(format, args...)) }})
	m.must(m.r.Recover(m.ctx))
	m.Cleanup(m.r.Close)
}

func (m *mill) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *mill) git(dir string, args ...string) string {
	m.Helper()
	return gittest.Run(m, dir, args...)
}

func (m *mill) write(dir, name, text string) {
	m.Helper()
	gittest.Write(m, dir, name, text)
}

// submit does what a polecat does for a bead: a branch with one commit, the
// bead done, the request in the queue.
func (m *mill) submit(files ...string) mergequeue.Request {
	m.Helper()
	m.n++
	b, err := m.rig.Beads.Add(bead.Bead{Title: fmt.Sprintf("bead %d", m.n)}, "gt", m.rig.Clock.Now())
	m.must(err)
	a := state.NewAssignmentID()
	base := m.git(m.dir, "rev-parse", m.from)
	branch := bead.BranchFor(b.ID, 1)
	work := filepath.Join(filepath.Dir(m.dir), fmt.Sprintf("work-%d", m.n))
	m.git(m.dir, "worktree", "add", "-q", "-b", branch, work, base)
	for i := 0; i+1 < len(files); i += 2 {
		m.write(work, files[i], files[i+1])
	}
	m.git(work, "add", "-A", "-f")
	m.git(work, "commit", "-q", "-m", string(b.ID))
	head := m.git(work, "rev-parse", "HEAD")
	m.git(m.dir, "worktree", "remove", "--force", work)
	m.setBead(b.ID, func(b *bead.Bead) {
		b.Status, b.AssignmentID, b.Assignee, b.Branch, b.Assignments = bead.Done, a, "polecat-alpha", branch, 1
	})
	q, err := m.rig.Queue.Submit(m.ctx, mergequeue.Request{BeadID: b.ID, AssignmentID: a, AgentID: "polecat-alpha",
		SourceBranch: branch, TargetBranch: "main", Head: head, Base: base}, m.rig.Clock.Now())
	m.must(err)
	return q
}

func (m *mill) setBead(id state.BeadID, change func(b *bead.Bead)) {
	m.Helper()
	_, err := m.rig.Beads.Update(m.ctx, string(id), func(b *bead.Bead) error { change(b); return nil })
	m.must(err)
}

func (m *mill) setRequest(id state.MergeID, change func(q *mergequeue.Request)) {
	m.Helper()
	_, err := m.rig.Queue.Update(m.ctx, string(id), func(q *mergequeue.Request) error { change(q); return nil })
	m.must(err)
}

func (m *mill) tick() Next {
	m.Helper()
	next, err := m.r.Tick(m.ctx)
	m.must(err)
	return next
}

// run ticks until no test runs any more.
func (m *mill) run() Next {
	m.Helper()
	next := m.tick()
	for m.r.test != nil {
		select {
		case <-m.r.Wake():
		case <-time.After(patience):
			m.Fatal("the test does not end")
		}
		next = m.tick()
	}
	return next
}

func (m *mill) request(q mergequeue.Request) mergequeue.Request {
	m.Helper()
	got, err := m.rig.Queue.Get(string(q.ID))
	m.must(err)
	return got
}

// is checks where a request and its bead stand.
func (m *mill) is(q mergequeue.Request, status mergequeue.Status, b bead.Status) mergequeue.Request {
	m.Helper()
	got := m.request(q)
	if got.Status != status {
		m.Fatalf("%s is %s (%s %s, waiting %q), not %s; said %q", q.ID, got.Status, got.Failure, got.Reason, got.Waiting, status, m.said)
	}
	of, err := m.rig.Beads.Get(string(q.BeadID))
	m.must(err)
	if of.Status != b {
		m.Fatalf("%s is %s, not %s", of.ID, of.Status, b)
	}
	return got
}

func (m *mill) tip() string { m.Helper(); return m.git(m.dir, "rev-parse", "main") }

// mail returns the subjects of an agent's mail of a type.
func (m *mill) mail(to state.AgentID, kind mail.Type) []string {
	m.Helper()
	all, bad, err := m.rig.Mailbox(to).List()
	m.must(err)
	if len(bad) > 0 {
		m.Fatal(bad)
	}
	var subjects []string
	for _, e := range all {
		if e.Type == kind {
			subjects = append(subjects, e.Subject)
		}
	}
	return subjects
}

// onlyMail checks that exactly one mail of a kind is there, and what it says.
func (m *mill) onlyMail(to state.AgentID, kind mail.Type, holds string) {
	m.Helper()
	got := m.mail(to, kind)
	if len(got) != 1 || !strings.Contains(got[0], holds) {
		m.Fatalf("mail of type %s to %s: %q, want one with %q", kind, to, got, holds)
	}
}

func (m *mill) landed(files ...string) {
	m.Helper()
	for _, name := range files {
		if out, err := exec.Command("git", "-C", m.dir, "cat-file", "-e", "main:"+name).CombinedOutput(); err != nil {
			m.Fatalf("%s is not on main: %s", name, out)
		}
	}
}

func (m *mill) later(d time.Duration) { m.now = m.now.Add(d) }

func (m *mill) phase(want refinery.Phase) {
	m.Helper()
	if m.r.state.Phase != want {
		m.Fatalf("phase %q, not %q (%+v)", m.r.state.Phase, want, m.r.state)
	}
}
