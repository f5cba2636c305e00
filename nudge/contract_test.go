package nudge

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// A nudge that only latest.json has stands among the others in the order of time.
func TestOrderWithTheLatestAlone(t *testing.T) {
	s, tree := newSlot(t)
	send(t, s, "witness", HealthCheck, after(2*time.Minute))
	send(t, s, "refinery", HealthCheck, after(time.Minute))
	put(t, s, tree, "latest.json", Nudge{From: "mayor", Type: Abort, Message: "m", Timestamp: now})
	if got := types(t, s); got != "mayor:abort refinery:health_check witness:health_check" {
		t.Errorf("unseen %q", got)
	}
}

// A file or folder that can't be read is said to be so, and is no empty one.
func TestUnreadableSlot(t *testing.T) {
	s, tree := newSlot(t)
	n := send(t, s, "mayor", Abort, now)
	spoil := func(name string) {
		t.Helper()
		at := tree.Abs(s.Dir().Join(name))
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	spoil("seen.json")
	if seen, err := s.Seen(); err == nil {
		t.Errorf("it was seen by %+v", seen)
	}
	if all, bad, err := s.Unseen(); err != nil || len(bad) != 1 || len(all) != 1 {
		t.Errorf("a hint twice does no harm: %v, %v, %v", all, bad, err)
	}
	if err := s.MarkSeen(t.Context(), n); err == nil {
		t.Error("it is marked where nothing can be written")
	}
	if err := s.Reconcile(t.Context(), now); err == nil {
		t.Error("a seen.json that can't be read is reconciled")
	}
	if err := os.RemoveAll(tree.Abs(s.Dir().Join("from"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tree.Abs(s.Dir().Join("from")), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.All(); err == nil {
		t.Error("a file in the place of the folder is no error")
	}
	if err := s.Quarantine(t.Context(), s.Dir().Join("from"), now); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.All(); err != nil {
		t.Errorf("after that was set aside: %v", err)
	}
}

// A time in the future of a sender that has sent nothing is forgotten: its first nudge would count as seen.
func TestTakeBackForgets(t *testing.T) {
	s, tree := newSlot(t)
	send(t, s, "mayor", Abort, now)
	put(t, s, tree, "seen.json", Seen{Seen: map[state.AgentID]state.Time{"witness": after(time.Hour), "mayor": after(time.Hour)}})
	reconcile(t, s, after(time.Minute))
	seen, err := s.Seen()
	if at, there := seen.Seen["witness"]; err != nil || there || !seen.Seen["mayor"].Equal(now.Time) {
		t.Errorf("seen %+v, of the witness %v, %v", seen, at, err)
	}
}

// What was put before a model is logged.
func TestInjectedIsTold(t *testing.T) {
	_, tree := newSlot(t)
	log := event.NewLog(tree, func() time.Time { return now.Time })
	NewSlot(tree, "polecat-alpha", log).Injected(&Nudge{From: "mayor", Type: Abort, Message: "stop"})
	events, _, _, err := log.Read(event.Position{}, time.Time{})
	if err != nil || len(events) != 1 || events[0].Type != "nudge.injected" {
		t.Errorf("%+v, %v", events, err)
	}
}

// A file that is no nudge is said to be none, whichever of its fields says so, and a newer latest.json of the same sender counts.
func TestFilesOfOtherPrograms(t *testing.T) {
	for _, text := range []string{
		`{"from":"mayor","type":"abort","message":"m","timestamp":"soon"}`,
		`{"from":"mayor","type":"dance","message":"m","timestamp":"2026-03-05T10:30:00Z"}`,
		`{"from":"witness","type":"abort","message":"m","timestamp":"2026-03-05T10:30:00Z"}`,
	} {
		s, tree := newSlot(t)
		if err := tree.Replace(s.Dir().Join("from", "mayor.json"), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if all, bad, err := s.All(); err != nil || len(all) > 0 || len(bad) != 1 {
			t.Errorf("%s: %v, %v, %v", text, all, bad, err)
		}
		if err := History()[2].CheckChange("nudge/polecat-alpha/from/mayor.json", nil, []byte(text)); err == nil {
			t.Errorf("%s: nobody notices", text)
		}
	}
	s, tree := newSlot(t)
	send(t, s, "mayor", HealthCheck, now)
	put(t, s, tree, "latest.json", Nudge{From: "mayor", Type: Abort, Timestamp: after(time.Second)})
	if got := types(t, s); got != "mayor:abort" {
		t.Errorf("unseen %q", got)
	}
	if n := send(t, s, "mayor", HealthCheck, after(time.Minute)); !n.Timestamp.Equal(after(time.Minute).Time) {
		t.Errorf("sent a minute later, at %s", n.Timestamp)
	}
	if err := errors.Join(os.RemoveAll(tree.Abs(s.Dir().Join("from"))), os.WriteFile(tree.Abs(s.Dir().Join("from")), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if all, _, err := s.Unseen(); err == nil {
		t.Errorf("a slot that can't be read holds %v", all)
	}
}
