package nudge

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/state"
)

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func newSlot(t *testing.T) (Slot, *state.Tree) {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	return NewSlot(tree, "polecat-alpha", nil), tree
}

func send(t *testing.T, s Slot, from state.AgentID, kind Type, at state.Time) Nudge {
	t.Helper()
	n, err := s.Send(t.Context(), Nudge{From: from, Type: kind, Message: "m"}, at)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func types(t *testing.T, s Slot) string {
	t.Helper()
	fresh, bad, err := s.Unseen()
	if err != nil || len(bad) > 0 {
		t.Fatal(bad, err)
	}
	var all []string
	for _, n := range fresh {
		all = append(all, string(n.From)+":"+string(n.Type))
	}
	return strings.Join(all, " ")
}

func TestLatestPerSender(t *testing.T) {
	s, _ := newSlot(t)
	send(t, s, "mayor", HealthCheck, now)
	send(t, s, "mayor", Abort, state.At(now.Add(1)))
	last := send(t, s, "witness", HealthCheck, state.At(now.Add(2)))
	if got, want := types(t, s), "mayor:abort witness:health_check"; got != want {
		t.Errorf("unseen %q, want %q", got, want)
	}
	if latest, err := s.Latest(); err != nil || !latest.Timestamp.Equal(last.Timestamp.Time) {
		t.Errorf("latest %+v, %v", latest, err)
	}
}

func TestSeenSurvivesAndAClockSetBack(t *testing.T) {
	s, tree := newSlot(t)
	first := send(t, s, "mayor", HealthCheck, now)
	if err := s.MarkSeen(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s = NewSlot(tree, "polecat-alpha", nil) // a restart
	if got := types(t, s); got != "" {
		t.Errorf("processed again: %q", got)
	}
	later := send(t, s, "mayor", Abort, state.At(now.Add(-time.Hour)))
	if want := now.Add(1); !later.Timestamp.Equal(want) {
		t.Errorf("timestamp %s, want one nanosecond after the previous", later.Timestamp)
	}
	if got := types(t, s); got != "mayor:abort" {
		t.Errorf("after the clock was set back: %q", got)
	}
	if err := s.MarkSeen(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkSeen(t.Context(), first); err != nil { // late
		t.Fatal(err)
	}
	if got := types(t, s); got != "" {
		t.Errorf("a late mark brought back %q", got)
	}
}

func TestTimesOfASenderGrow(t *testing.T) {
	_, tree := newSlot(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		s := NewSlot(tree, state.AgentID(fmt.Sprintf("agent-%d", round)), nil)
		var last state.Time
		for _, d := range rapid.SliceOfN(rapid.Int64Range(-5, 5), 2, 4).Draw(rt, "clock") {
			n, err := s.Send(t.Context(), Nudge{From: "mayor", Type: HealthCheck}, state.At(now.Add(time.Duration(d))))
			if err != nil {
				rt.Fatal(err)
			}
			if !n.Timestamp.After(last.Time) {
				rt.Fatalf("%s after %s", n.Timestamp, last)
			}
			last = n.Timestamp
		}
	})
}

// Senders take their time before they wait for the lock, so they come in any order.
func TestLatestIsTheNewest(t *testing.T) {
	_, tree := newSlot(t)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		s := NewSlot(tree, state.AgentID(fmt.Sprintf("agent-%d", round)), nil)
		for _, d := range rapid.SliceOfN(rapid.Int64Range(-5, 5), 2, 4).Draw(rt, "clock") {
			from := rapid.SampledFrom([]state.AgentID{"mayor", "witness"}).Draw(rt, "from")
			if _, err := s.Send(t.Context(), Nudge{From: from, Type: HealthCheck}, state.At(now.Add(time.Duration(d)))); err != nil {
				rt.Fatal(err)
			}
			all, bad, err := s.All()
			latest, latestErr := s.Latest()
			if err := errors.Join(append(bad, err, latestErr)...); err != nil {
				rt.Fatal(err)
			}
			if newest := all[len(all)-1]; !latest.Timestamp.Equal(newest.Timestamp.Time) {
				rt.Fatalf("latest is of %s at %s, the newest of %s at %s", latest.From, latest.Timestamp, newest.From, newest.Timestamp)
			}
		}
	})
}

func TestManySenders(t *testing.T) {
	s, _ := newSlot(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			from := state.AgentID(fmt.Sprintf("agent-%d", i%4))
			for range 5 {
				if _, err := s.Send(t.Context(), Nudge{From: from, Type: HealthCheck}, now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, bad, err := s.All()
	if err != nil || len(bad) > 0 || len(all) != 4 {
		t.Fatalf("%d nudges, %v, %v", len(all), bad, err)
	}
	for _, n := range all {
		if want := now.Add(9); !n.Timestamp.Equal(want) {
			t.Errorf("%s: %s, want %s after ten sends", n.From, n.Timestamp, state.At(want))
		}
	}
}

func TestWhatIsNoNudge(t *testing.T) {
	s, tree := newSlot(t)
	for name, n := range map[string]Nudge{
		"type":    {From: "mayor", Type: "poke"},
		"no from": {Type: HealthCheck},
	} {
		if _, err := s.Send(t.Context(), n, now); err == nil {
			t.Errorf("%s: was sent", name)
		}
	}
	if _, err := s.Send(t.Context(), Nudge{From: "mayor", Type: Abort, Message: strings.Repeat("x", MaxMessage+1)}, now); !errors.Is(err, state.ErrTooLarge) {
		t.Errorf("too large: %v, want ErrTooLarge", err)
	}
	send(t, s, "witness", HealthCheck, now)
	for name, content := range map[string]string{"mayor": "{", "refinery": `{"from":"witness","type":"abort","timestamp":"2026-03-05T10:30:00Z"}`} {
		if err := os.WriteFile(tree.Abs(s.Dir().Join("from", name+".json")), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, bad, err := s.All()
	if err != nil || len(all) != 1 || len(bad) != 2 {
		t.Errorf("%v, %v, %v", all, bad, err)
	}
	send(t, s, "mayor", Abort, now) // a hint that can't be read is replaced
	if all, bad, _ := s.All(); len(all) != 2 || len(bad) != 1 {
		t.Errorf("after the next nudge: %v, %v", all, bad)
	}
}

// A record of what was seen that can't be read costs a second processing, never
// the nudge.
func TestCorruptSeen(t *testing.T) {
	s, tree := newSlot(t)
	n := send(t, s, "mayor", Abort, now)
	if err := os.WriteFile(tree.Abs(s.Dir().Join("seen.json")), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	fresh, bad, err := s.Unseen()
	if err != nil || len(fresh) != 1 || len(bad) != 1 {
		t.Errorf("%v, %v, %v", fresh, bad, err)
	}
	if err := s.MarkSeen(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if got := types(t, s); got != "" {
		t.Errorf("unseen %q", got)
	}
}

// Other programs write latest.json alone, in whole seconds. Their nudge is processed like
// any other, once, and a later one of somebody else does not take it away.
func TestLatestOfAnotherProgram(t *testing.T) {
	s, tree := newSlot(t)
	send(t, s, "mayor", HealthCheck, now)
	if err := os.WriteFile(tree.Abs(s.Dir().Join("latest.json")),
		[]byte(`{"from":"witness","type":"sync_request","message":"m","timestamp":"2026-03-05T10:30:07Z","requires_response":true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := types(t, s); got != "mayor:health_check witness:sync_request" {
		t.Errorf("unseen %q", got)
	}
	send(t, s, "human", Abort, after(time.Minute))
	if got := types(t, s); got != "mayor:health_check witness:sync_request human:abort" {
		t.Errorf("unseen after a newer one: %q", got)
	}
	all, _, err := s.Unseen()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if err := s.MarkSeen(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if got := types(t, s); got != "" {
		t.Errorf("processed again: %q", got)
	}
}

// A nudge in latest.json whose sender has no file to be kept in is a lost hint, and is in nobody's way.
func TestLatestOfNoSender(t *testing.T) {
	for _, from := range []string{"../mayor", "a/b", ".hidden", strings.Repeat("x", 300), "a\x00b", "."} {
		slot, tree := newSlot(t)
		if err := slot.MarkSeen(t.Context(), send(t, slot, "witness", HealthCheck, now)); err != nil {
			t.Fatal(err)
		}
		put(t, slot, tree, "latest.json", Nudge{From: state.AgentID(from), Type: Abort, Timestamp: now})
		if all, bad, err := slot.Unseen(); err != nil || len(all) > 0 {
			t.Errorf("%.20q: %v, %v, %v", from, all, bad, err)
		}
		if _, err := slot.Send(t.Context(), Nudge{From: "mayor", Type: HealthCheck}, after(1)); err != nil {
			t.Errorf("beside %.20q: %v", from, err)
		}
		if all, bad, err := slot.Unseen(); err != nil || len(bad) > 0 || len(all) != 1 {
			t.Errorf("after %.20q: %v, %v, %v", from, all, bad, err)
		}
		if err := slot.Reconcile(t.Context(), now); err != nil {
			t.Errorf("reconciled beside %.20q: %v", from, err)
		}
	}
}
