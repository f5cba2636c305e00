package event

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

func types(events []Event) string {
	var all []string
	for i := range events {
		all = append(all, events[i].Type)
	}
	return strings.Join(all, " ")
}

// The last events about a word come oldest first, over days, whatever else stands in the log.
func TestAbout(t *testing.T) {
	l, tree := newLog(t)
	about := func(seconds int, kind, bead string) Event {
		e := at(seconds, kind)
		e.Bead = state.BeadID(bead)
		return e
	}
	if err := l.Append(about(0, "a.a", "tt-1"), about(1, "b.b", "tt-2"), about(2, "c.c", "tt-1"), about(3, "d.d", "tt-11"), about(4, "e.e", "tt-1")); err != nil {
		t.Fatal(err)
	}
	if err := tree.Append(Dir.Join("2026-03-06.jsonl"), []byte("\"tt-1\" torn\n")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tree.Abs(Dir.Join("2026-03-07.txt")), []byte(`{"type":"x.x","bead":"tt-1"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int]string{9: "a.a c.c e.e", 2: "c.c e.e", 0: ""} {
		events, err := l.About("tt-1", most, func(*Event) bool { return true })
		if err != nil || types(events) != want {
			t.Errorf("at most %d: %q, %v", most, types(events), err)
		}
	}
	if events, err := l.About("tt-1", 9, func(e *Event) bool { return e.Type != "c.c" }); err != nil || types(events) != "a.a e.e" {
		t.Errorf("chosen: %q, %v", types(events), err)
	}
}

func TestDayReadsOneDay(t *testing.T) {
	l, _ := newLog(t)
	if err := l.Append(at(0, "a.a"), at(1, "b.b")); err != nil {
		t.Fatal(err)
	}
	p := Dir.Join("2026-03-05.jsonl")
	day, data, err := l.Day(p)
	if events, bad := Lines(p, data); err != nil || day != "2026-03-05" || types(events) != "a.a" || len(bad) > 0 {
		t.Errorf("%s: %q, %v, %v", day, types(events), bad, err)
	}
	for _, name := range []string{"2026-03-05.txt", "notes.jsonl"} {
		if _, _, err := l.Day(Dir.Join(name)); !errors.Is(err, state.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := l.Day(Dir.Join("2026-03-09.jsonl")); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a day that is not there: %v", err)
	}
}

// What can't be read is said, and does not hide the rest.
func TestUnreadableDays(t *testing.T) {
	l, tree := newLog(t)
	if err := l.Append(at(0, "a.a"), at(1, "b.b")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"2026-03-04.jsonl", "notes.jsonl", "2026-03-08.txt"} {
		if err := os.Mkdir(tree.Abs(Dir.Join(name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	events, bad, _, err := l.Read(Position{}, time.Time{})
	if err != nil || types(events) != "a.a b.b" || len(bad) != 3 {
		t.Errorf("%q, %d bad: %v, %v", types(events), len(bad), bad, err)
	}
	if events, _, err := l.Tail(10); err != nil || len(events) > 1 {
		t.Errorf("the tail of one day: %q, %v", types(events), err)
	}
	if _, _, err := l.Tail(1 << 20); err == nil {
		t.Error("a day that can't be read is no error")
	}
	if err := os.RemoveAll(tree.Abs(Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tree.Abs(Dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := l.Read(Position{}, time.Time{}); err == nil {
		t.Error("Read: no log, no error")
	}
	if _, _, err := l.Tail(1); err == nil {
		t.Error("Tail: no log, no error")
	}
	if _, err := l.About("x", 1, func(*Event) bool { return true }); err == nil {
		t.Error("About: no log, no error")
	}
}

// An event keeps its time, or gets that of its telling; a nil log hears nothing.
func TestTellDatesEvents(t *testing.T) {
	_, tree := newLog(t)
	l := NewLog(tree, func() time.Time { return start })
	own := at(5, "own.own")
	l.Tell(Event{Type: "new.new"}, own)
	l.Tell()
	(*Log)(nil).Tell(own)
	events, _, _, err := l.Read(Position{}, time.Time{})
	if err != nil || len(events) != 2 || !events[0].Time.Equal(start) || !events[1].Time.Equal(own.Time.Time) {
		t.Errorf("%+v, %v", events, err)
	}
}

// thing is an object of a store.
type thing struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// A recorder tells each change that was made, once, in its author's name, and none that was not.
func TestRecorder(t *testing.T) {
	_, tree := newLog(t)
	l := NewLog(tree, func() time.Time { return start })
	store := state.NewStore(tree, "state/things", "thing", state.LockRecord, func(string, *thing) error { return nil })
	r := Record(store, l, func(before, after *thing) (Event, bool) {
		was := -1
		if before != nil {
			was = before.N
		}
		return Event{Type: fmt.Sprintf("thing.%s.%d.%d", after.ID, was, after.N), Agent: "nobody", Text: "text"}, after.N != 99
	}).By("mayor", "why")
	told := ""
	expect := func(what string, err error, fails bool, events string) {
		t.Helper()
		all, _, _, readErr := l.Read(Position{}, time.Time{})
		now := types(all)
		if (err != nil) != fails || readErr != nil || strings.TrimSpace(strings.TrimPrefix(now, told)) != events {
			t.Errorf("%s: %v, tells %q, want %q", what, err, strings.TrimPrefix(now, told), events)
		}
		for i := range all {
			if all[i].Agent != "mayor" || all[i].Text != "why" {
				t.Errorf("%s: told by %s as %q", what, all[i].Agent, all[i].Text)
			}
		}
		told = now
	}
	set := func(n int, err error) func(*thing) error {
		return func(v *thing) error { v.N = n; return err }
	}
	upsert := func(n int, err error) func(*thing, bool) error {
		return func(v *thing, found bool) error { v.ID, v.N = "b", n; return err }
	}
	ctx, broken := t.Context(), errors.New("broken")
	expect("create", r.Create("a", thing{"a", 1}), false, "thing.a.-1.1")
	expect("create again", r.Create("a", thing{"a", 2}), true, "")
	_, err := r.Update(ctx, "a", set(2, nil))
	expect("update", err, false, "thing.a.1.2")
	_, err = r.Update(ctx, "a", set(3, state.ErrUnchanged))
	expect("nothing to update", err, false, "")
	_, err = r.Update(ctx, "a", set(3, broken))
	expect("refused", err, true, "")
	_, err = r.UpdateThen(ctx, "a", set(3, nil), func() error { return broken })
	expect("the act fails", err, true, "")
	_, err = r.Update(ctx, "a", set(99, nil))
	expect("not told", err, false, "")
	_, err = r.Upsert(ctx, "b", upsert(1, nil))
	expect("upsert of a new one", err, false, "thing.b.-1.1")
	_, err = r.Upsert(ctx, "b", upsert(2, nil))
	expect("upsert of an old one", err, false, "thing.b.1.2")
	_, err = r.Upsert(ctx, "b", upsert(3, broken))
	expect("upsert that is refused", err, true, "")
	_, err = r.Upsert(ctx, "b", upsert(3, state.ErrUnchanged))
	expect("upsert of nothing", err, false, "")
	errs := r.CreateAll([]thing{{"a", 5}, {"c", 5}, {"d", 99}}, func(v *thing) string { return v.ID })
	expect("create all", errors.Join(errs...), true, "thing.c.-1.5")
}

// Events of incidents, nudges and saved work say what is about them.
func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		Incident{Kind: "stuck"}.build("i.i", "a", "b", "").Text: "stuck", Incident{Kind: "stuck"}.build("i.i", "a", "b", "why").Text: "stuck: why",
		Nudge{Type: "wake"}.build("n.n", "mayor").Text: "wake", Nudge{Type: "wake", Message: "up"}.build("n.n", "mayor").Text: "wake: up",
		WorkerSalvaged("mayor", Work{}, "refs/x", "why").Subject: "refs/x",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if e := WorkerTotals("mayor", Work{}, "t", nil); e.Extra != nil {
		t.Errorf("without figures: %v", e.Extra)
	}
}
