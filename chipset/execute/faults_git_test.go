package execute

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// land is a new process of the refinery that lands what is in the queue.
func (m *mill) land() (_ any, err error) {
	if m.rig, err = rig.Open(m.ctx, m.dir, m.clock); err != nil {
		return nil, err
	}
	r := NewRefinery(Agent{Rig: m.rig, ID: m.rig.Refinery(), Session: state.NewSessionID(), Self: m.r.Self, Say: func(string, ...any) {}})
	defer r.Close()
	if err := r.Recover(m.ctx); err != nil {
		return nil, err
	}
	for range 20 {
		next, err := r.Tick(m.ctx)
		for err == nil && r.test != nil {
			select {
			case <-r.Wake():
			case <-time.After(patience):
				return nil, errors.New("the test does not end")
			}
			next, err = r.Tick(m.ctx)
		}
		if err != nil || next.Conflict != nil {
			return nil, errors.Join(err, next.Conflict)
		}
		waiting, _, err := m.rig.Queue.Select(func(q *mergequeue.Request) bool {
			return q.Status == mergequeue.Pending || q.Status == mergequeue.Merging
		})
		if err != nil || len(waiting) == 0 {
			return nil, err
		}
		m.later(time.Minute)
	}
	return nil, errors.New("it waits")
}

// standing is what the queue and the target hold.
func (m *mill) standing() string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	all, bad, err := m.rig.Queue.Queue()
	m.must(err)
	if len(bad) > 0 {
		m.Error(bad)
	}
	for i := range all {
		q := &all[i]
		b, err := m.rig.Beads.Get(string(q.BeadID))
		m.must(err)
		say("%d %s %s %q, bead %s, landed %s", q.Seq, q.Status, q.Failure, q.Waiting, b.Status, tree(m, q.MergedSHA))
	}
	say("main %s\n%s", tree(m, "main"), m.git(m.dir, "log", "--format=%an %T", "main"))
	if m.rig.Def.Merge.Remote != "" {
		say("remote %s", m.git(m.dir, "--git-dir=.git/remote", "log", "--format=%an %T", "main"))
	}
	say("checkout %s", m.git(m.dir, "status", "--porcelain", "--branch"))
	for _, to := range []state.AgentID{"mayor", state.Human} {
		letters, bad, err := m.rig.Mailbox(to).List()
		m.must(err)
		if len(bad) > 0 {
			m.Error(bad)
		}
		for i := range letters {
			say("%s for %s: %s", letters[i].Type, to, letters[i].Subject)
		}
	}
	return regexp.MustCompile(`\b[0-9a-f]{10}\b`).ReplaceAllString(strings.Join(out, "\n"), "COMMIT") // a rebase done again makes another
}

func tree(m *mill, revision string) string {
	if revision == "" {
		return "nothing"
	}
	return m.git(m.dir, "rev-parse", revision+"^{tree}")
}

// Whichever git is killed, and whichever call on a file of the state fails, while requests are landed, each lands once and whole, or its
// failure is told once, as without the fault.
func TestRefineryFaultsOfGit(t *testing.T) {
	t.Setenv("TMPDIR", gittest.Dir(t)) // where nothing waits for a disk
	faults, refusals := gittest.NewFaults(t), &gittest.Refusals{Within: "/execute/"}
	for name, c := range map[string]struct {
		merge   string
		prepare func(m *mill)
	}{
		"a batch": {"batch: 3\ntest: \"true\"", func(m *mill) {
			m.submit("one.txt", "1\n")
			m.submit("two.txt", "2\n")
		}},
		"one that conflicts": {`test: "true"`, func(m *mill) {
			m.submit("a.txt", "mine\n")
			m.submit("a.txt", "theirs\n")
		}},
		"over a remote": {"test: \"true\"\nremote: origin", func(m *mill) {
			remote := filepath.Join(m.dir, ".git", "remote")
			m.git(m.dir, "init", "-q", "--bare", "-b", "main", remote)
			m.git(m.dir, "remote", "add", "origin", remote)
			m.git(m.dir, "push", "-q", "origin", "main")
			m.submit("one.txt", "1\n")
			m.submit("two.txt", "2\n")
		}},
		"one alone":       {`test: "true"`, func(m *mill) { m.submit("one.txt", "1\n") }},
		"one that is red": {`test: "test ! -e red.txt"`, func(m *mill) { m.submit("red.txt", "1\n") }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMill(t, c.merge)
			c.prepare(m)
			m.r.Close()
			p := gittest.Play{World: m.dir, Do: m.land, Standing: m.standing}
			if name == "one alone" {
				refusals.Sweep(t, p, ".chipset/state")
				return
			}
			faults.Sweep(t, p)
			if name != "a batch" {
				return // the files are the same
			}
			gittest.Spoil(t, p, ".chipset/state", func(file string) bool {
				return path.Base(file) == "rig.json" || strings.Contains(file, "/merge-queue") || strings.Contains(file, "/mail") || strings.Contains(file, "/agents")
			})
		})
	}
}
