package event

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

var start = time.Date(2026, 3, 5, 23, 59, 59, 0, time.UTC)

func newLog(t *testing.T) (*Log, *state.Tree) {
	t.Helper()
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	return NewLog(tree, nil), tree
}

func at(seconds int, kind string) Event {
	return Event{Time: state.At(start.Add(time.Duration(seconds) * time.Second)), Type: kind}
}

func TestReadFromAPosition(t *testing.T) {
	l, _ := newLog(t)
	if err := l.Append(at(0, "a.a"), at(1, "b.b")); err != nil { // two days
		t.Fatal(err)
	}
	events, bad, pos, err := l.Read(Position{}, time.Time{})
	if err != nil || len(bad) > 0 || len(events) != 2 || events[0].Type != "a.a" || events[1].Type != "b.b" {
		t.Fatalf("%v, %v, %v", events, bad, err)
	}
	if events, _, _, _ := l.Read(pos, time.Time{}); len(events) != 0 {
		t.Errorf("nothing is new, got %v", events)
	}
	if err := l.Append(at(2, "c.c")); err != nil {
		t.Fatal(err)
	}
	if events, _, _, _ := l.Read(pos, time.Time{}); len(events) != 1 || events[0].Type != "c.c" {
		t.Errorf("after the position: %v", events)
	}
	if events, _, _, _ := l.Read(Position{}, start.Add(time.Second)); len(events) != 2 {
		t.Errorf("since: %v", events)
	}
	if err := l.Sync(); err != nil {
		t.Error(err)
	}
}

func TestBrokenLines(t *testing.T) {
	l, tree := newLog(t)
	if err := l.Append(at(0, "a.a")); err != nil {
		t.Fatal(err)
	}
	day := tree.Abs(Dir.Join("2026-03-05.jsonl"))
	f, err := os.OpenFile(day, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\nnot json\n{\"torn\":"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.WriteFile(tree.Abs(Dir.Join("notes.txt")), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	events, bad, pos, err := l.Read(Position{}, time.Time{})
	if err != nil || len(events) != 1 || len(bad) != 2 || !strings.Contains(bad[0].Error(), "line 3") {
		t.Fatalf("%v, %v, %v", events, bad, err)
	}
	if err := l.Append(at(0, "b.b")); err != nil {
		t.Fatal(err)
	}
	events, bad, _, err = l.Read(pos, time.Time{})
	if err != nil || len(events) != 1 || events[0].Type != "b.b" || len(bad) != 2 {
		t.Errorf("after the torn line was closed: %v, %v, %v", events, bad, err)
	}
}

func TestLongTextIsCut(t *testing.T) {
	l, _ := newLog(t)
	e := at(0, "a.a")
	e.Text = strings.Repeat("ü", maxText)
	if err := l.Append(e); err != nil {
		t.Fatal(err)
	}
	events, _, _, err := l.Read(Position{}, time.Time{})
	if err != nil || len(events) != 1 || len(events[0].Text) > maxText+len("…") || !strings.HasSuffix(events[0].Text, "ü…") {
		t.Errorf("%v, %v", events, err)
	}
}

// A day that somebody moved away is no reason for an error.
func TestSyncOfADayThatIsGone(t *testing.T) {
	l, tree := newLog(t)
	if err := l.Append(at(0, "a.a")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(tree.Abs(Dir)); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		t.Error(err)
	}
}

// TestTailIsTheEndOfTheLog: what stands at the end of the log is read without the rest,
// whole lines only, and reading on from there misses nothing.
func TestTailIsTheEndOfTheLog(t *testing.T) {
	tree, err := state.Create(filepath.Join(t.TempDir(), ".chipset"))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 5, 23, 59, 58, 0, time.UTC)
	log := NewLog(tree, func() time.Time { at = at.Add(time.Second); return at })
	for i := range 6 { // one on the first day, five on the next
		log.Tell(HandoffWritten("mayor", Work{}, "h", fmt.Sprint(i)))
	}
	texts := func(events []Event) (s string) {
		for i := range events {
			s += events[i].Text
		}
		return s
	}
	whole, _, _, err := log.Read(Position{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	line, err := state.EncodeLine(whole[5])
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		lines float64
		want  string
	}{{100, texts(whole)}, {2.5, texts(whole[4:])}, {5.5, texts(whole[1:])}} {
		got, end, err := log.Tail(int64(row.lines * float64(len(line))))
		if err != nil || texts(got) != row.want {
			t.Errorf("%v lines: %q, %v; want %q", row.lines, texts(got), err, row.want)
		}
		if more, bad, _, err := log.Read(end, time.Time{}); err != nil || len(more)+len(bad) != 0 {
			t.Errorf("%v lines: %q comes again, %v %v", row.lines, texts(more), bad, err)
		}
	}
	_, end, err := log.Tail(10 * int64(len(line)))
	if err != nil {
		t.Fatal(err)
	}
	log.Tell(HandoffWritten("mayor", Work{}, "h", "new"))
	if more, _, _, err := log.Read(end, time.Time{}); err != nil || len(more) != 1 {
		t.Errorf("%q after the end, %v", texts(more), err)
	}
}
