package carry

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	syscalls "github.com/gastown-chipset/chipset/state/statetest/refused"
)

// unspoilt names what is made again or done without: an agent that can't be read gets no
// mail, a request that can't be read is made once more.
func unspoilt(name string) bool {
	dir := path.Base(path.Dir(name))
	return name == ".chipset/state" || path.Base(name) == "rig.json" || dir == "agents" || dir == "merge-queue"
}

// A finish that a fault interrupts says so, and comes to the same when it is done once
// more: nothing of the work is lost, nothing is submitted twice.
func TestFaultsOfFinish(t *testing.T) {
	faults, refusals := gittest.NewFaults(t), &gittest.Refusals{Within: "/carry/"}
	for _, s := range scenes() {
		if !slices.Contains([]string{"done", "two lines of work", "failed", "taken away", "empty"}, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			a, rec := s.play(t)
			p := gittest.Play{World: a.dir, Do: func() (any, error) {
				r, err := rig.Open(t.Context(), a.dir, time.Now)
				if err != nil {
					return nil, err
				}
				now, err := r.Retire.Get(string(rec.AssignmentID))
				if err == nil {
					_, err = Finish(t.Context(), RetireDeps{Rig: r}, now)
				}
				return nil, err
			}, Standing: func() string {
				a.reopen()
				o := a.outcome()
				o.WorktreeClean = false // a worktree that is not left in order is, before it is used again
				return fmt.Sprintf("%+v", o)
			}}
			faults.Sweep(t, p)
			// A report to somebody who can't get mail is dropped.
			gittest.Spoil(t, p, ".chipset/state", func(name string) bool {
				return unspoilt(name) || strings.Contains(name, "/mail") || strings.Contains(name, "/agents")
			})
			refusals.Sweep(t, p, ".chipset/state")
		})
	}
}

func (y *yard) readable(bad int, err error) {
	y.Helper()
	if err != nil || bad > 0 {
		y.Errorf("%d can't be read, %v", bad, err)
	}
}

// standing is what a yard holds, without times and names that are made again each time.
func (y *yard) standing() string {
	r := y.another()
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	beads, bad, err := r.Beads.All()
	y.readable(len(bad), err)
	holder := map[state.AssignmentID]state.BeadID{"": "nothing"}
	for _, b := range beads {
		holder[b.AssignmentID] = b.ID
		say("bead %s %s %q of %s, convoy %t", b.ID, b.Status, b.CloseReason, b.Assignee, b.ConvoyID != "")
	}
	records, bad, err := r.Dispatch.All()
	y.readable(len(bad), err)
	for _, d := range records {
		say("dispatch %s %s to %s for %s", d.BeadID, d.Stage, d.AgentID, holder[d.AssignmentID])
	}
	queue, bad, err := r.Queue.Queue()
	y.readable(len(bad), err)
	for _, q := range queue {
		say("request %s %s %q", q.ID, q.Status, q.Waiting)
	}
	convoys, bad, err := r.Convoys.All()
	y.readable(len(bad), err)
	for _, c := range convoys {
		say("convoy %q of %v, %v, over %t", c.Name, c.BeadIDs, c.Progress, c.CompletedAt != nil)
	}
	for _, id := range []state.AgentID{alpha, bravo} {
		h, err := r.Hooks.Get(string(id))
		y.must(err)
		say("hook %s %s for %s", id, h.Status, holder[h.Assignment()])
		letters, bad, err := r.Mailbox(id).List()
		y.readable(len(bad), err)
		for _, m := range letters {
			say("mail for %s: %s %s", id, m.Type, m.Subject)
		}
	}
	return strings.Join(out, "\n")
}

// What a person or the mayor does to a bead is said to have failed when a file can't be
// read or written, and is whole when it is done once more.
func TestSpoiltFilesOfInterventions(t *testing.T) {
	y := newYard(t, "")
	free, landed := y.add(), y.add()
	y.become(landed, ways()[bead.Merged]...)
	hooked, as := y.slung(true)
	loose := y.add()
	y.become(loose, bead.Hooked)
	looseAs := y.bead(loose).AssignmentID
	blocked := y.add()
	y.become(blocked, ways()[bead.Blocked]...)
	half := y.add()
	_, err := (&carrier{Rig: y.Rig, step: stopAt(2, new([]string))}).sling(t.Context(), half, bravo, "mayor")
	if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	request := func(way ...mergequeue.Status) mergequeue.Request {
		id := y.add()
		y.become(id, ways()[bead.Done]...)
		b := y.bead(id)
		q, err := y.Queue.Submit(t.Context(), mergequeue.Request{BeadID: id, AssignmentID: b.AssignmentID, AgentID: alpha, SourceBranch: "polecat/" + string(id),
			TargetBranch: "main", Head: strings.Repeat("1", 40), Base: strings.Repeat("2", 40)}, y.now())
		y.must(err)
		for _, s := range way {
			_, err = y.Queue.Update(t.Context(), string(q.ID), func(q *mergequeue.Request) error { return q.Become(s, y.now()) })
			y.must(err)
		}
		return q
	}
	pending, queued, conflicted := request(), request(), request(mergequeue.Merging, mergequeue.Conflicted)
	sent := y.bead(queued.BeadID)
	dispatched := flow.NewDispatch(&sent, alpha, "mayor", queued.AssignmentID, y.now())
	dispatched.Stage = dispatch.Confirmed
	y.must(y.Dispatch.Reach(dispatched))
	ctx := t.Context()
	refusals := &gittest.Refusals{Within: "/carry/"}
	verbs := map[string]func(r *rig.Rig) error{
		"sling":   func(r *rig.Rig) error { return slungTo(Sling(ctx, r, free, bravo, "mayor")) },
		"unsling": func(r *rig.Rig) error { return done(Unsling(ctx, r, hooked, "mayor")) },
		"cancel":  func(r *rig.Rig) error { return Cancel(ctx, r, hooked, "no more", "human") },
		"send back what is queued": func(r *rig.Rig) error {
			return done(Move(ctx, r, flow.Rework(mayor.Reopen{Bead: queued.BeadID, Assignment: queued.AssignmentID, From: bead.Done, MR: queued.ID}, "mayor")))
		},
		"reopen": func(r *rig.Rig) error { return already(Reopen(ctx, r, blocked, "again", "human")) },
		"take back": func(r *rig.Rig) error {
			return TakeBack(ctx, r, mayor.TakeBack{Bead: loose, Assignment: looseAs, Agent: alpha}, "mayor")
		},
		"release":        func(r *rig.Rig) error { return ReleaseHook(ctx, r, alpha, as, "mayor") },
		"sling the half": func(r *rig.Rig) error { return slungTo(Sling(ctx, r, half, bravo, "mayor")) },
		"supersede":      func(r *rig.Rig) error { return Supersede(ctx, r, conflicted.ID, conflicted.BeadID, "mayor") },
		"retry":          func(r *rig.Rig) error { return done(Retry(ctx, r, conflicted.ID, "human")) },
		"drop":           func(r *rig.Rig) error { return done(Drop(ctx, r, pending.ID, "no", "human")) },
		"convoy": func(r *rig.Rig) error {
			return done(MakeConvoy(ctx, r, "human", "c", []state.BeadID{landed, free, free}))
		},
		"landed convoy": func(r *rig.Rig) error { return done(MakeConvoy(ctx, r, "human", "c", []state.BeadID{landed})) },
	}
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		do := verbs[name]
		t.Run(name, func(t *testing.T) {
			p := gittest.Play{World: y.Dir, Standing: y.standing, Do: func() (any, error) {
				r, err := rig.Open(ctx, y.Dir, time.Now)
				if err == nil {
					err = do(r)
				}
				return nil, err
			}}
			// What can't be read is not there, for these: the mayor frees the hook, and the sling begins again.
			gone := map[string]string{"cancel": "state/hooks", "unsling": "state/hooks", "release": "/hook", "sling the half": "/dispatch"}[name]
			without := func(file string) bool { return gone != "" && strings.Contains(file, gone) }
			gittest.Spoil(t, p, ".chipset/state", func(file string) bool { return unspoilt(file) || without(file) })
			gittest.Spoil(t, p, ".chipset/run/locks", without)
			p.Do = func() (any, error) {
				r, err := rig.Open(ctx, y.Dir, time.Now)
				if err == nil {
					err = already(do(r))
				}
				return nil, err
			}
			refusals.Sweep(t, p, ".chipset/state")
		})
	}
}

// TestConvoyNamesItsBeads: each bead names its convoy, once.
func TestConvoyNamesItsBeads(t *testing.T) {
	y := newYard(t, "")
	one, two := y.add(), y.add()
	c, err := MakeConvoy(t.Context(), y.Rig, "human", "c", []state.BeadID{one, two})
	y.must(err)
	for range 2 {
		for _, id := range []state.BeadID{one, two} {
			if b := y.bead(id); b.ConvoyID != c.ID || b.Gen != 2 {
				t.Errorf("%s is in convoy %q, changed %d times", id, b.ConvoyID, b.Gen)
			}
		}
		// One that is found may be visible alone, of a process that died.
		synced := ""
		for _, c := range syscalls.Calls(t, y.Dir, 0, func() { _, err = MakeConvoy(t.Context(), y.Rig, "human", "c", []state.BeadID{one, two}) }) {
			synced += c.What + "\n"
		}
		y.must(err)
		for _, dir := range []state.Path{convoy.Dir, bead.Dir} {
			if !strings.Contains(synced, "fsync "+rig.DirName+"/"+string(dir)+"\n") {
				t.Errorf("%s is not synced:\n%s", dir, synced)
			}
		}
	}
}

// TestConvoyOfLandedBeads: what has landed before counts, and a convoy of such beads alone is complete.
func TestConvoyOfLandedBeads(t *testing.T) {
	y := newYard(t, "")
	var landed []state.BeadID
	for range 3 {
		id := y.add()
		y.become(id, bead.Hooked, bead.InProgress, bead.Done, bead.Merged)
		landed = append(landed, id)
	}
	for _, c := range []struct {
		name     string
		beads    []state.BeadID
		progress float64
	}{{"some", []state.BeadID{landed[0], y.add()}, 0.5}, {"all", landed[1:], 1}} {
		made, err := MakeConvoy(t.Context(), y.Rig, "human", c.name, c.beads)
		y.must(err)
		if made.Progress != c.progress || (made.CompletedAt != nil) != (c.progress == 1) {
			t.Errorf("%s: progress %v, complete since %v", c.name, made.Progress, made.CompletedAt)
		}
	}
}

func done[T any](_ T, err error) error { return err }

// already takes what was done before it failed as done.
func already(err error) error {
	if errors.Is(err, state.ErrConflict) {
		return nil
	}
	return err
}

// slungTo takes a bead that is slung already as slung.
func slungTo(_ dispatch.Record, err error) error {
	var slung *AlreadySlung
	if errors.As(err, &slung) {
		return nil
	}
	return err
}
