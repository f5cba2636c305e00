package execute

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/git/gittest"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/spend"
)

// lying is what lies below a folder of the state: the names, and what the files say but for times.
func lying(t *testing.T, r *rig.Rig, dirs ...state.Path) string {
	t.Helper()
	var out []string
	for _, dir := range dirs {
		entries, err := r.Tree.List(dir)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			out = append(out, string(dir.Join(e.Name())))
		}
	}
	return strings.Join(out, "\n")
}

// content is what lies below a folder: folders, files with what they hold, links with where they lead.
func content(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := []byte(d.Type().String())
		switch {
		case d.Type().IsRegular():
			text, err = os.ReadFile(path)
		case d.Type()&fs.ModeSymlink != 0:
			var to string
			to, err = os.Readlink(path)
			text = []byte(to)
		}
		fmt.Fprintf(&out, "%s: %s\n", path, text)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return out.String()
}

// inForce are the pauses that hold something back, and the beads that wait for them.
func inForce(t *testing.T, r *rig.Rig) (out []string) {
	t.Helper()
	all, err := r.Pauses.InForce()
	if err != nil {
		t.Error(err)
	}
	for i := range all {
		out = append(out, fmt.Sprintf("%s is %s, %v wait", all[i].Scope, all[i].Status, all[i].Waiting))
	}
	return out
}

// TestCallsFailInPolecatSteps: whichever call on a file fails in a step of a polecat, the step says so or makes up for it, and the next try
// does everything.
func TestCallsFailInPolecatSteps(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]struct {
		// within names the files of which each call is tried.
		within string
		do     func(k *kennel, p *Polecat, item hook.WorkItem) (any, error)
		stands func(k *kennel, item hook.WorkItem) string
	}{
		"a worktree is made ready": {
			within: "/execute/polecat_worker",
			do: func(k *kennel, p *Polecat, item hook.WorkItem) (any, error) {
				b := k.bead(item.BeadID)
				return p.prepareWorktree(k.t.Context(), &b, item)
			},
			stands: func(k *kennel, _ hook.WorkItem) string {
				use, known := carry.ReadWorktree(k.rig, alpha)
				return fmt.Sprint(use, known, "\n", k.git("for-each-ref", "--format=%(refname)"), "\n", k.gitAt(k.rig.Worktree(alpha), "status", "--porcelain", "--branch"))
			},
		},
		"a worker is described": {
			within: "/execute/polecat_",
			do: func(k *kennel, p *Polecat, item hook.WorkItem) (any, error) {
				preset := agentcli.Preset{Name: "actor", Command: []string{"claude"}, Prompt: agentcli.PromptFile}
				run, err := agentcli.Build(preset, agentcli.PromptInput{Prompt: "do it", File: k.rig.Tree.Abs(promptFile(item.Session)), Permission: agentcli.PermissionFull})
				if err != nil {
					return nil, err
				}
				w := &worker{assignment: item.AssignmentID, bead: item.BeadID, session: item.Session, preset: preset, talk: newTalk(clients.Of(preset))}
				spec, err := p.spec(k.t.Context(), w, run, item)
				return fmt.Sprint(spec.Argv, spec.Sandbox != nil), err
			},
			stands: func(k *kennel, _ hook.WorkItem) string { return lying(k.t, k.rig, state.RunDir.Join("prompts")) },
		},
		"a worktree is furnished": {
			within: "/execute/furnish",
			do: func(k *kennel, p *Polecat, _ hook.WorkItem) (any, error) {
				for _, name := range []string{".env", "conf/sub/a", "deps/lib"} {
					k.write(name, name)
				}
				_ = os.Symlink("a", filepath.Join(k.dir, "conf/sub/link"))
				site := &Site{Rig: p.Rig, ID: alpha, Dir: p.Rig.Worktree(alpha), Jobs: p.jobs, Say: p.Say}
				site.Rig.Def.Worktree = definition.Worktree{Copy: []string{".env", "conf"}, Link: []string{"deps"}, Timeout: time.Minute}
				if err := site.Furnish(k.t.Context()); err != nil {
					return nil, err
				}
				_, err := site.wantedSetup()
				return nil, err
			},
			stands: func(k *kennel, _ hook.WorkItem) string { return content(k.t, k.rig.Worktree(alpha)) },
		},
		"a test is described": {
			within: "/chipset/execute/s",
			do: func(k *kennel, p *Polecat, _ hook.WorkItem) (any, error) {
				site := &Site{Rig: p.Rig, ID: alpha, Dir: p.Rig.Worktree(alpha), Jobs: p.jobs, Say: p.Say}
				site.Rig.Def.Network.Restricted = true
				spec, err := site.spec(command{session: "ses-1", argv: []string{"true"}, log: state.LogDir.Join("x.log"), record: testRecords.Join("x.json")})
				return fmt.Sprint(spec.Argv, spec.Sandbox != nil), err
			},
			stands: func(k *kennel, _ hook.WorkItem) string { return "" },
		},
		"a client gets a home": {
			within: "/execute/sandbox_home",
			do: func(k *kennel, _ *Polecat, _ hook.WorkItem) (any, error) {
				for _, name := range []string{".claude/settings.json", ".claude/projects/a", ".claude/.claude.json"} {
					k.write("home/"+name, name)
				}
				client := clients.Named("claude")
				c := confined{home: filepath.Join(k.dir, "home"), lookup: func(string) string { return "" }, client: &client, stand: filepath.Join(k.dir, "stand")}
				return c.makeStand()
			},
			stands: func(k *kennel, _ hook.WorkItem) string { return content(k.t, filepath.Join(k.dir, "stand")) },
		},
		"a bead has to wait": {
			within: "/execute/pauses",
			do: func(k *kennel, p *Polecat, item hook.WorkItem) (any, error) {
				return nil, p.hold(k.t.Context(), polecat.Hold{Item: item, Fault: fault.New(fault.Overloaded, "too much")})
			},
			stands: func(k *kennel, _ hook.WorkItem) string { return fmt.Sprint(inForce(k.t, k.rig)) },
		},
		"an attempt ends": {
			within: "/execute/pauses",
			do: func(k *kennel, p *Polecat, item hook.WorkItem) (any, error) {
				rec, _, err := carry.Publish(k.t.Context(), p.Rig, retire.Record{AssignmentID: item.AssignmentID, AgentID: alpha, Session: item.Session,
					Outcome: retire.Fail, Reason: "broken", Fault: fault.New(fault.ClientBroken, "broken")})
				if err == nil {
					_, err = p.finish(k.t.Context(), rec)
				}
				return nil, err
			},
			stands: func(k *kennel, item hook.WorkItem) string {
				return k.standing(item.AssignmentID) + fmt.Sprint(inForce(k.t, k.rig))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKennel(t, "")
			k.dead()
			item := *k.hook().WorkItem
			k.p.Close()
			refusals := &gittest.Refusals{Within: scene.within}
			refusals.Sweep(t, gittest.Play{World: k.dir, Standing: func() string { return scene.stands(k, item) }, Do: func() (got any, err error) {
				_, err = k.process(func(p *Polecat) error {
					p.Rig.Def = k.rig.Def
					got, err = scene.do(k, p, item)
					return err
				})
				return got, err
			}}, "")
		})
	}
}

// TestCallsFailBesideASession: whichever call on a file fails while a person's session is given its worktree again, or loses it, the
// session is told all in the end, once.
func TestCallsFailBesideASession(t *testing.T) {
	t.Parallel()
	s := newBeside(t, "")
	gittest.Write(t, s.rig.Worktree(s.id), "mine.txt", "mine")
	item := *s.hookOf(s.id).WorkItem
	use, _ := carry.ReadWorktree(s.rig, s.id)
	use.Torn = true
	if err := carry.WriteWorktree(s.rig, use); err != nil {
		t.Fatal(err)
	}
	refusals := &gittest.Refusals{Within: "/execute/polecat_beside"}
	b := s.kennel.bead(s.bead)
	for _, do := range []func(p *Polecat) error{
		func(p *Polecat) error { return p.give(t.Context(), &b, item) },
		func(p *Polecat) error {
			return p.abandon(t.Context(), polecat.Abandon{Assignment: item.AssignmentID, Bead: item.BeadID, Session: item.Session})
		},
	} {
		refusals.Sweep(t, gittest.Play{World: s.dir, Do: func() (any, error) {
			p := NewPolecat(Agent{Rig: s.rig, ID: s.id, Session: state.NewSessionID(), Say: func(string, ...any) {}})
			defer p.Close()
			p.beside = true
			return nil, do(p)
		}, Standing: func() string {
			use, known := carry.ReadWorktree(s.rig, s.id)
			out := fmt.Sprintln(use.Ready, known, s.saved("mine.txt"))
			for _, told := range s.told() {
				subject, _, _ := strings.Cut(told, "\n")
				out += subject + "\n"
			}
			return out
		}}, ".chipset/state")
	}
}

func (s *beside) hookOf(id state.AgentID) hook.Hook {
	s.t.Helper()
	h, err := s.rig.Hooks.Get(string(id))
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// TestCallsFailInBudgets: whichever call on a file fails while the mayor keeps its budgets, it says so, and the next time what is used up is
// paused, what is not goes on, and each worker is told.
func TestCallsFailInBudgets(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "budget: {bead: {tokens: 1000}}\n")
	again, working, raised := h.add("again"), h.add("working"), h.add("raised")
	h.set(working, func(b *bead.Bead) {
		b.Status, b.Assignee, b.AssignmentID = bead.InProgress, mayorBravo, "as-"+state.AssignmentID(working)
	})
	nobody := h.add("of nobody") // as another program may leave it
	h.set(nobody, func(b *bead.Bead) { b.Status, b.AssignmentID = bead.InProgress, "as-"+state.AssignmentID(nobody) })
	for id, tokens := range map[state.BeadID]int64{again: 1000, working: 900, nobody: 900} {
		h.must(h.rig.Spend.Note(t.Context(), spend.Record{AssignmentID: "as-" + state.AssignmentID(id), BeadID: id, AgentID: mayorBravo, UpdatedAt: state.At(h.at)}, "ses-1",
			[]spend.Model{{Usage: spend.Usage{In: tokens}}}, 0))
	}
	h.must(h.rig.Pauses.Change(t.Context(), pause.Bead(raised), func(p *pause.Pause) error {
		_, err := p.Exceed(pause.Used{Tokens: 1000}, "used up", nil, state.At(h.at), state.At(h.at))
		return err
	}))
	begin, dir := h.at, h.rig.Dir
	refusals := &gittest.Refusals{Within: "/execute/budgets"}
	refusals.Sweep(t, gittest.Play{World: dir, Do: func() (_ any, err error) {
		h.at = begin
		if h.rig, err = rig.Open(t.Context(), dir, h.clock); err != nil {
			return nil, err
		}
		m := NewMayor(Agent{Rig: h.rig, ID: "mayor", Session: state.NewSessionID(), Say: func(string, ...any) {}})
		beads, err := h.rig.Beads.Since(state.Cursor{})
		if err != nil {
			return nil, err
		}
		m.backlog.Follow(beads)
		return nil, m.keepBudgets(t.Context())
	}, Standing: func() string {
		told, _, err := h.rig.Slot(mayorBravo).All()
		h.must(err)
		out := inForce(t, h.rig)
		for i := range told {
			out = append(out, told[i].Message)
		}
		return strings.Join(out, "\n")
	}}, ".chipset/state")
}

// TestCallsFailInMayorSteps: the same, in steps of the mayor that look at other files than those of its decision.
func TestCallsFailInMayorSteps(t *testing.T) {
	t.Parallel()
	h := newTownHall(t, "")
	h.must(h.rig.Tree.Replace(h.rig.Hooks.Path(string(mayorBravo)), []byte(`{"agent_id":"polecat-bravo","last_activity":"2026-03-05T12:00:00Z","schema_version":1,"status":"pending","work_item":{"bead_id":"tt-other","title":"of another program"}}`)))
	failed := h.add("fails")
	h.set(failed, func(b *bead.Bead) { b.Status, b.Assignee, b.AssignmentID = bead.Failed, alpha, "as-1" })
	begin := h.at
	refusals := &gittest.Refusals{Within: "/execute/mayor_act"}
	refusals.Sweep(t, gittest.Play{World: h.rig.Dir, Do: func() (any, error) {
		h.at = begin
		m := NewMayor(Agent{Rig: h.rig, ID: "mayor", Session: state.NewSessionID(), Say: func(string, ...any) {}})
		on, err := h.rig.Hooks.Get(string(mayorBravo))
		switch {
		case err != nil:
		case on.Bare():
			err = m.takeOver(t.Context(), mayor.TakeOver{Agent: mayorBravo, Bead: "tt-other", Title: "of another program"})
		case on.Status == hook.Empty: // as the next decision does
			err = m.sling(t.Context(), mayor.Sling{Agent: mayorBravo, Bead: "tt-other"})
		}
		return nil, errors.Join(err, m.verify(t.Context(), "as-none"))
	}, Standing: func() string {
		told := ""
		for _, e := range h.mail(state.Human, mail.Coordination) {
			told += e.Subject + "\n"
		}
		return fmt.Sprint(h.hook(mayorBravo).Status, h.hook(mayorBravo).WorkItem.BeadID, h.bead("tt-other").Status, told)
	}}, ".chipset/state")
}

// TestCallsFailInPatrols: the same, while the witness finds a task that is overdue, and tells of a stall.
func TestCallsFailInPatrols(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	w.work(stallingPolecat)
	if err := w.rig.Incidents.Create("in-1", incident.Incident{ID: "in-1", AgentID: stallingPolecat, Kind: incident.Stalled, Severity: incident.Alert, OpenedAt: state.At(w.clock())}); err != nil {
		t.Fatal(err)
	}
	begin := w.clock().Add(10 * time.Minute)
	refusals := &gittest.Refusals{Within: "/execute/witness"}
	refusals.Sweep(t, gittest.Play{World: w.rig.Dir, Do: func() (any, error) {
		w.now = begin
		w.restart()
		for range 3 {
			if _, err := w.runner.Tick(t.Context()); err != nil {
				return nil, err
			}
			w.now = w.now.Add(10 * time.Second)
		}
		return nil, nil
	}, Standing: func() string {
		var out []string
		for _, i := range w.incidents() {
			out = append(out, fmt.Sprint(i.Kind, i.Severity, i.EscalatedAt != nil, i.Nudges))
		}
		for _, to := range []state.AgentID{w.rig.Mayor(), state.Human} {
			for _, e := range w.escalations(to) {
				out = append(out, string(to)+": "+e.Subject)
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	}}, ".chipset/state")
}
