package carry

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
)

func TestSling(t *testing.T) {
	y := newYard(t, "")
	id := y.add()
	rec, err := Sling(t.Context(), y.Rig, id, alpha, "mayor")
	y.must(err)
	if !y.whole(id, alpha) {
		t.Fatal("not slung")
	}
	m := y.letters(alpha, id)[0]
	for _, want := range []string{string(id), "a task", "do it", "it is done", "polecat/" + string(id)} {
		if !strings.Contains(m.Body, want) {
			t.Errorf("the assignment does not say %q:\n%s", want, m.Body)
		}
	}
	if b := y.bead(id); b.Branch != "polecat/"+string(id) || b.Assignments != 1 || rec.Branch != b.Branch {
		t.Errorf("branch %q of assignment %d", b.Branch, b.Assignments)
	}

	// What is slung already is told, and untouched.
	before := y.bead(id)
	_, err = Sling(t.Context(), y.Rig, id, bravo, "human")
	var slung *AlreadySlung
	if !errors.As(err, &slung) || slung.Agent != alpha || errors.Is(err, state.ErrConflict) {
		t.Errorf("slung twice: %v, want *AlreadySlung to alpha", err)
	}
	if after := y.bead(id); after.Gen != before.Gen || y.hook(bravo).Status != hook.Empty {
		t.Error("the second sling changed something")
	}

	// The next assignment has a branch of its own.
	_, err = Unsling(t.Context(), y.Rig, id, "human")
	y.must(err)
	if b := y.bead(id); b.CloseReason != "" || b.Status != bead.Open {
		t.Errorf("taken back: %+v", b)
	}
	rec, err = Sling(t.Context(), y.Rig, id, bravo, "mayor")
	y.must(err)
	if !y.whole(id, bravo) || rec.Branch != "polecat/"+string(id)+"-2" {
		t.Errorf("the second assignment has branch %q", rec.Branch)
	}
}

func TestSlingIsRefused(t *testing.T) {
	y := newYard(t, "")
	first, second := y.add(), y.add()
	waits := y.add(first, second)
	busy := y.add()
	_, err := Sling(t.Context(), y.Rig, busy, bravo, "mayor")
	y.must(err)
	y.must(y.Agents.SetStatus(t.Context(), alpha, agent.Retired, y.now()))
	cancelled := y.add()
	y.become(cancelled, bead.Cancelled)
	y.become(second, bead.Cancelled)
	for name, c := range map[string]struct {
		bead state.BeadID
		to   state.AgentID
		is   error
		says []string
	}{
		"no such bead":  {"tt-none1", bravo, state.ErrNotFound, nil},
		"no such agent": {first, "polecat-zulu", state.ErrNotFound, nil},
		"retired":       {first, alpha, state.ErrConflict, []string{"retired"}},
		"the mayor":     {first, "mayor", state.ErrConflict, []string{"mayor"}},
		"the crew":      {first, "helper", state.ErrConflict, []string{"crew"}},
		"the person":    {first, state.Human, state.ErrConflict, []string{"human"}},
		"a taken hook":  {first, bravo, state.ErrConflict, []string{string(busy)}},
		"blocked":       {waits, bravo, state.ErrConflict, []string{string(first) + " (open)", string(second) + " (cancelled)"}},
		"cancelled":     {cancelled, bravo, state.ErrConflict, []string{"cancelled"}},
		"an evil name":  {"../../x", bravo, state.ErrBadID, nil},
	} {
		_, err := Sling(t.Context(), y.Rig, c.bead, c.to, "mayor")
		if !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", name, err, c.is)
			continue
		}
		for _, want := range c.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
	records, _, err := y.Dispatch.All()
	y.must(err)
	if len(records) != 1 || y.bead(first).Gen != 1 {
		t.Errorf("a refusal left %d records, bead %+v", len(records), y.bead(first))
	}
}

// stopAt ends a run after the nth effect, as a crash would.
func stopAt(n int, seen *[]string) func(string) error {
	return func(effect string) error {
		*seen = append(*seen, effect)
		if len(*seen) == n {
			return fmt.Errorf("after %s: %w", effect, errKilled)
		}
		return nil
	}
}

// obstacle is something in the way of a dispatch.
type obstacle struct {
	name  string
	slung bool // what it must come to in the end
	// after puts it there, when the effect is durable.
	after string
	put   func(y *yard, id state.BeadID)
}

func obstacles() []obstacle {
	return []obstacle{
		{name: "none", slung: true},
		{name: "the mail's name is taken", slung: true, after: "stored", put: func(y *yard, id state.BeadID) {
			rec, err := y.Dispatch.Get(string(id))
			y.must(err)
			m := mail.Message{From: "mayor", To: alpha, Type: mail.Coordination, Subject: "first", ID: "other"}
			n, err := mail.ParseName(rec.MailName)
			y.must(err)
			if err := y.Sender.SendAs(y.Context(), n, m); err != nil && !errors.Is(err, state.ErrExists) {
				y.Fatal(err)
			}
		}},
		{name: "the hook is taken", after: "bead", put: func(y *yard, id state.BeadID) {
			_, err := y.Hooks.Set(y.Context(), alpha, hook.WorkItem{BeadID: "tt-other", AssignmentID: "as-other"}, y.now())
			if err != nil && !errors.Is(err, state.ErrConflict) {
				y.Fatal(err)
			}
		}},
		{name: "the bead is cancelled", after: "stored", put: func(y *yard, id state.BeadID) {
			if y.bead(id).Status == bead.Open {
				y.become(id, bead.Cancelled)
			}
		}},
		{name: "the agent is retired", after: "launched", put: func(y *yard, _ state.BeadID) {
			y.must(y.Agents.SetStatus(y.Context(), alpha, agent.Retired, y.now()))
		}},
	}
}

func (o *obstacle) check(y *yard, id state.BeadID, slung bool) {
	y.Helper()
	if y.bead(id).Status == bead.Cancelled {
		if _, err := y.Dispatch.Get(string(id)); !errors.Is(err, state.ErrNotFound) || y.hook(alpha).Status != hook.Empty {
			y.Fatalf("%s: left over: record %v, hook %+v", o.name, err, y.hook(alpha))
		}
		return
	}
	if got := y.whole(id, alpha); got != slung {
		y.Fatalf("%s: slung is %v, want %v", o.name, got, slung)
	}
}

// Whatever the effect was that a crash came after, healing finishes or undoes
// the dispatch, and healing again changes nothing.
func TestSlingSurvivesEveryCrash(t *testing.T) {
	for _, o := range obstacles() {
		t.Run(o.name, func(t *testing.T) {
			for n := 1; ; n++ {
				if !o.crashAfter(newYard(t, ""), n) {
					break
				}
				if n > 20 {
					t.Fatal("it never ends")
				}
			}
		})
	}
}

// crashAfter reports whether the pipeline had as many as n effects.
func (o *obstacle) crashAfter(y *yard, n int) bool {
	y.Helper()
	id := y.add()
	var seen []string
	applied := false
	stop := stopAt(n, &seen)
	step := func(effect string) error {
		if effect == o.after {
			o.put(y, id)
			applied = true
		}
		return stop(effect)
	}
	_, err := (&carrier{Rig: y.Rig, step: step}).sling(y.Context(), id, alpha, "mayor")
	crashed := errors.Is(err, errKilled)
	slung := o.slung || !applied
	if crashed && seen[len(seen)-1] == "stored" {
		slung = false // the bead was not taken yet
	}
	for range 2 {
		// A crash of the healing is healed as well.
		_, err := (&carrier{Rig: y.another(), step: stopAt(1, new([]string))}).heal(y.Context(), id)
		if err != nil && !errors.Is(err, errKilled) {
			y.Fatalf("%s after %v: heal: %v", o.name, seen, err)
		}
	}
	if _, err := HealDispatches(y.Context(), y.another()); err != nil {
		y.Fatalf("%s after %v: heal: %v", o.name, seen, err)
	}
	o.check(y, id, slung)
	before := y.bead(id).Gen
	if healed, err := HealDispatches(y.Context(), y.another()); healed != 0 || err != nil {
		y.Fatalf("%s after %v: healed %d again, %v", o.name, seen, healed, err)
	}
	o.check(y, id, slung)
	if after := y.bead(id).Gen; after != before {
		y.Fatalf("%s after %v: the second healing wrote the bead", o.name, seen)
	}
	return crashed
}

// Whatever the effect was that a crash came after, slinging again comes to the same end as healing: a bead that is
// called slung has its hook and its mail.
func TestSlingAgainAfterEveryCrash(t *testing.T) {
	for n := 1; ; n++ {
		y := newYard(t, "")
		id := y.add()
		var seen []string
		_, err := (&carrier{Rig: y.Rig, step: stopAt(n, &seen)}).sling(t.Context(), id, alpha, "mayor")
		crashed := errors.Is(err, errKilled)
		_, err = Sling(t.Context(), y.another(), id, alpha, "human")
		var slung *AlreadySlung
		if err != nil && !errors.As(err, &slung) {
			t.Errorf("again after %v: %v", seen, err)
		}
		if !y.whole(id, alpha) || len(y.letters(alpha, id)) != 1 {
			t.Errorf("after %v: bead %+v, hook %+v, %d letters", seen, y.bead(id), y.hook(alpha), len(y.letters(alpha, id)))
		}
		if healed, err := HealDispatches(t.Context(), y.another()); healed != 0 || err != nil {
			t.Errorf("after %v: %d were left to heal, %v", seen, healed, err)
		}
		if !crashed {
			return
		}
	}
}

// Text that a person or another tool made is never too large to be announced.
func TestSlingAnnouncesAnyText(t *testing.T) {
	y := newYard(t, "mail: {max_size: 1KiB}\n")
	id := y.add()
	y.set(id, func(b *bead.Bead) {
		b.Title = strings.Repeat("\x01", bead.MaxTitle)
		b.Description = strings.Repeat("\x02", 100<<10)
		b.Acceptance = strings.Repeat("ü", 9000)
	})
	_, err := Sling(t.Context(), y.Rig, id, alpha, "mayor")
	y.must(err)
	if !y.whole(id, alpha) {
		t.Error("not slung")
	}
}

// One dispatch that can't be healed stops no other.
func TestHealingGoesOn(t *testing.T) {
	y := newYard(t, "")
	broken, good := y.add(), y.add()
	if broken > good {
		broken, good = good, broken
	}
	for id, to := range map[state.BeadID]state.AgentID{broken: alpha, good: bravo} {
		_, err := (&carrier{Rig: y.Rig, step: stopAt(2, new([]string))}).sling(t.Context(), id, to, "mayor")
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
	y.must(os.WriteFile(y.Tree.Abs(y.Beads.Path(string(broken))), []byte("{"), 0o644))
	n, err := HealDispatches(t.Context(), y.another())
	if n != 1 || !errors.Is(err, state.ErrCorrupt) || !strings.Contains(err.Error(), string(broken)) {
		t.Errorf("healed %d, %v; want 1 and the corrupt bead's name", n, err)
	}
	if !y.whole(good, bravo) {
		t.Error("the other was not healed")
	}
	if rec, err := y.Dispatch.Get(string(broken)); err != nil || rec.Stage != dispatch.Stored {
		t.Errorf("the record of the corrupt bead: %+v, %v", rec, err)
	}
	y.must(os.RemoveAll(y.Tree.Abs(dispatch.Dir)))
	y.must(os.WriteFile(y.Tree.Abs(dispatch.Dir), nil, 0o600))
	if _, err := HealDispatches(t.Context(), y.Rig); err == nil {
		t.Error("records that can't be listed are none")
	}
}

// An attempt that went on while its dispatch was unconfirmed keeps its bead.
func TestHealAfterTheAttemptWentOn(t *testing.T) {
	for name, c := range map[string]struct {
		way     []bead.Status
		letters int
		record  bool
	}{
		"in progress": {[]bead.Status{bead.InProgress}, 1, true},
		"done":        {[]bead.Status{bead.InProgress, bead.Done}, 0, false},
		"failed":      {[]bead.Status{bead.InProgress, bead.Failed}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, "")
			id := y.add()
			if _, err := (&carrier{Rig: y.Rig, step: stopAt(4, new([]string))}).sling(t.Context(), id, alpha, "mayor"); !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			as := y.bead(id).AssignmentID
			_, err := y.Hooks.Activate(t.Context(), alpha, as, "ses-1", y.now())
			y.must(err)
			y.become(id, c.way...)
			for range 2 {
				_, err = HealDispatches(t.Context(), y.Rig)
				y.must(err)
			}
			rec, err := y.Dispatch.Get(string(id))
			if (err == nil) != c.record || c.record && rec.Stage != dispatch.Confirmed {
				t.Errorf("record %+v, %v", rec, err)
			}
			b, h := y.bead(id), y.hook(alpha)
			if b.Status != c.way[len(c.way)-1] || b.AssignmentID != as || h.Status != hook.Active || len(y.letters(alpha, id)) != c.letters {
				t.Errorf("bead %+v, hook %+v, %d letters", b, h, len(y.letters(alpha, id)))
			}
		})
	}
}

// A record whose fixed name is no name of its sender is not stuck forever.
func TestHealSpoiltMailName(t *testing.T) {
	y := newYard(t, "")
	for _, name := range []string{"", "nonsense", "2026-03-05T10-30-00Z-human.json", "2026-03-05T10-30-00Z-mayor.json"} {
		id := y.add()
		if _, err := (&carrier{Rig: y.Rig, step: stopAt(3, new([]string))}).sling(t.Context(), id, alpha, "mayor"); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		rec, err := y.Dispatch.Get(string(id))
		y.must(err)
		rec.MailName = name
		y.must(y.Dispatch.Put(string(id), rec))
		_, err = HealDispatches(t.Context(), y.Rig)
		y.must(err)
		if b := y.bead(id); len(y.letters(alpha, id)) != 1 || b.Status != bead.Hooked {
			t.Errorf("%q: %d letters, bead %+v", name, len(y.letters(alpha, id)), b)
		}
		_, err = Unsling(t.Context(), y.Rig, id, "human")
		y.must(err)
	}
}
