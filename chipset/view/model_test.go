package view

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/spend"
)

// follow makes a model of a rig as a board does: opened again, with notification.
func follow(t testing.TB, f *rigtest.Yard, cleanup func(func())) *Model {
	t.Helper()
	r := reopen(t, f)
	w, err := state.NewWatcher(r.Tree)
	rigtest.Must(t, err)
	cleanup(func() { _ = w.Close() })
	r.Follow(w)
	return NewModel(r, w)
}

// reopen opens the rig as another process does, but without git, which is slow.
func reopen(t testing.TB, f *rigtest.Yard) *rig.Rig {
	t.Helper()
	r, err := rig.OpenState(context.Background(), f.Dir, f.Clock)
	rigtest.Must(t, err)
	r.Git = nil
	return r
}

// wipe takes away what changes have made.
func wipe(t testing.TB, f *rigtest.Yard) {
	t.Helper()
	for _, dir := range []state.Path{bead.Dir, mergequeue.Dir, convoy.Dir, incident.Dir, pause.Dir, spend.Dir, event.Dir, agentcli.ProgressDir, f.Mailbox(state.Human).Dir()} {
		entries, err := f.Tree.List(dir)
		rigtest.Must(t, err)
		for _, e := range entries {
			if !e.IsDir() {
				rigtest.Must(t, f.Tree.Remove(dir.Join(e.Name())))
			}
		}
	}
	for _, id := range []state.AgentID{alpha, bravo} {
		rigtest.Must(t, f.Hooks.Put(string(id), hook.Hook{AgentID: id, Gen: 1, Status: hook.Empty, LastActivity: f.At()}))
	}
}

func update(t testing.TB, m *Model) (*View, Parts) {
	t.Helper()
	v, parts, err := m.Update(context.Background())
	rigtest.Must(t, err)
	return v, parts
}

// sameViews compares two views but for what no two looks share.
func sameViews(t testing.TB, got, want *View) {
	t.Helper()
	opts := cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateComparable(state.Time{}), cmp.AllowUnexported(WorkItem{})}
	if diff := cmp.Diff(want, got, opts); diff != "" {
		t.Fatalf("the view is not that of a full build (-want +got):\n%s", diff)
	}
}

// changes are what may happen to a rig, by whatever process.
func changes(f *rigtest.Yard, beads []state.BeadID) map[string]func(*rapid.T) {
	ctx := context.Background()
	id := func(t *rapid.T) state.BeadID { return rapid.SampledFrom(beads).Draw(t, "bead") }
	agents := rapid.SampledFrom([]state.AgentID{alpha, bravo})
	return map[string]func(*rapid.T){
		"bead": func(t *rapid.T) {
			status := rapid.SampledFrom([]bead.Status{bead.Open, bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Merged, bead.Blocked, bead.Failed, bead.Cancelled}).Draw(t, "status")
			b := bead.Bead{ID: id(t), Title: rapid.SampledFrom([]string{"one", "two"}).Draw(t, "title"), Status: status, Priority: bead.P2, Assignee: alpha,
				AssignmentID: "as-1", CreatedAt: f.At(), UpdatedAt: f.At(), BlockedBy: rapid.SliceOfN(rapid.SampledFrom(beads), 0, 2).Draw(t, "blockers")}
			rigtest.Must(f.T, f.Beads.Put(string(b.ID), b))
		},
		"bead gone": func(t *rapid.T) { rigtest.Must(f.T, f.Tree.Remove(f.Beads.Path(string(id(t))))) },
		"damage":    func(t *rapid.T) { f.Plant(f.Beads.Path(string(id(t))), "{") },
		"hook": func(t *rapid.T) {
			who := agents.Draw(t, "agent")
			h := hook.Hook{AgentID: who, Gen: 2, Status: hook.Empty, LastActivity: f.At()}
			if rapid.Bool().Draw(t, "active") {
				h.Status = hook.Active
				h.WorkItem = &hook.WorkItem{BeadID: id(t), AssignmentID: "as-1", Title: "one", AssignedAt: f.At(), Session: "se-" + state.SessionID(who)}
			}
			rigtest.Must(f.T, f.Hooks.Put(string(who), h))
		},
		"progress": func(t *rapid.T) {
			p := agentcli.Progress{Session: "se-" + state.SessionID(agents.Draw(t, "agent")), Figures: agentcli.Figures{Turns: rapid.IntRange(1, 3).Draw(t, "turns")}}
			rigtest.Must(f.T, p.Write(f.Tree))
		},
		"spend": func(t *rapid.T) {
			rec := spend.Record{AssignmentID: rapid.SampledFrom([]state.AssignmentID{"as-1", "as-2"}).Draw(t, "assignment"), BeadID: id(t), AgentID: agents.Draw(t, "agent"), Client: "claude"}
			rec.Note("se-1", []spend.Model{{Model: rapid.SampledFrom([]string{"", "m"}).Draw(t, "model"), Usage: spend.Usage{In: rapid.Int64Range(0, 9).Draw(t, "in"), CostUSD: 3}}}, time.Second, f.At())
			rigtest.Must(f.T, f.Spend.Put(string(rec.AssignmentID), rec))
		},
		"request": func(t *rapid.T) {
			b := id(t)
			q := mergequeue.Request{ID: "mr-" + state.MergeID(b), Seq: 1, BeadID: b, AssignmentID: "as-1", AgentID: alpha, SourceBranch: "polecat/x", TargetBranch: "main",
				Head: "55e21302586688d5f95f3d21b55c2c551c797db1", SubmittedAt: f.At(), UpdatedAt: f.At(),
				Status: rapid.SampledFrom([]mergequeue.Status{mergequeue.Pending, mergequeue.Superseded, mergequeue.Dropped}).Draw(t, "status")}
			q.Waiting = rapid.SampledFrom([]string{"", "the tip is red"}).Draw(t, "waiting")
			rigtest.Must(f.T, f.Queue.Put(string(q.ID), q))
		},
		"convoy": func(t *rapid.T) {
			c := convoy.Convoy{ID: "cv-a", Name: "a", CreatedAt: f.At(), BeadIDs: rapid.SliceOfNDistinct(rapid.SampledFrom(beads), 1, 4, rapid.ID).Draw(t, "beads")}
			rigtest.Must(f.T, f.Convoys.Put("cv-a", c))
		},
		"incident": func(t *rapid.T) {
			i := incident.Incident{ID: "in-1", AgentID: alpha, Kind: incident.Stalled, OpenedAt: f.At(), Detail: "no progress",
				Severity: rapid.SampledFrom([]incident.Severity{incident.Warning, incident.Critical}).Draw(t, "severity")}
			if at := f.At(); rapid.Bool().Draw(t, "over") {
				i.ResolvedAt = &at
			}
			rigtest.Must(f.T, f.Incidents.Put("in-1", i))
		},
		"pause": func(t *rapid.T) {
			p := pause.Pause{Scope: pause.Rig, Class: fault.Environment, Kind: fault.TestCannotRun, Reason: "no make", Since: f.At(), Until: f.At(), Tries: 1,
				Status: rapid.SampledFrom([]pause.Status{pause.Paused, pause.Over}).Draw(t, "status")}
			rigtest.Must(f.T, f.Pauses.Put(p.Scope.File(), p))
		},
		"mail": func(t *rapid.T) {
			m := mail.Message{From: agents.Draw(t, "agent"), To: state.Human, Type: mail.Coordination, Subject: "look", Priority: mail.Normal}
			if rapid.Bool().Draw(t, "asks") {
				m.Type, m.Body = mail.PlanRequest, "the plan"
			}
			_, err := f.Sender.Send(ctx, m)
			rigtest.Must(f.T, err)
		},
		"mail read": func(t *rapid.T) {
			for _, e := range rigtest.Unread(f.T, f.Rig, state.Human) {
				rigtest.Must(f.T, f.Mailbox(state.Human).MarkRead(ctx, e.Name))
				return
			}
		},
		"event": func(t *rapid.T) {
			f.Events.Tell(event.HandoffWritten(alpha, event.Work{Bead: id(t)}, "hand-off", "text"))
		},
	}
}

// TestUpdatesEqualAFullBuild: whatever happens to a rig, in whatever steps a model
// follows it, the view is that of a model which begins then.
func TestUpdatesEqualAFullBuild(t *testing.T) {
	f := rigtest.NewYard(t)
	unfollowed := reopen(t, f)
	rapid.Check(t, func(rt *rapid.T) {
		wipe(t, f)
		m := follow(t, f, rt.Cleanup)
		var beads []state.BeadID
		for i := range 6 {
			beads = append(beads, state.BeadID(fmt.Sprintf("gt-bead%d", i)))
		}
		all := changes(f, beads)
		all[""] = func(rt *rapid.T) {
			got, _ := update(t, m)
			want, _ := update(t, NewModel(unfollowed, nil))
			sameViews(t, got, want)
		}
		rt.Repeat(all)
	})
}

// TestPartsAreWhatHasChanged: an update says which parts are other ones, and none when
// nothing has happened.
func TestPartsAreWhatHasChanged(t *testing.T) {
	f := busy(t)
	m := follow(t, f, t.Cleanup)
	if _, parts := update(t, m); parts != AllParts {
		t.Errorf("at first %b, want all parts", parts)
	}
	b, err := f.Beads.Get("gt-open1")
	rigtest.Must(t, err)
	for _, step := range []struct {
		name string
		do   func() error
		want Parts
	}{
		{"nothing", func() error { return nil }, 0},
		{"a bead", func() error { b.Title = "another"; return f.Beads.Put("gt-open1", b) }, WorkPart},
		{"a bead is blocked", func() error { b.Status = bead.Blocked; return f.Beads.Put("gt-open1", b) }, WorkPart | NeedsPart},
		{"mail", func() error {
			_, err := f.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "human", Type: mail.Coordination, Subject: "x", Priority: mail.Normal})
			return err
		}, MailPart | AgentsPart | StoryPart},
		{"a question", func() error {
			_, err := f.Sender.Send(t.Context(), mail.Message{From: alpha, To: "human", Type: mail.PlanRequest, Subject: "plan", Body: "the plan", Priority: mail.Normal,
				Ref: &mail.Ref{BeadID: "gt-work1", AssignmentID: "as-gt-work1"}})
			return err
		}, NeedsPart | MailPart | AgentsPart | StoryPart},
		{"progress", func() error {
			h, err := f.Hooks.Get(string(alpha))
			rigtest.Must(t, err)
			p := agentcli.Progress{Session: h.WorkItem.Session, Figures: agentcli.Figures{Turns: 3}}
			return p.Write(f.Tree)
		}, AgentsPart | SpendPart},
		{"the first process", func() error { f.Run(bravo); return nil }, AgentsPart | HealthPart}, // the rig is no longer down
		{"an event", func() error { f.Events.Tell(event.HandoffWritten(alpha, event.Work{}, "h", "t")); return nil }, StoryPart},
	} {
		rigtest.Must(t, step.do())
		if _, parts := update(t, m); parts != step.want {
			t.Errorf("%s: changed %b, want %b", step.name, parts, step.want)
		}
	}
}

// TestChangedCoversAgentsThatCome: mail to an agent that was not there at first is a change.
func TestChangedCoversAgentsThatCome(t *testing.T) {
	f := busy(t)
	m := follow(t, f, t.Cleanup)
	m.Changed()
	_, err := f.Agents.Register(t.Context(), "guest", agent.Crew, "r", nil, f.At())
	rigtest.Must(t, err)
	update(t, m)
	changed := m.Changed()
	f.Plant(f.Mailbox("guest").Dir().Join("2026-03-05T10-30-00.000000000Z-mayor.json"), "{}")
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Error("no signal")
	}
}

// TestAnUpdateCostsWhatHasChanged: of a thousand beads, only those are looked at that
// changed or depend on what did, and an old view stays as it was.
func TestAnUpdateCostsWhatHasChanged(t *testing.T) {
	f := rigtest.NewYard(t)
	for i := range 1000 {
		f.Plant(f.Beads.Path(fmt.Sprintf("gt-b%04d", i)), fmt.Sprintf(`{"id":"gt-b%04d","title":"x","status":"open","priority":"P2","created_at":"2026-03-05T10:30:00Z","updated_at":"2026-03-05T10:30:00Z","gen":1,"blocked_by":["gt-b%04d"]}`, i, i/2))
	}
	m := follow(t, f, t.Cleanup)
	first, _ := update(t, m)
	before := first.Work.Find("gt-b0400")
	b := *before.Bead
	b.Status = bead.Merged
	rigtest.Must(t, f.Beads.Put("gt-b0400", b))
	_, _, err := m.beads.update() // what the store has to look at is its own affair
	rigtest.Must(t, err)
	m.work.put(map[state.BeadID]*bead.Bead{b.ID: m.beads.rows["gt-b0400"]})
	if len(m.work.touched) > 5 {
		t.Errorf("%d items were made anew for one bead with two dependants", len(m.work.touched))
	}
	after := m.work.apply(first.Work)
	if first.Work.Find("gt-b0400") != before || len(first.Work.Find("gt-b0800").Waits) != 1 {
		t.Error("the first view has changed")
	}
	if got := after.Find("gt-b0800"); len(got.Waits) != 0 || !got.Ready(f.At()) {
		t.Errorf("what waited for it waits for %v", got.Waits)
	}
}

// BenchmarkUpdate is one change of a rig with 10,000 beads, seen by a board.
func BenchmarkUpdate(b *testing.B) {
	r := rigtest.New(b, "")
	var all []bead.Bead
	for i := range 10_000 {
		all = append(all, bead.Bead{ID: state.BeadID(fmt.Sprintf("tt-b%05d", i)), Title: "x", Status: bead.Open, Priority: bead.P2, CreatedAt: r.Clock.Now(), UpdatedAt: r.Clock.Now()})
	}
	for _, err := range r.Beads.CreateAll(all, func(b *bead.Bead) string { return string(b.ID) }) {
		rigtest.Must(b, err)
	}
	w, err := state.NewWatcher(r.Tree)
	rigtest.Must(b, err)
	defer w.Close()
	r.Follow(w)
	m := NewModel(r, w)
	update(b, m)
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		one := all[n%len(all)]
		one.Title = fmt.Sprint(n)
		rigtest.Must(b, r.Beads.Put(string(one.ID), one))
		b.StartTimer()
		if _, parts := update(b, m); !parts.Has(WorkPart) {
			b.Fatal("the change was not seen")
		}
	}
}
