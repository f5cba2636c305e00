package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/handoff"
	"github.com/gastown-chipset/chipset/state/retire"
)

const deadSession state.SessionID = "ses-dead"

// dead leaves a worktree as a session does whose process was killed: with a commit, a file
// that is staged, and one that git does not know.
func (k *kennel) dead() state.AssignmentID {
	k.t.Helper()
	rec := k.sling("")
	must := func(err error) {
		k.t.Helper()
		if err != nil {
			k.t.Fatal(err)
		}
	}
	ctx, now := k.t.Context(), k.rig.Clock.Now()
	_, err := k.rig.Hooks.Activate(ctx, alpha, rec.AssignmentID, deadSession, now)
	must(err)
	_, err = k.rig.Beads.Update(ctx, string(rec.BeadID), func(b *bead.Bead) error { return b.Become(bead.InProgress, "", now) })
	must(err)
	_, base, err := carry.TargetTip(ctx, k.rig)
	must(err)
	tree := k.rig.Worktree(alpha)
	must(k.rig.Git.PrepareWorktree(ctx, tree, git.Branch(rec.Branch), base))
	must(carry.WriteWorktree(k.rig, carry.Worktree{AgentID: alpha, AssignmentID: rec.AssignmentID, BeadID: rec.BeadID, Session: deadSession,
		Base: base, Branch: rec.Branch}))
	for _, name := range []string{"committed.txt", "staged.txt"} {
		gittest.Write(k.t, tree, name, name+"\n")
		k.gitAt(tree, "add", name)
		if name == "committed.txt" {
			k.gitAt(tree, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "one")
		}
	}
	gittest.Write(k.t, tree, "unknown.txt", "unknown\n")
	must(k.rig.Tree.MkdirAll(handoff.Dir))
	return rec.AssignmentID
}

// process is a new one of the polecat, which does something.
func (k *kennel) process(do func(p *Polecat) error) (any, error) {
	ctx := k.t.Context()
	r, err := rig.Open(ctx, k.dir, time.Now)
	if err != nil {
		return nil, err
	}
	p := NewPolecat(Agent{Rig: r, ID: alpha, Session: state.NewSessionID(), Self: k.p.Self, Say: func(string, ...any) {}})
	defer p.Close()
	return nil, do(p)
}

// live clears up, and goes on until its hook has nothing for it to do.
func live(ctx context.Context, p *Polecat) error {
	if err := p.Recover(ctx); err != nil {
		return err
	}
	for range 20 {
		next, err := p.Tick(ctx)
		if err != nil || next.Conflict != nil {
			return errors.Join(err, next.Conflict)
		}
		h, err := p.Rig.Hooks.Get(string(alpha))
		if err != nil || h.Status != hook.Pending && h.Status != hook.Active {
			return err
		}
	}
	return errors.New("it waits")
}

// standing is what is left of the dead session, and what its hand-off says.
func (k *kennel) standing(a state.AssignmentID) string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	kept := strings.Fields(k.git("log", "--all", "--format=", "--name-only"))
	slices.Sort(kept)
	say("in commits: %v", slices.Compact(kept))
	notes, bad, err := k.rig.Handoffs.List(alpha)
	if err != nil || len(bad) > 0 {
		k.t.Error(bad, err)
	}
	for i := range notes {
		if n := &notes[i]; n.Session == deadSession {
			say("hand-off of %s on %s", n.AssignmentID, n.Salvage)
		}
	}
	if rec, err := k.rig.Retire.Get(string(a)); err == nil && rec.Session == deadSession {
		say("its end is %s, %s, saved on %q", rec.Outcome, rec.Stage, rec.Salvage)
		say("its bead is %s", k.bead(rec.BeadID).Status)
		queue, _, err := k.rig.Queue.Queue()
		if err != nil {
			k.t.Error(err)
		}
		for i := range queue {
			say("request of %s: %s", queue[i].AssignmentID, strings.ReplaceAll(k.git("ls-tree", "-r", "--name-only", queue[i].Head), "\n", " "))
		}
	}
	say("the hook is %s", k.hook().Status)
	return strings.Join(out, "\n")
}

// Whichever git is killed, and whichever file can't be read, while a new process of a polecat
// clears up after a session that died: what the session left is saved, and told as its own.
func TestPolecatFaultsOfGit(t *testing.T) {
	t.Setenv("TMPDIR", gittest.Dir(t)) // where nothing waits for a disk
	faults, refusals := gittest.NewFaults(t), &gittest.Refusals{Within: "/execute/"}
	scenes := map[string]func(k *kennel, a state.AssignmentID){
		"begun anew": func(k *kennel, _ state.AssignmentID) {
			_, err := k.rig.Beads.Update(k.t.Context(), string(k.hook().WorkItem.BeadID), func(b *bead.Bead) error { b.Branch = "-"; return nil })
			if err != nil { // its next session ends as it starts
				k.t.Fatal(err)
			}
		},
		"taken away": func(k *kennel, a state.AssignmentID) {
			if _, err := carry.Unsling(k.t.Context(), k.rig, k.hook().WorkItem.BeadID, "mayor"); err != nil {
				k.t.Fatal(err)
			}
		},
		"taken away under way": func(k *kennel, a state.AssignmentID) {
			if _, err := carry.Unsling(k.t.Context(), k.rig, k.hook().WorkItem.BeadID, "mayor"); err != nil {
				k.t.Fatal(err)
			}
		},
		"reported": func(k *kennel, a state.AssignmentID) {
			_, won, err := carry.Publish(k.t.Context(), k.rig, retire.Record{AssignmentID: a, AgentID: alpha, Session: deadSession, Outcome: retire.Done})
			if err != nil || !won {
				k.t.Fatal(won, err)
			}
		},
	}
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		t.Run(name, func(t *testing.T) {
			k := newKennel(t, "")
			a := k.dead()
			item := *k.hook().WorkItem
			scenes[name](k, a)
			k.p.Close()
			do := func() (any, error) { return k.process(func(p *Polecat) error { return live(t.Context(), p) }) }
			if name == "taken away under way" {
				do = func() (any, error) {
					return k.process(func(p *Polecat) error {
						return p.do(t.Context(), polecat.Abandon{Assignment: a, Bead: item.BeadID, Session: item.Session})
					})
				}
			}
			p := gittest.Play{World: k.dir, Do: do, Standing: func() string { return k.standing(a) }}
			faults.Sweep(t, p)
			if name != "begun anew" {
				refusals.Sweep(t, p, ".chipset/state")
			}
			gittest.Spoil(t, p, ".chipset/"+string(handoff.Dir), func(string) bool { return false })
		})
	}
}
