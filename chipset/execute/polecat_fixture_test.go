package execute

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
)

// polecatPatience bounds every wait for a worker; it is reached only by a failure.
const polecatPatience = time.Minute

const alpha state.AgentID = "polecat-alpha"

const polecatRig = `agents:
  topology: mayor-witness-polecat
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: polecat-pool, role: polecat, count: 1}
rig: {name: test-rig, bead_prefix: tt, tick: 50ms}
gupp: {thresholds: {stall_detection: 400ms, nudge_interval: 200ms, restart_threshold: 800ms}}
worker: {default: sh, grace: 300ms, permissions: full}
merge: {target: main, test: "true"}
`

// kennel is a rig with a real repository and one polecat.
type kennel struct {
	t   *testing.T
	dir string
	rig *rig.Rig
	p   *Polecat
	// said is what the polecat has said.
	said []string
}

func newKennel(t *testing.T, more string) *kennel {
	t.Helper()
	var err error
	k := &kennel{t: t, dir: gittest.Repo(t)}
	k.write(".chipset/chipset.yaml", polecatRig+more)
	k.rig, err = rig.Init(t.Context(), rig.InitOptions{Dir: k.dir, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	letWrite(k.rig)
	k.start()
	return k
}

// letWrite lets workers and tests in their sandbox write to the test's own folders.
func letWrite(r *rig.Rig) { r.Def.Allow.Write = append(r.Def.Allow.Write, os.TempDir()) }

func (k *kennel) git(args ...string) string {
	k.t.Helper()
	return gittest.Run(k.t, k.dir, args...)
}

func (k *kennel) write(name, text string) {
	k.t.Helper()
	gittest.Write(k.t, k.dir, name, text)
}

// start begins a process's part: a new session, and Recover.
func (k *kennel) start() {
	k.t.Helper()
	self, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	p := NewPolecat(Agent{Rig: k.rig, ID: alpha, Session: state.NewSessionID(), Self: self, Say: k.say})
	k.p = p
	k.t.Cleanup(p.Close)
	if err := p.Rig.Agents.Begin(k.t.Context(), alpha, p.Session, p.Now()); err != nil {
		k.t.Fatal(err)
	}
	if err := p.Recover(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kennel) say(format string, args ...any) {
	k.said = append(k.said, fmt.Sprintf(format, args...))
	k.t.Log(k.said[len(k.said)-1])
}

// crash forgets the polecat without a word and begins another. Its worker is
// left to the next Recover, as after kill -9.
func (k *kennel) crash() {
	k.t.Helper()
	k.p.worker = nil
	k.start()
}

func (k *kennel) sling(script string, change ...func(*bead.Bead)) dispatch.Record {
	k.t.Helper()
	b := bead.Bead{Title: "a task", Description: script, CreatedBy: state.Human}
	for _, c := range change {
		c(&b)
	}
	b, err := k.rig.Beads.Add(b, "tt", k.rig.Clock.Now())
	if err != nil {
		k.t.Fatal(err)
	}
	return k.slingBead(b.ID)
}

func (k *kennel) slingBead(id state.BeadID) dispatch.Record {
	k.t.Helper()
	rec, err := carry.Sling(k.t.Context(), k.rig, id, alpha, "mayor")
	if err != nil {
		k.t.Fatal(err)
	}
	return rec
}

// until ticks until done, as the loop around a runner does.
func (k *kennel) until(what string, done func() bool) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), polecatPatience)
	defer cancel()
	for !done() {
		next, err := k.p.Tick(ctx)
		if err != nil {
			k.t.Fatalf("until %s: %v", what, err)
		}
		after := min(max(next.After, time.Millisecond), 50*time.Millisecond)
		if next.After == 0 {
			after = 50 * time.Millisecond
		}
		select {
		case <-k.p.Wake():
		case <-time.After(after):
		case <-ctx.Done():
			k.t.Fatalf("waited in vain until %s", what)
		}
	}
}

// admit lets what waits for a pause start again, as the mayor does once it is due.
func (k *kennel) admit() {
	k.t.Helper()
	pauses, err := k.rig.Pauses.InForce()
	if err != nil {
		k.t.Fatal(err)
	}
	for i := range pauses {
		p := &pauses[i]
		if len(p.Waiting) == 0 {
			continue
		}
		if err := k.rig.Pauses.Change(k.t.Context(), p.Scope, func(p *pause.Pause) error { return p.Admit(p.Waiting, k.rig.Clock.Now()) }); err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *kennel) bead(id state.BeadID) bead.Bead {
	k.t.Helper()
	b, err := k.rig.Beads.Get(string(id))
	if err != nil {
		k.t.Fatal(err)
	}
	return b
}

func (k *kennel) hook() hook.Hook {
	k.t.Helper()
	h, err := k.rig.Hooks.Get(string(alpha))
	if err != nil {
		k.t.Fatal(err)
	}
	return h
}

func (k *kennel) hookIs(s hook.Status) func() bool {
	return func() bool { return k.hook().Status == s }
}

func (k *kennel) record(a state.AssignmentID) retire.Record {
	k.t.Helper()
	rec, err := k.rig.Retire.Get(string(a))
	if err != nil {
		k.t.Fatal(err)
	}
	return rec
}

func (k *kennel) retired(a state.AssignmentID) func() bool {
	return func() bool {
		rec, err := k.rig.Retire.Get(string(a))
		return err == nil && rec.Stage.Final()
	}
}

// working is true once the worker has written the file in its worktree.
func (k *kennel) working(name string) func() bool {
	return func() bool {
		_, err := os.Stat(filepath.Join(k.rig.Worktree(alpha), name))
		return err == nil
	}
}

func (k *kennel) gitAt(dir string, args ...string) string {
	k.t.Helper()
	return gittest.Run(k.t, dir, args...)
}

// story are the texts of the events of a kind.
func (k *kennel) story(kind string) (texts []string) {
	k.t.Helper()
	events, _, _, err := k.rig.Events.Read(event.Position{}, time.Time{})
	k.fail(err)
	for i := range events {
		if events[i].Type == kind {
			texts = append(texts, events[i].Text)
		}
	}
	return texts
}
