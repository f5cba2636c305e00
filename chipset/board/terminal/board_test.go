package terminal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

var update = flag.Bool("update", false, "write the frames in testdata anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC // frames show times of day
	os.Exit(rigtest.Main(m))
}

// fixture is a board over a rig with something of everything.
type fixture struct {
	*testing.T
	*rigtest.Yard
	board *Board
	// ran are the command lines that the board ran; fail is the error of the next ones.
	ran  []string
	fail error
}

func newFixture(t *testing.T, width, height int) *fixture {
	t.Helper()
	f := &fixture{T: t, Yard: rigtest.NewYard(t)}
	f.Now = rigtest.Noon().Add(-time.Hour)
	f.fill()
	f.Now = rigtest.Noon()
	f.Git = nil // its hashes are other ones each time
	f.board = New(Options{Rig: f.Rig, Model: view.NewModel(f.Rig, nil), Words: process.ParseCommand,
		Run: func(_ context.Context, args []string) (string, error) {
			f.ran = append(f.ran, strings.Join(args, " "))
			return "done\n", f.fail
		}})
	f.Update(tea.WindowSizeMsg{Width: width, Height: height})
	f.look()
	return f
}

// fill makes the rig busy. Titles are hostile.
func (f *fixture) fill() {
	f.Hang(f.PutBead("gt-work1", bead.InProgress, func(b *bead.Bead) {
		b.Title, b.Description = "Write \x1b[31mthe\x07 README\u202e backwards", "In the style\nof the others."
	}), hook.Active)
	f.PutRequest(f.PutBead("gt-done1", bead.Done, nil), mergequeue.Conflicted, func(q *mergequeue.Request) {
		q.Failure, q.Reason = mergequeue.FailConflict, "conflict in README.md\nand more"
	})
	f.PutRequest(f.PutBead("gt-done2", bead.Done, func(b *bead.Bead) { b.Assignee = "polecat-bravo" }), mergequeue.Pending, nil)
	f.PutBead("gt-open1", bead.Open, func(b *bead.Bead) {
		b.Title = "用中文写一份很长的文档，说明这个系统是如何工作的，以及为什么这样工作"
	})
	f.PutBead("gt-open2", bead.Open, func(b *bead.Bead) { b.Title, b.BlockedBy = "اكتب الوثائق", []state.BeadID{"gt-work1"} })
	f.PutBead("gt-open3", bead.Open, func(b *bead.Bead) { b.Title, b.BlockedBy = "after the others", []state.BeadID{"gt-open2", "gt-open1"} })
	f.PutBead("gt-stop1", bead.Blocked, func(b *bead.Bead) { b.CloseReason = "attempt 3 of 3 failed: exit code 3" })
	f.PutBead("gt-merg1", bead.Merged, func(b *bead.Bead) { b.ConvoyID = "cv-a" })
	f.PutBead("gt-open4", bead.Open, func(b *bead.Bead) { b.Title, b.ConvoyID = "of the convoy", "cv-a" })
	f.Must(f.Convoys.Put("cv-a", convoy.Convoy{ID: "cv-a", Name: "the first", BeadIDs: []state.BeadID{"gt-merg1", "gt-open4"}, CreatedAt: f.At()}))
	f.Must(f.Tree.Remove(event.Dir.Join("2026-03-05.jsonl")))
	f.Events.Tell(event.HandoffWritten("polecat-alpha", event.Work{Bead: "gt-work1"}, "hand-off", "half of it \x1b]0;is\x07 written"),
		event.BeadMoved("refinery", event.BeadMove{Bead: "gt-merg1", From: "done", To: "merged"}))
	f.Now = f.Now.Add(50 * time.Minute)
	_, err := f.Sender.Send(f.Context(), mail.Message{From: "polecat-alpha", To: "human", Type: mail.PlanRequest, Subject: "plan", Body: "First the head,\nthen the rest.",
		Priority: mail.Normal, Ref: &mail.Ref{BeadID: "gt-work1", AssignmentID: "as-gt-work1"}})
	f.Must(err)
}

// look is what the board does when something has changed.
func (f *fixture) look() {
	f.Helper()
	v, parts, err := f.board.Model.Update(f.Context())
	f.Must(err)
	f.Update(viewMsg{v, parts, nil})
	f.load()
}

// load loads the detail at once.
func (f *fixture) load() {
	if cmd := f.board.due(dueMsg(f.board.detail.asked)); cmd != nil {
		f.Update(cmd())
	}
}

// Update gives the board a message, and returns its command.
func (f *fixture) Update(msg tea.Msg) tea.Cmd {
	_, cmd := f.board.Update(msg)
	return cmd
}

// press presses keys, and does what a command does that is begun by the last one.
func (f *fixture) press(keys ...string) {
	f.Helper()
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k, Code: []rune(k)[0]}
		if code, special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "down": tea.KeyDown, "end": tea.KeyEnd}[k]; special {
			msg = tea.KeyPressMsg{Code: code}
		}
		cmd := f.Update(msg)
		if f.board.running != nil {
			f.Update(f.ranOf(cmd))
		}
		f.load()
	}
}

// ranOf finds the end of a command among the messages of cmd.
func (f *fixture) ranOf(cmd tea.Cmd) tea.Msg {
	f.Helper()
	switch msg := cmd().(type) {
	case ranMsg:
		return msg
	case tea.BatchMsg:
		for _, c := range msg {
			if c == nil {
				continue
			}
			if ran, is := c().(ranMsg); is {
				return ran
			}
		}
	}
	f.Fatal("no command was run")
	return nil
}

func (f *fixture) write(text string) {
	f.Helper()
	for _, r := range text {
		f.press(string(r))
	}
}

// frame is the screen without colours. Every line is as wide as the screen.
func (f *fixture) frame() string {
	f.Helper()
	lines := f.board.screen()
	if len(lines) != f.board.height {
		f.Errorf("%d lines on a screen of %d", len(lines), f.board.height)
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w != f.board.width && i < len(lines)-1 {
			f.Errorf("line %d is %d columns wide on a screen of %d: %q", i, w, f.board.width, l)
		}
		lines[i] = strings.TrimRight(ansi.Strip(l), " ")
	}
	text := strings.Join(lines, "\n") + "\n"
	for _, no := range []string{"\x1b", "\x07", "\u202e"} {
		if strings.Contains(text, no) {
			f.Errorf("%q reaches the screen", no)
		}
	}
	return text
}

func (f *fixture) golden(name string) {
	f.Helper()
	got, path := f.frame(), filepath.Join("testdata", name+".txt")
	if *update {
		f.Must(os.MkdirAll("testdata", 0o755))
		f.Must(os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	f.Must(err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		f.Errorf("%s (-want +got; go test -update writes it anew):\n%s", name, diff)
	}
}

// TestFrames holds whole screens, at the sizes that people have.
func TestFrames(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 34}, {250, 70}} {
		f := newFixture(t, size[0], size[1])
		f.golden(fmt.Sprintf("needs-%dx%d", size[0], size[1]))
		f.press("3", "down", "enter")
		f.golden(fmt.Sprintf("detail-%dx%d", size[0], size[1]))
	}
}

// TestEverySizeIsWhole: every line has the width of the screen, whatever that is.
func TestEverySizeIsWhole(t *testing.T) {
	f := newFixture(t, 80, 24)
	var sizes []tea.WindowSizeMsg
	for w := leastWidth; w < 260; w += 7 {
		for _, h := range []int{leastHeight, 24, 70} {
			sizes = append(sizes, tea.WindowSizeMsg{Width: w, Height: h})
		}
	}
	for h := leastHeight; h < 80; h += 5 {
		sizes = append(sizes, tea.WindowSizeMsg{Width: wide - 1, Height: h}, tea.WindowSizeMsg{Width: wide, Height: h})
	}
	for _, size := range sizes {
		f.Update(size)
		for _, k := range []string{"1", "2", "3", "4", "5", "?", "x"} {
			f.press(k)
			f.frame()
			if f.Failed() {
				t.Fatalf("at %dx%d after %s", size.Width, size.Height, k)
			}
		}
	}
	f.Update(tea.WindowSizeMsg{Width: 20, Height: 5})
	if got := f.board.screen()[0]; !strings.HasPrefix(got, "the board needs") {
		t.Errorf("a screen that is too small says %q", got)
	}
}

// TestActs: each key runs the command that does it, on what is selected.
func TestActs(t *testing.T) {
	for name, row := range map[string]struct {
		keys []string
		text string
		want string
	}{
		"approve":              {keys: []string{"a"}, want: "approve 2"},
		"deny with a reason":   {keys: []string{"d"}, text: "too long", want: "deny 2 --reason=too long"},
		"answer":               {keys: []string{"1", "end", "r"}, text: "use main", want: "answer -- 1 use main"},
		"text like a flag":     {keys: []string{"1", "end", "r"}, text: "--no, -f", want: "answer -- 1 --no, -f"},
		"a reason like a flag": {keys: []string{"d"}, text: "--remember", want: "deny 2 --reason=--remember"},
		"reopen":               {keys: []string{"1", "end", "o"}, want: "reopen gt-stop1"},
		"retry":                {keys: []string{"4", "t"}, want: "queue retry mr-gt-done1"},
		"priority":             {keys: []string{"1", "end", "p"}, text: "", want: "work edit gt-stop1 --priority=P2"},
		"nudge":                {keys: []string{"2", "end", "n"}, text: "look", want: "nudge send polecat-bravo --type=sync_request --message=look"},
		"mail":                 {keys: []string{"2", "end", "m"}, text: "look", want: "mail send polecat-bravo --subject=look --body="},
		"stop, confirmed":      {keys: []string{"s", "y"}, want: "unsling gt-work1"},
		"stop, not confirmed":  {keys: []string{"s", "q"}},
		"cancel, confirmed":    {keys: []string{"c", "y"}, want: "work cancel gt-work1"},
		"drop asks and warns":  {keys: []string{"4", "x"}, text: "by hand", want: ""},
		"a key without object": {keys: []string{"2", "end", "a", "s", "c"}},
		"any command":          {keys: []string{":"}, text: "chipset mail send mayor -s 'a b'", want: "mail send mayor -s a b"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 120, 34)
			f.press(row.keys...)
			f.write(row.text)
			if f.board.prompt != nil {
				f.press("enter")
			}
			if got := strings.Join(f.ran, "; "); got != row.want {
				t.Errorf("ran %q, want %q", got, row.want)
			}
		})
	}
}

// TestConfirmationsNameWhatIsLost before anything happens.
func TestConfirmationsNameWhatIsLost(t *testing.T) {
	f := newFixture(t, 100, 30)
	f.press("c")
	for _, want := range []string{"Cancel gt-work1", "polecat-alpha stops working on it", "refs/chipset/salvage/as-gt", "can't start any more: gt-open2"} {
		if got := f.frame(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	f.press("n")
	if f.board.box != nil || len(f.ran) > 0 {
		t.Errorf("after no: ran %q", f.ran)
	}
	f.press("4", "x")
	f.write("by hand")
	f.press("enter")
	if got := f.frame(); !strings.Contains(got, "mr-gt-done1 will not land") || len(f.ran) > 0 {
		t.Errorf("ran %q before it was confirmed:\n%s", f.ran, got)
	}
	f.press("y")
	if len(f.ran) != 1 || f.ran[0] != "queue drop mr-gt-done1 --reason=by hand" {
		t.Errorf("ran %q", f.ran)
	}
}

// TestWhatAnActSays: its error stays until the next key, on one line.
func TestWhatAnActSays(t *testing.T) {
	f := newFixture(t, 80, 24)
	f.fail = errors.New("need 2: nothing waits for it\nhint: chipset inbox")
	f.press("a")
	if got := f.frame(); !strings.Contains(got, "✗ need 2: nothing waits for it hint: chipset inbox") {
		t.Error(got)
	}
	f.press("down")
	if got := f.frame(); strings.Contains(got, "✗ need 2") {
		t.Error(got)
	}
}

// TestFilterAsYouType: the work shrinks with each key, and comes back with esc.
func TestFilterAsYouType(t *testing.T) {
	f := newFixture(t, 80, 24)
	all := len(f.board.lists[workPane].keys)
	f.press("/")
	f.write("conv")
	if got := f.board.lists[workPane].keys; len(got) != 1 || got[0] != "gt-open4" {
		t.Errorf("found %q", got)
	}
	f.press("enter", "esc")
	if got := f.board.lists[workPane].keys; len(got) != all {
		t.Errorf("%d of %d after esc", len(got), all)
	}
}

// TestTheSelectionFollowsItsRow when others come before it.
func TestTheSelectionFollowsItsRow(t *testing.T) {
	f := newFixture(t, 80, 24)
	f.press("3", "end")
	before := f.board.lists[workPane].key()
	f.PutBead("gt-new01", bead.InProgress, func(b *bead.Bead) { b.Assignee = "polecat-bravo" })
	f.look()
	if got := f.board.lists[workPane].key(); got != before {
		t.Errorf("%s is selected, was %s", got, before)
	}
}

// TestNeedsAreNeverHidden, whatever has the focus, and go when their cause goes.
func TestNeedsAreNeverHidden(t *testing.T) {
	f := newFixture(t, 80, 24)
	for _, k := range []string{"2", "3", "4", "5"} {
		f.press(k)
		if got := f.frame(); !strings.Contains(got, "1 Needs you") || !strings.Contains(got, "gt-stop1") {
			t.Errorf("after %s:\n%s", k, got)
		}
	}
}

// TestWarnings: the head counts what is wrong, and a key shows it.
func TestWarnings(t *testing.T) {
	f := newFixture(t, 80, 24)
	f.Plant("state/work/gt-bad.json", "{")
	f.look()
	n := len(f.board.view.Warnings)
	if got := f.frame(); n == 0 || !strings.Contains(got, fmt.Sprintf("! %d w", n)) {
		t.Errorf("%d warnings in\n%s", n, got)
	}
	f.press("w")
	if got := f.frame(); !strings.Contains(got, "! state/work/gt-bad.json: not valid JSON") {
		t.Error(got)
	}
	f.press("esc")
	if f.board.detail.shown != nil {
		t.Error("esc does not go back")
	}
}

// TestMouse: a click selects, and a second one opens; the wheel moves.
func TestMouse(t *testing.T) {
	f := newFixture(t, 80, 24)
	at := f.board.places[workPane]
	f.Update(tea.MouseClickMsg{X: 5, Y: at.y + 2, Button: tea.MouseLeft})
	if f.board.focus != workPane || f.board.lists[workPane].cursor != 1 {
		t.Errorf("focus %v, row %d", f.board.focus, f.board.lists[workPane].cursor)
	}
	at = f.board.places[workPane]
	f.Update(tea.MouseClickMsg{X: 5, Y: at.y + 2, Button: tea.MouseLeft})
	if f.board.focus != detailPane {
		t.Errorf("the second click left the focus on %v", f.board.focus)
	}
}

// TestTranscript shows the end of a long one, cleaned.
func TestTranscript(t *testing.T) {
	f := newFixture(t, 120, 34)
	h, err := f.Hooks.Get("polecat-alpha")
	f.Must(err)
	long := strings.Repeat(`{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"again"}]}}`+"\n", 20_000)
	f.Plant(state.LogDir.Join(string(h.WorkItem.Session)+".log"), long+`{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"the \u001b[2Jend"}]}}`+"\n")
	f.press("2", "]")
	got := f.frame()
	if !strings.Contains(got, "the [2Jend") || !strings.Contains(got, "follows") {
		t.Error(got)
	}
	if n := len(f.board.detail.content); n > maxLines {
		t.Errorf("%d lines are held", n)
	}
}

// BenchmarkFrame is a key or a change and the frame after it, on a large screen: with ten
// beads, which is the baseline, and with 10,000.
func BenchmarkFrame(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		board, v := largeBoard(b, n)
		measure := func(name string, step func()) {
			b.Run(fmt.Sprintf("%s-beads=%d", name, n), func(b *testing.B) {
				var all []time.Duration
				for b.Loop() {
					began := time.Now()
					step()
					_ = board.View()
					all = append(all, time.Since(began))
				}
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
			})
		}
		measure("move", func() { board.Update(tea.KeyPressMsg{Code: tea.KeyDown}) })
		measure("change", func() { board.Update(viewMsg{v, view.AllParts, nil}) })
		measure("find", func() { board.filter("b099"); board.filter("") })
		board.work.graph = true
		measure("graph", func() { board.Update(viewMsg{v, view.AllParts, nil}) })
	}
}

// largeBoard is a board of so many beads, in chains of seven.
func largeBoard(b *testing.B, n int) (*Board, *view.View) {
	b.Helper()
	r := rigtest.New(b, "")
	v := &view.View{Status: view.Status{At: r.Clock.Now(), Rig: "r", Beads: map[bead.Status]int{}}}
	id := func(i int) state.BeadID { return state.BeadID(fmt.Sprintf("tt-b%05d", i)) }
	for i := range n {
		it := &view.WorkItem{Bead: &bead.Bead{ID: id(i), Title: "A title of the usual length, about this", Status: bead.Open, Priority: bead.P2}}
		if i%7 != 0 {
			it.Bead.BlockedBy = []state.BeadID{id(i - 1)}
			it.Waits = it.Bead.BlockedBy
		}
		if i%7 != 6 && i+1 < n {
			it.Blocks = []state.BeadID{id(i + 1)}
		}
		v.Work = append(v.Work, it)
	}
	board := New(Options{Rig: r, Model: view.NewModel(r, nil)})
	board.Update(tea.WindowSizeMsg{Width: 250, Height: 70})
	board.Update(viewMsg{v, view.AllParts, nil})
	board.goTo(workPane)
	return board, v
}
