package nudge

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

func after(d time.Duration) state.Time { return state.At(now.Add(d)) }

// put writes a file of the slot as it may be found, not as Send makes it.
func put(t *testing.T, s Slot, tree *state.Tree, name string, v any) {
	t.Helper()
	data, ok := v.(string)
	if !ok {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		data = string(text)
	}
	if err := os.WriteFile(tree.Abs(s.Dir().Join(name)), []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func reconcile(t *testing.T, s Slot, at state.Time) {
	t.Helper()
	if err := s.Reconcile(t.Context(), at); err != nil {
		t.Fatal(err)
	}
}

func latest(t *testing.T, s Slot) string {
	t.Helper()
	n, err := s.Latest()
	if err != nil {
		t.Fatal(err)
	}
	return string(n.From) + ":" + string(n.Type)
}

// latest.json is the newest nudge of all again, whatever became of it.
func TestReconcileLatest(t *testing.T) {
	s, tree := newSlot(t)
	reconcile(t, s, now) // nothing is there, and nothing is made
	if there, err := tree.Exists(s.Dir().Join("latest.json")); there || err != nil {
		t.Errorf("a nudge of nobody is there, %v", err)
	}
	if _, err := s.Latest(); err == nil {
		t.Error("a nudge of nobody")
	}
	older := send(t, s, "mayor", HealthCheck, now)
	send(t, s, "witness", Abort, after(1))
	put(t, s, tree, "latest.json", older)
	reconcile(t, s, after(2))
	if got := latest(t, s); got != "witness:abort" {
		t.Errorf("an older one stood there: %s", got)
	}
	if err := os.Remove(tree.Abs(s.Dir().Join("latest.json"))); err != nil {
		t.Fatal(err)
	}
	reconcile(t, s, after(2))
	if got := latest(t, s); got != "witness:abort" {
		t.Errorf("it was gone: %s", got)
	}
}

// An abort that only latest.json still has comes back, and replaces no newer one.
func TestReconcileSender(t *testing.T) {
	s, tree := newSlot(t)
	send(t, s, "witness", HealthCheck, now)
	send(t, s, "mayor", Abort, after(1))
	if err := os.Remove(tree.Abs(s.Dir().Join("from", "mayor.json"))); err != nil {
		t.Fatal(err)
	}
	reconcile(t, s, after(2))
	if got := types(t, s); got != "witness:health_check mayor:abort" {
		t.Errorf("unseen %q", got)
	}
	old, _ := s.Latest()
	send(t, s, "mayor", HealthCheck, after(5))
	put(t, s, tree, "latest.json", old)
	reconcile(t, s, after(6))
	if got := types(t, s); got != "witness:health_check mayor:health_check" || latest(t, s) != "mayor:health_check" {
		t.Errorf("unseen %q, latest %s", got, latest(t, s))
	}
	own := func() state.Time {
		n, err := s.read(s.Dir().Join("from", "mayor.json"))
		if err != nil {
			t.Fatal(err)
		}
		return n.Timestamp
	}
	if got := own(); got != after(5) {
		t.Errorf("the sender's file has the nudge of %s", got)
	}
	put(t, s, tree, "latest.json", old) // as after a crash between the two files
	send(t, s, "witness", HealthCheck, after(7))
	if got := own(); got != after(5) {
		t.Errorf("after another's nudge the sender's file has that of %s", got)
	}
	put(t, s, tree, "from/mayor.json", "{")
	if err := s.Reconcile(t.Context(), after(6)); err == nil {
		t.Error("reconciled beside a file that can't be read")
	}
}

// What was seen in the future would hide every nudge until then.
func TestReconcileSeen(t *testing.T) {
	s, tree := newSlot(t)
	send(t, s, "mayor", Abort, now)
	seen := func(of map[state.AgentID]state.Time) {
		t.Helper()
		put(t, s, tree, "seen.json", Seen{Seen: of})
		reconcile(t, s, after(time.Minute))
	}
	seen(map[state.AgentID]state.Time{"mayor": after(time.Hour), "witness": after(time.Hour)})
	send(t, s, "mayor", HealthCheck, after(2*time.Minute))
	send(t, s, "witness", HealthCheck, after(3*time.Minute))
	if got := types(t, s); got != "mayor:health_check witness:health_check" {
		t.Errorf("unseen %q", got)
	}
	// Neither is a time that has passed, nor that of the newest nudge.
	seen(map[state.AgentID]state.Time{"refinery": after(30 * time.Second), "witness": after(3 * time.Minute)})
	got, err := s.Seen()
	if err != nil || !got.Seen["refinery"].Equal(now.Add(30*time.Second)) || !got.Seen["witness"].Equal(now.Add(3*time.Minute)) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Only what can't be read is moved away, each under its own lock.
func TestQuarantine(t *testing.T) {
	s, tree := newSlot(t)
	send(t, s, "mayor", Abort, now)
	put(t, s, tree, "seen.json", "{")
	for _, name := range []string{"from/mayor.json", "latest.json", "seen.json", "from", "from/nobody.json"} {
		if err := s.Quarantine(t.Context(), s.Dir().Join(strings.Split(name, "/")...), now); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	kept, err := tree.Quarantined()
	if err != nil || len(kept) != 1 {
		t.Errorf("%v, %v", kept, err)
	}
	if got := types(t, s); got != "mayor:abort" {
		t.Errorf("unseen %q", got)
	}
	put(t, s, tree, "from/mayor.json", "{")
	if err := s.Quarantine(t.Context(), s.Dir().Join("from", "mayor.json"), now); err != nil {
		t.Fatal(err)
	}
	if all, bad, err := s.All(); err != nil || len(bad) > 0 || len(all) != 1 { // latest.json still has it
		t.Errorf("%v, %v, %v", all, bad, err)
	}
}

// The log says who nudged whom about what, and once what came of it.
func TestNudgesAreTold(t *testing.T) {
	_, tree := newSlot(t)
	log := event.NewLog(tree, func() time.Time { return now.Time })
	s := NewSlot(tree, "polecat-alpha", log)
	n, err := s.Send(t.Context(), Nudge{From: "mayor", Type: Abort, Message: "stop", Ref: &Ref{BeadID: "gt-aaaaa", AssignmentID: "as-1"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was seen already is told no more
		if err := s.WithNote("stale").MarkSeen(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	second := send(t, s, "mayor", HealthCheck, after(1))
	if err := s.MarkSeen(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	events, _, _, err := log.Read(event.Position{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range events {
		told = append(told, strings.TrimSpace(e.Type+" "+string(e.Bead)+" "+string(e.Assignment))+" "+e.Text)
	}
	want := []string{"nudge.sent gt-aaaaa as-1", "nudge.seen gt-aaaaa as-1", "nudge.sent", "nudge.seen"}
	text := []string{"stop", "stale", "m", "m"}
	if len(told) != len(want) {
		t.Fatalf("%q", told)
	}
	for i := range told {
		if !strings.HasPrefix(told[i], want[i]) || !strings.Contains(told[i], text[i]) {
			t.Errorf("%q, want %s: %s", told[i], want[i], text[i])
		}
	}
}

// Nudges of a sender grow in time, in each version of a file; what was seen stays so.
func TestHistoryOfNudges(t *testing.T) {
	one, two := &Nudge{From: "mayor", Timestamp: now}, &Nudge{From: "mayor", Timestamp: after(1)}
	other := &Nudge{From: "witness", Timestamp: now}
	for _, c := range []struct {
		before, after *Nudge
		legal         bool
	}{{nil, one, true}, {one, two, true}, {two, one, false}, {one, &Nudge{From: "mayor", Timestamp: now, Message: "x"}, false}, {two, other, true}} {
		if err := moved(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%+v → %+v: %v", c.before, c.after, err)
		}
	}
	of := func(at ...state.Time) *Seen {
		s := &Seen{Seen: map[state.AgentID]state.Time{}}
		for i, a := range at {
			s.Seen[[]state.AgentID{"mayor", "witness"}[i]] = a
		}
		return s
	}
	for _, c := range []struct {
		before, after *Seen
		legal         bool
	}{{nil, of(now), true}, {of(now), of(now, now), true}, {of(now, now), of(after(1), now), true}, {of(after(1)), of(now), false}, {of(now, now), of(now), false}} {
		if err := seenMoved(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%+v → %+v: %v", c.before, c.after, err)
		}
	}
}

// What another process works on is left alone, and who asks is told.
func TestLockedSlot(t *testing.T) {
	s, tree := newSlot(t)
	n := send(t, s, "mayor", Abort, now)
	put(t, s, tree, "seen.json", Seen{Seen: map[state.AgentID]state.Time{"mayor": after(time.Hour)}})
	before, err := os.ReadFile(tree.Abs(s.Dir().Join("seen.json")))
	if err != nil {
		t.Fatal(err)
	}
	for lock, steps := range map[string]map[string]func(ctx context.Context) error{
		"nudge-": {
			"send": func(ctx context.Context) error {
				_, err := s.Send(ctx, Nudge{From: "witness", Type: HealthCheck}, now)
				return err
			},
			"reconcile":  func(ctx context.Context) error { return s.Reconcile(ctx, now) },
			"quarantine": func(ctx context.Context) error { return s.Quarantine(ctx, s.Dir().Join("from", "bad.json"), now) },
		},
		"seen-": {
			"mark":                   func(ctx context.Context) error { return s.MarkSeen(ctx, n) },
			"reconcile":              func(ctx context.Context) error { return s.Reconcile(ctx, now) },
			"quarantine of the seen": func(ctx context.Context) error { return s.Quarantine(ctx, s.Dir().Join("seen.json"), now) },
		},
	} {
		held, err := tree.Lock(t.Context(), state.LockRecord, lock+"polecat-alpha")
		if err != nil {
			t.Fatal(err)
		}
		for name, step := range steps {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			if err := step(ctx); !errors.Is(err, state.ErrLockTimeout) {
				t.Errorf("%s beside the lock %s: %v", name, lock, err)
			}
			cancel()
		}
		held.Unlock()
	}
	if got, _ := os.ReadFile(tree.Abs(s.Dir().Join("seen.json"))); string(got) != string(before) {
		t.Errorf("seen.json was changed to %s", got)
	}
	if all, _, _ := s.All(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// A nudge stands in its sender's file first: readers look there. It is told once both
// files have it.
func TestSendHalfWay(t *testing.T) {
	_, tree := newSlot(t)
	log := event.NewLog(tree, func() time.Time { return now.Time })
	s := NewSlot(tree, "polecat-alpha", log)
	if err := os.MkdirAll(tree.Abs(s.Dir().Join("latest.json", "x")), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), Nudge{From: "mayor", Type: Abort}, now); err == nil {
		t.Error("sent, although latest.json can't be written")
	}
	if got := types(t, s); got != "mayor:abort" {
		t.Errorf("unseen %q", got)
	}
	if events, _, _, err := log.Read(event.Position{}, time.Time{}); err != nil || len(events) > 0 {
		t.Errorf("told %+v, %v", events, err)
	}
	if err := s.Reconcile(t.Context(), now); err == nil {
		t.Error("reconciled although latest.json can't be read")
	}
}

// What only latest.json still has was seen if it was: it is not processed again.
func TestReconcileKeepsWhatWasSeen(t *testing.T) {
	s, tree := newSlot(t)
	n := send(t, s, "mayor", Abort, after(time.Hour)) // by a clock that was ahead
	if err := s.MarkSeen(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(tree.Abs(s.Dir().Join("from", "mayor.json"))); err != nil {
		t.Fatal(err)
	}
	reconcile(t, s, now)
	if got := types(t, s); got != "" {
		t.Errorf("unseen %q", got)
	}
}

func TestLongestMessage(t *testing.T) {
	s, _ := newSlot(t)
	if _, err := s.Send(t.Context(), Nudge{From: "mayor", Type: Abort, Message: strings.Repeat("x", MaxMessage)}, now); err != nil {
		t.Error(err)
	}
}
