package hook

import (
	"bytes"
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
	"github.com/gastown-chipset/chipset/state/event"
)

const who state.AgentID = "polecat-alpha"

var now = state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))

func newStore(t *testing.T) (Store, *state.Tree) {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(tree, nil)
	if err := s.Ensure(t.Context(), who, now); err != nil {
		t.Fatal(err)
	}
	return s, tree
}

func item(a state.AssignmentID) WorkItem {
	return WorkItem{AssignedAt: now, AssignmentID: a, BeadID: "gt-aaaaa", Title: "x"}
}

// Ensure never touches the hook of an agent that has one: it is called at every start.
func TestEnsureKeepsTheWork(t *testing.T) {
	s, _ := newStore(t)
	bring(t, s, Active)
	before, err := s.Get(string(who))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ensure(t.Context(), who, state.At(now.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	after, err := s.Get(string(who))
	if err != nil || after.Gen != before.Gen || after.Status != Active || after.Assignment() != "as-1" {
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
}

// steps are all transitions under assignment a by session ses.
func steps(t *testing.T, s Store, a state.AssignmentID, ses state.SessionID, at state.Time) map[string]func() (Hook, error) {
	ctx := t.Context()
	return map[string]func() (Hook, error){
		"set":      func() (Hook, error) { return s.Set(ctx, who, item(a), at) },
		"activate": func() (Hook, error) { return s.Activate(ctx, who, a, ses, at) },
		"resume":   func() (Hook, error) { return s.Resume(ctx, who, a, ses, at) },
		"touch":    func() (Hook, error) { return s.Touch(ctx, who, a, ses, at, 0) },
		"lend":     func() (Hook, error) { return s.Lend(ctx, who, a, ses, Lease{By: state.Human, Since: at, PID: 7}) },
		"complete": func() (Hook, error) { return s.Complete(ctx, who, a, ses, at) },
		"clear":    func() (Hook, error) { return s.Clear(ctx, who, a, at) },
	}
}

// bring puts a fresh hook into a status under as-1 and ses-1.
func bring(t *testing.T, s Store, to Status) {
	t.Helper()
	do := steps(t, s, "as-1", "ses-1", now)
	way := map[Status][]string{Empty: nil, Pending: {"set"}, Active: {"set", "activate"}, Completed: {"set", "activate", "complete"}}
	for _, name := range way[to] {
		if _, err := do[name](); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryTransition(t *testing.T) {
	legal := map[Status]map[string]Status{
		Empty:     {"set": Pending},
		Pending:   {"activate": Active, "clear": Empty},
		Active:    {"resume": Active, "touch": Active, "lend": Active, "complete": Completed, "clear": Empty},
		Completed: {"clear": Empty},
	}
	for from, allowed := range legal {
		for name := range steps(t, Store{}, "", "", now) {
			t.Run(string(from)+"/"+name, func(t *testing.T) {
				s, tree := newStore(t)
				bring(t, s, from)
				before, err := s.Get(string(who))
				if err != nil {
					t.Fatal(err)
				}
				bytesBefore, _ := os.ReadFile(tree.Abs(s.Path(string(who))))
				after, err := steps(t, s, "as-1", "ses-1", state.At(now.Add(time.Minute)))[name]()
				if want, ok := allowed[name]; ok {
					if err != nil || after.Status != want || after.Gen != before.Gen+1 || !after.LastActivity.After(before.LastActivity.Time) {
						t.Errorf("%+v, %v; want %s", after, err, want)
					}
					return
				}
				if bytesAfter, _ := os.ReadFile(tree.Abs(s.Path(string(who)))); !errors.Is(err, state.ErrConflict) || !bytes.Equal(bytesBefore, bytesAfter) {
					t.Errorf("%v, want ErrConflict and an untouched file", err)
				}
			})
		}
	}
}

func TestStaleStepsAreRefused(t *testing.T) {
	for from, names := range map[Status][]string{Pending: {"activate", "clear"}, Active: {"resume", "touch", "lend", "complete", "clear"}, Completed: {"clear"}} {
		s, _ := newStore(t)
		bring(t, s, from)
		do := steps(t, s, "as-old", "ses-1", now)
		for _, name := range names {
			if _, err := do[name](); !errors.Is(err, state.ErrConflict) {
				t.Errorf("%s of another assignment on %s: %v, want ErrConflict", name, from, err)
			}
		}
	}
	s, _ := newStore(t)
	bring(t, s, Active)
	do := steps(t, s, "as-1", "ses-old", now)
	for _, name := range []string{"touch", "complete"} {
		if _, err := do[name](); !errors.Is(err, state.ErrConflict) {
			t.Errorf("%s of another session: %v, want ErrConflict", name, err)
		}
	}
	if _, err := s.Resume(t.Context(), who, "as-1", "ses-2", now); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Touch(t.Context(), who, "as-1", "ses-1", now, 0); !errors.Is(err, state.ErrConflict) {
		t.Errorf("the session before the resume: %v, want ErrConflict", err)
	}
}

// A lease ends with its return, with a new session, and with the attempt; a touch leaves it. It can be returned once.
func TestLease(t *testing.T) {
	for _, tt := range []struct {
		step string
		left bool
	}{{"touch", true}, {"return", false}, {"resume", false}, {"complete", false}} {
		s, _ := newStore(t)
		bring(t, s, Active)
		do := steps(t, s, "as-1", "ses-1", now)
		do["return"] = func() (Hook, error) { return s.Return(t.Context(), who, now) }
		lent, err := do["lend"]()
		if err != nil || lent.WorkItem.Lease == nil || lent.WorkItem.Lease.PID != 7 {
			t.Fatalf("%+v, %v", lent.WorkItem, err)
		}
		h, err := do[tt.step]()
		if err != nil || h.Gen != lent.Gen+1 || (h.WorkItem.Lease != nil) != tt.left {
			t.Errorf("after %s: %+v, %v", tt.step, h.WorkItem, err)
		}
		if again, err := do["return"](); err != nil || !tt.left && again.Gen != h.Gen {
			t.Errorf("returned again after %s: gen %d, %v", tt.step, again.Gen, err)
		}
	}
}

func TestTouchIsThrottled(t *testing.T) {
	s, _ := newStore(t)
	bring(t, s, Active)
	for _, c := range []struct {
		after time.Duration
		write bool
	}{{0, false}, {TouchInterval - 1, false}, {TouchInterval, true}, {TouchInterval + time.Second, false}, {-time.Hour, true}} {
		before, _ := s.Get(string(who))
		after, err := s.Touch(t.Context(), who, "as-1", "ses-1", state.At(now.Add(c.after)), TouchInterval)
		if err != nil || (after.Gen > before.Gen) != c.write {
			t.Errorf("touch after %v: gen %d → %d, %v; want a write %v", c.after, before.Gen, after.Gen, err, c.write)
		}
	}
}

func TestExactlyOneWinner(t *testing.T) {
	_, tree := newStore(t)
	s := NewStore(tree, nil)
	race := func(name string, try func(i int, s Store) error) {
		const racers = 12
		errs := make([]error, racers)
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() { errs[i] = try(i, NewStore(tree, nil)) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, state.ErrConflict):
				t.Errorf("%s: %v", name, err)
			}
		}
		if won != 1 {
			t.Errorf("%s: %d winners", name, won)
		}
	}
	race("set", func(i int, s Store) error {
		_, err := s.Set(t.Context(), who, item(state.AssignmentID(fmt.Sprintf("as-%d", i))), now)
		return err
	})
	h, _ := s.Get(string(who))
	a := h.Assignment()
	race("activate", func(i int, s Store) error {
		_, err := s.Activate(t.Context(), who, a, state.SessionID(fmt.Sprintf("ses-%d", i)), now)
		return err
	})
	h, _ = s.Get(string(who))
	race("complete or clear", func(i int, s Store) error {
		if i%2 == 0 {
			_, err := s.Clear(t.Context(), who, a, now)
			return err
		}
		_, err := s.Complete(t.Context(), who, a, "ses-nobody", now)
		return err
	})
	if h, _ = s.Get(string(who)); h.Status != Empty || h.Gen != 3 {
		t.Errorf("at the end %+v", h)
	}
}

// Whatever is tried in whatever order, gen counts exactly the successes and the
// file always reads.
func TestAnyOrder(t *testing.T) {
	s, _ := newStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		h, err := s.Get(string(who)) // as the round before left it
		if err != nil {
			rt.Fatal(err)
		}
		gen := h.Gen
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			a := rapid.SampledFrom([]state.AssignmentID{"as-1", "as-2"}).Draw(rt, "assignment")
			ses := rapid.SampledFrom([]state.SessionID{"ses-1", "ses-2"}).Draw(rt, "session")
			name := rapid.SampledFrom([]string{"set", "activate", "resume", "touch", "complete", "clear"}).Draw(rt, "step")
			_, err := steps(t, s, a, ses, now)[name]()
			if err == nil {
				gen++
			} else if !errors.Is(err, state.ErrConflict) {
				rt.Fatal(err)
			}
			if h, err := s.Get(string(who)); err != nil || h.Gen != gen {
				rt.Fatalf("%+v, %v; want gen %d", h, err, gen)
			}
		}
	})
}

// Every step is told as what it is, under the assignment that it is about.
func TestStepsAreTold(t *testing.T) {
	_, tree := newStore(t)
	log := event.NewLog(tree, func() time.Time { return now.Time })
	s := NewStore(tree, log)
	if err := s.Ensure(t.Context(), "polecat-bravo", now); err != nil {
		t.Fatal(err)
	}
	do := steps(t, s, "as-1", "ses-1", now)
	for _, name := range []string{"set", "activate", "touch", "lend", "return", "resume", "complete", "clear"} {
		if name == "resume" {
			do = steps(t, s, "as-1", "ses-2", now)
		}
		do["return"] = func() (Hook, error) { return s.Return(t.Context(), who, now) }
		if _, err := do[name](); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	events, _, _, err := log.Read(event.Position{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range events {
		told = append(told, e.Type)
		if e.Assignment != "as-1" || e.Bead != "gt-aaaaa" {
			t.Errorf("%s is told of %q, %q", e.Type, e.Assignment, e.Bead)
		}
	}
	if got := strings.Join(told, " "); got != "hook.set hook.activated hook.touched hook.lent hook.returned hook.resumed hook.completed hook.cleared" {
		t.Errorf("told: %s", got)
	}
}

// A session belongs to a hook once it is active; the assignment comes with the hook.
func TestSessionOfAHook(t *testing.T) {
	s, _ := newStore(t)
	given := item("as-1")
	given.Session = "ses-old"
	h, err := s.Set(t.Context(), who, given, now)
	if err != nil || h.WorkItem.Session != "" {
		t.Errorf("%+v, %v: set with the session of somebody before", h.WorkItem, err)
	}
	if h, err = s.Activate(t.Context(), who, "as-1", "ses-1", now); err != nil || h.WorkItem.Session != "ses-1" {
		t.Errorf("%+v, %v", h.WorkItem, err)
	}
	if h, err = s.Clear(t.Context(), who, "", now); err != nil || h.Status != Empty || h.WorkItem != nil {
		t.Errorf("%+v, %v: whatever is there can be cleared", h, err)
	}
}

// A counter may be as large as every reader of JSON can count.
func TestLargestGen(t *testing.T) {
	if err := check(string(who), &Hook{AgentID: who, Status: Empty, Gen: state.MaxCounter}); err != nil {
		t.Error(err)
	}
	if err := check(string(who), &Hook{AgentID: who, Status: Empty, Gen: state.MaxCounter + 1}); err == nil {
		t.Error("a gen above the maximum is whole")
	}
}

func TestMissingAndCorruptHooksAreErrors(t *testing.T) {
	s, tree := newStore(t)
	if _, err := s.Set(t.Context(), "polecat-none", item("as-1"), now); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("no hook: %v, want ErrNotFound", err)
	}
	if err := s.Ensure(t.Context(), who, now); err != nil {
		t.Errorf("Make of one that exists: %v", err)
	}
	for _, content := range []string{"", "{", `{"agent_id":"polecat-alpha","status":"empty","work_item":{"bead_id":"b","assignment_id":"a"}}`,
		`{"agent_id":"polecat-bravo","status":"empty","work_item":null}`, `{"agent_id":"polecat-alpha","status":"busy","work_item":null}`,
		`{"agent_id":"polecat-alpha","status":"active","work_item":{"bead_id":"gt-aaaaa","assignment_id":""}}`,
		`{"agent_id":"polecat-alpha","status":"pending","work_item":{"bead_id":"","assignment_id":"as-1"}}`,
		`{"agent_id":"polecat-alpha","gen":-1,"status":"empty","work_item":null}`,
		`{"agent_id":"polecat-alpha","status":"active","work_item":null}`} {
		if err := os.WriteFile(tree.Abs(s.Path(string(who))), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		for name, step := range steps(t, s, "as-1", "ses-1", now) {
			if _, err := step(); !errors.Is(err, state.ErrCorrupt) {
				t.Errorf("%s on %q: %v, want ErrCorrupt", name, content, err)
			}
		}
		if err := s.Ensure(t.Context(), who, now); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("Make over %q: %v, want ErrCorrupt", content, err)
		}
		if got, _ := os.ReadFile(tree.Abs(s.Path(string(who)))); string(got) != content {
			t.Errorf("%q was changed to %q", content, got)
		}
	}
}

// FuzzDecodeHook: what is accepted can be written and read again.
func FuzzDecodeHook(f *testing.F) {
	f.Add([]byte(`{"agent_id":"a","gen":7,"last_activity":"2026-03-05T10:32:00Z","status":"active","work_item":{"assigned_at":"2026-03-05T10:30:00Z","assignment_id":"as-k3f9q","bead_id":"gt-abc12","title":"x","y":1}}`))
	f.Add([]byte(`{"agent_id":"a","status":"empty","work_item":null,"z":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h Hook
		if state.Decode("p", data, &h) != nil || check(string(h.AgentID), &h) != nil {
			return
		}
		once, err := state.Encode(h)
		if err != nil {
			t.Fatal(err)
		}
		var again Hook
		if err := state.Decode("p", once, &again); err != nil {
			t.Fatal(err)
		}
		twice, err := state.Encode(again)
		if err != nil || string(once) != string(twice) || check(string(h.AgentID), &again) != nil {
			t.Fatalf("%s then %s, %v", once, twice, err)
		}
	})
}

// Another program hangs a bead without an assignment. It is taken off for that bead alone,
// and the gen goes on above every one that was there before.
func TestBareWorkItem(t *testing.T) {
	s, tree := newStore(t)
	before, err := s.Get(string(who))
	if err != nil {
		t.Fatal(err)
	}
	bare := `{"agent_id":"polecat-alpha","status":"pending","work_item":{"bead_id":"gt-aaaaa","title":"x"},"last_activity":"2026-03-05T10:30:00Z"}`
	if err := os.WriteFile(tree.Abs(s.Path(string(who))), []byte(bare), 0o644); err != nil {
		t.Fatal(err)
	}
	hung, err := s.Get(string(who))
	if err != nil || !hung.Bare() || CheckChange(&before, &hung) != nil {
		t.Fatalf("%+v, %v", hung, err)
	}
	for name, step := range steps(t, s, "as-1", "ses-1", now) {
		if _, err := step(); !errors.Is(err, state.ErrConflict) {
			t.Errorf("%s: %v, want ErrConflict", name, err)
		}
	}
	if _, err := s.TakeBare(t.Context(), who, "gt-bbbbb", now); !errors.Is(err, state.ErrConflict) {
		t.Errorf("another bead: %v, want ErrConflict", err)
	}
	after, err := s.TakeBare(t.Context(), who, "gt-aaaaa", now)
	if err != nil || after.Status != Empty || after.Gen <= now.UnixMilli() || CheckChange(&hung, &after) != nil {
		t.Errorf("%+v, %v", after, err)
	}
	bring(t, s, Pending)
	if _, err := s.TakeBare(t.Context(), who, "gt-aaaaa", now); !errors.Is(err, state.ErrConflict) {
		t.Errorf("an assignment of the rig: %v, want ErrConflict", err)
	}
}
