package mayor

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

var (
	statuses = []bead.Status{bead.Open, bead.Open, bead.Open, bead.Hooked, bead.InProgress, bead.Done, bead.Failed, bead.Blocked,
		bead.Merged, bead.Closed, bead.Cancelled}
	hookStatuses = []hook.Status{hook.Empty, hook.Empty, hook.Pending, hook.Active, hook.Completed}
	outcomes     = []retire.Outcome{retire.Done, retire.Fail, retire.Block}
	stages       = []retire.Stage{retire.Published, retire.Committed, retire.Recorded, retire.Submitted, retire.Completed, retire.Released, retire.Stale}
	mailTypes    = append(mail.Types(), "x-own", mail.HealthEscalation, mail.HealthEscalation)
)

func beadID(n int) state.BeadID             { return state.BeadID(fmt.Sprintf("gt-%d", n)) }
func polecatID(n int) state.AgentID         { return state.AgentID(fmt.Sprintf("polecat-%d", n)) }
func assignmentOf(n int) state.AssignmentID { return state.AssignmentID(fmt.Sprintf("as-%d", n)) }

// anyFacts draws a rig in any condition, also in those that should never be.
func anyFacts(t *rapid.T) Facts {
	n := rapid.IntRange(0, 8).Draw(t, "beads")
	m := rapid.IntRange(0, 4).Draw(t, "polecats")
	which := rapid.IntRange(0, max(n, 1))
	f := Facts{Now: noon, Session: "se-now", Starting: rapid.Bool().Draw(t, "starting"), Retired: map[state.AssignmentID]retire.Record{}, Backlog: backlog.New(), Policy: Policy{Mayor: "mayor", Witness: "witness",
		MaxParallel: rapid.IntRange(1, 4).Draw(t, "max_parallel"), BatchThreshold: rapid.IntRange(0, 3).Draw(t, "batch"),
		AutoClaim: rapid.Bool().Draw(t, "auto_claim"), MaxAttempts: 3, MaxConflicts: 2, MaxRestarts: 2, RestartCooldown: time.Minute,
		ReworkConflicts: rapid.Bool().Draw(t, "rework")}}
	for i := range n {
		b := bead.Bead{ID: beadID(i), Title: "x", Status: rapid.SampledFrom(statuses).Draw(t, "status"), Priority: bead.P2,
			CreatedAt: state.At(noon.Add(-time.Duration(i) * time.Minute)), Attempts: rapid.IntRange(0, 3).Draw(t, "attempts"),
			Conflicts: rapid.IntRange(0, 3).Draw(t, "conflicts"), Restarts: rapid.IntRange(0, 3).Draw(t, "restarts")}
		if b.Status != bead.Open {
			b.AssignmentID, b.Assignee = assignmentOf(rapid.IntRange(0, n).Draw(t, "as")), polecatID(rapid.IntRange(0, m).Draw(t, "on"))
		}
		if rapid.IntRange(0, 3).Draw(t, "blocked") == 0 {
			b.BlockedBy = []state.BeadID{beadID(which.Draw(t, "by"))}
		}
		if rapid.IntRange(0, 5).Draw(t, "cooling") == 0 {
			at := state.At(noon.Add(time.Second))
			b.ReadyAt = &at
		}
		f.Backlog.Put(b)
		if rapid.Bool().Draw(t, "ended") {
			f.Retired[assignmentOf(i)] = retire.Record{AssignmentID: assignmentOf(i), Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"),
				Stage: rapid.SampledFrom(stages).Draw(t, "stage"), Reason: "because"}
		}
		if rapid.IntRange(0, 2).Draw(t, "request") == 0 {
			f.Queue = append(f.Queue, mergequeue.Request{ID: state.MergeID("mr-" + string(b.ID)), BeadID: b.ID, AssignmentID: assignmentOf(which.Draw(t, "of")),
				Status: rapid.SampledFrom([]mergequeue.Status{mergequeue.Pending, mergequeue.Conflicted}).Draw(t, "mr"), Failure: mergequeue.FailTests})
		}
		if rapid.IntRange(0, 7).Draw(t, "unconfirmed") == 0 {
			f.Unconfirmed = append(f.Unconfirmed, dispatch.Record{BeadID: b.ID, AgentID: polecatID(rapid.IntRange(0, m).Draw(t, "to")), AssignmentID: assignmentOf(i)})
		}
	}
	for i := range m {
		p := Polecat{ID: polecatID(i), Corrupt: rapid.IntRange(0, 5).Draw(t, "corrupt") == 0, Live: rapid.Bool().Draw(t, "live"),
			Retired: rapid.IntRange(0, 4).Draw(t, "retired") == 0, Stalled: rapid.Bool().Draw(t, "stalled"),
			Hook: hook.Hook{AgentID: polecatID(i), Status: rapid.SampledFrom(hookStatuses).Draw(t, "hook")}}
		if p.Hook.Status != hook.Empty {
			p.Hook.WorkItem = &hook.WorkItem{BeadID: beadID(which.Draw(t, "hangs")), AssignmentID: assignmentOf(which.Draw(t, "hangs as"))}
		}
		f.Polecats = append(f.Polecats, p)
	}
	f.Mail = anyMail(t, which)
	for i := range rapid.IntRange(0, 3).Draw(t, "nudges") {
		f.Nudges = append(f.Nudges, nudge.Nudge{From: polecatID(i), Type: rapid.SampledFrom(nudge.Types()).Draw(t, "nudge"), Timestamp: noon,
			RequiresResponse: rapid.Bool().Draw(t, "respond")})
	}
	if n > 0 && rapid.Bool().Draw(t, "convoy") {
		f.Backlog.PutConvoy(convoy.Convoy{ID: "cv-1", BeadIDs: []state.BeadID{beadID(0), beadID(which.Draw(t, "member"))}})
	}
	return f
}

func anyMail(t *rapid.T, which *rapid.Generator[int]) []Message {
	var letters []Message
	for i := range rapid.IntRange(0, 5).Draw(t, "mail") {
		from := rapid.SampledFrom([]state.AgentID{"human", "witness", "polecat-0", "mayor"}).Draw(t, "from")
		at := state.At(noon.Add(time.Duration(i)))
		m := mail.Message{From: from, To: "mayor", Type: rapid.SampledFrom(mailTypes).Draw(t, "type"), Subject: "s", Timestamp: at,
			Thread: rapid.SampledFrom([]string{"", "nonsense", "2026-03-05T12-00-00Z-polecat-0.json"}).Draw(t, "thread")}
		if rapid.Bool().Draw(t, "ref") {
			m.Ref = &mail.Ref{BeadID: beadID(which.Draw(t, "bead")), AssignmentID: assignmentOf(which.Draw(t, "ref as")),
				Session: rapid.SampledFrom([]state.SessionID{"", "se-now", "se-old"}).Draw(t, "session")}
		}
		l := Message{Entry: mail.Entry{Name: mail.NameAt(at, from), Message: m}}
		if m.Type == mail.HealthEscalation {
			l.Escalation = &Escalation{Recommend: rapid.SampledFrom([]string{"", "nudge", "restart", "reassign", "human", "?"}).Draw(t, "recommend")}
		}
		letters = append(letters, l)
	}
	return letters
}

func decided(s State, f Facts) []roles.Action {
	d := Decide(s, f)
	return d.Actions()
}

// moved is the bead that an action moves, or "".
func moved(a roles.Action) state.BeadID {
	switch a := a.(type) {
	case HealDispatch:
		return a.Bead
	case Sling:
		return a.Bead
	case Reopen:
		return a.Bead
	case TakeBack:
		return a.Bead
	case Block:
		return a.Bead
	}
	return ""
}

func TestDecisionsInAnyCondition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		from := rapid.SampledFrom([]State{Idle, Dispatching, Monitoring, Saturated, Closing}).Draw(t, "state")
		d := Decide(from, f)
		if same := Decide(from, f); !reflect.DeepEqual(d, same) {
			t.Fatalf("the same facts, another decision:\n%s", cmp.Diff(d, same))
		}
		next, actions := d.Next, d.Actions()
		byID := map[state.BeadID]*bead.Bead{}
		seen := map[state.BeadID]int{}
		agents := map[state.AgentID]bool{}
		slung, out := 0, 0
		for b := range f.Backlog.All() {
			byID[b.ID] = b
			if b.Status == bead.Hooked || b.Status == bead.InProgress {
				out++
			}
		}
		for _, a := range actions {
			if id := moved(a); id != "" {
				if seen[id]++; seen[id] > 1 {
					t.Fatalf("%s is moved twice in %v", id, actions)
				}
			}
			switch a := a.(type) {
			case Sling:
				slung++
				checkSling(t, &f, a, agents, byID)
			case Reopen:
				checkMove(t, byID[a.Bead], a.Assignment, a.From)
			case Block:
				checkMove(t, byID[a.Bead], a.Assignment, a.From)
				if !strings.Contains(a.Subject, string(a.Bead)) || !strings.Contains(a.Body, "chipset why "+string(a.Bead)) {
					t.Fatalf("the person is not told what to do: %q %q", a.Subject, a.Body)
				}
			case roles.Finish:
				if next != Closing {
					t.Fatalf("it ends in state %s", next)
				}
			}
		}
		if slung > max(0, f.Policy.MaxParallel-out) {
			t.Fatalf("%d slung with %d out and max_parallel %d", slung, out, f.Policy.MaxParallel)
		}
		if (next == Closing || f.Policy.AutoClaim) && slung > 0 {
			t.Fatalf("slung in state %s, auto_claim %v", next, f.Policy.AutoClaim)
		}
		checkLetters(t, &f, actions)
	})
}

func checkSling(t *rapid.T, f *Facts, a Sling, taken map[state.AgentID]bool, byID map[state.BeadID]*bead.Bead) {
	b := byID[a.Bead]
	if b == nil || b.Status != bead.Open || len(bead.Blockers(b, byID)) > 0 || b.ReadyAt != nil && b.ReadyAt.After(f.Now.Time) {
		t.Fatalf("%s is not ready: %+v", a.Bead, b)
	}
	if taken[a.Agent] {
		t.Fatalf("two beads for %s", a.Agent)
	}
	taken[a.Agent] = true
	i := slices.IndexFunc(f.Polecats, func(p Polecat) bool { return p.ID == a.Agent })
	if i < 0 || f.Polecats[i].Retired || f.Polecats[i].Corrupt {
		t.Fatalf("%s gets no work", a.Agent)
	}
	if st := f.Polecats[i].Hook.Status; st != hook.Empty && st != hook.Completed {
		t.Fatalf("the hook of %s is %s", a.Agent, st)
	}
}

func checkMove(t *rapid.T, b *bead.Bead, as state.AssignmentID, from bead.Status) {
	if b == nil || b.Status != from || b.AssignmentID != as || as == "" {
		t.Fatalf("a move from %s under %q of %+v", from, as, b)
	}
}

func checkLetters(t *rapid.T, f *Facts, actions []roles.Action) {
	read := map[mail.Name]int{}
	nudged := 0
	for _, a := range actions {
		switch a := a.(type) {
		case roles.MarkRead:
			read[a.Entry.Name]++
		case roles.MarkSeen:
			nudged++
		}
	}
	for _, l := range f.Mail {
		if read[l.Name] != 1 {
			t.Fatalf("%s is marked read %d times", l.Name, read[l.Name])
		}
	}
	if len(read) != len(f.Mail) || nudged != len(f.Nudges) {
		t.Fatalf("%d of %d letters, %d of %d nudges retired", len(read), len(f.Mail), nudged, len(f.Nudges))
	}
}

// The person's mail has the whole history, whatever a worker wrote into it.
func TestWhatThePersonIsTold(t *testing.T) {
	b := bead.Bead{ID: "gt-1", Title: "Paint it", Status: bead.Failed, AssignmentID: "as-1", Assignee: "polecat-alpha", Branch: "polecat/gt-1-3",
		Attempts: 2, ReworkNotes: []string{"attempt 1 failed: red", "attempt 2 failed: green"}, CloseReason: strings.Repeat("ü", 150) + "\nsecond line"}
	actions := decided(Idle, Facts{Now: noon, Policy: Policy{MaxAttempts: 3}, Backlog: backlog.New(b)})
	if len(actions) != 1 {
		t.Fatalf("%v", actions)
	}
	told, ok := actions[0].(Block)
	if !ok {
		t.Fatalf("%T, want Block", actions[0])
	}
	for _, want := range []string{"Paint it", "failed attempts: 3", "polecat-alpha", "polecat/gt-1-3", "attempt 1 failed: red", "attempt 2 failed: green",
		"second line", "Likely causes", "chipset work reopen gt-1"} {
		if !strings.Contains(told.Body, want) {
			t.Errorf("the body does not say %q:\n%s", want, told.Body)
		}
	}
	if strings.Contains(told.Subject, "\n") || len(told.Subject) > 300 || !strings.HasPrefix(told.Subject, "gt-1 is blocked: ") {
		t.Errorf("subject %q", told.Subject)
	}
}

// A convoy's file names all of its beads, and no file may grow forever.
func TestConvoysAreBounded(t *testing.T) {
	l := backlog.New()
	for i := range 2*maxConvoy + 100 {
		l.Put(bead.Bead{ID: beadID(i), Status: bead.Open, CreatedAt: noon})
	}
	f := Facts{Now: noon, Backlog: l, Policy: Policy{BatchThreshold: 3}}
	for n, want := range []int{maxConvoy, maxConvoy, 100} {
		actions := decided(Idle, f)
		if len(actions) != 1 {
			t.Fatalf("%d actions", len(actions))
		}
		made, ok := actions[0].(MakeConvoy)
		if !ok || len(made.Beads) != want {
			t.Fatalf("convoy %d: %T with %d beads, want %d", n, actions[0], len(made.Beads), want)
		}
		l.PutConvoy(convoy.Convoy{ID: state.ConvoyID(fmt.Sprintf("cv-%d", n)), BeadIDs: made.Beads})
	}
	if actions := decided(Idle, f); len(actions) != 0 {
		t.Errorf("all travel, but %v", actions)
	}
}

// Work that a power cut took is done again, and nobody is charged for it, however often the bead had failed.
func TestLostWorkChargesNobody(t *testing.T) {
	b := bead.Bead{ID: "gt-1", Status: bead.Failed, AssignmentID: "as-1", Attempts: 2}
	for _, lost := range []bool{true, false} {
		f := Facts{Now: noon, Policy: Policy{MaxAttempts: 3}, Backlog: backlog.New(b),
			Retired: map[state.AssignmentID]retire.Record{"as-1": {AssignmentID: "as-1", Outcome: retire.Fail, Stage: retire.Released, Lost: lost, Reason: "a crash"}}}
		actions := decided(Idle, f)
		if len(actions) != 1 {
			t.Fatalf("%v", actions)
		}
		if again, is := actions[0].(Reopen); is != lost || lost && again.Charge != ChargeNothing {
			t.Errorf("lost %v: %+v", lost, actions[0])
		}
	}
}

// A request that could not land is over once its bead went on without it. While a person decides about that very attempt, it stays.
func TestConflictedRequestsThatAreOver(t *testing.T) {
	for _, c := range []struct {
		status bead.Status
		as     state.AssignmentID
		over   bool
	}{
		{bead.Blocked, "as-1", false}, {bead.Blocked, "as-2", true}, {bead.Closed, "as-1", true}, {bead.Merged, "as-2", true}, {bead.Done, "as-1", false},
	} {
		f := Facts{Now: noon, Backlog: backlog.New(bead.Bead{ID: "gt-1", Status: c.status, AssignmentID: c.as}),
			Queue: []mergequeue.Request{{ID: "mr-1", BeadID: "gt-1", AssignmentID: "as-1", Status: mergequeue.Conflicted}}}
		if over := slices.Contains(decided(Idle, f), roles.Action(Supersede{MR: "mr-1", Bead: "gt-1"})); over != c.over {
			t.Errorf("%s under %s: over is %v", c.status, c.as, over)
		}
	}
}
