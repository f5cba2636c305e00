package terminal

import (
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// find types a search, with the mail that it looks for at its beginning.
func (f *fixture) find(text string) {
	f.Helper()
	cmd := f.board.search()
	for _, c := range cmd().(tea.BatchMsg) {
		if msg, is := c().(lettersMsg); is {
			f.Update(msg)
		}
	}
	f.write(text)
	f.load()
}

// TestSearchEverything: agents, convoys, beads, mail and events are found, and each is shown.
func TestSearchEverything(t *testing.T) {
	for name, row := range map[string]struct{ search, line, detail string }{
		"an agent":  {"alpha polecat", "@ polecat-alpha", "gt-work1"},
		"a convoy":  {"the first", "the first", "1 of 2 have landed"},
		"a bead":    {"中文写", "gt-open1", "用中文写一份很长的文档"},
		"a message": {"first the head", "m polecat-alpha   plan", "then the rest."},
		"an event":  {"half of it", "handoff.written gt-work1", "Write [31mthe README"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 120, 34)
			f.find(row.search)
			f.press("enter")
			if got := f.frame(); !strings.Contains(got, "3 Found") || !strings.Contains(got, row.line) {
				t.Errorf("no %q in\n%s", row.line, got)
			}
			f.press("home")
			for f.board.lists[workPane].cursor < len(f.board.tree)-1 && !strings.Contains(f.frame(), row.detail) {
				f.press("down")
			}
			if got := f.frame(); !strings.Contains(got, row.detail) {
				t.Errorf("no %q in\n%s", row.detail, got)
			}
		})
	}
}

// TestGraph: each bead stands below all that it waits for, and rails lead there.
func TestGraph(t *testing.T) {
	f := newFixture(t, 120, 40)
	for id, after := range map[state.BeadID][]state.BeadID{"gt-x1": nil, "gt-x2": {"gt-x1"}, "gt-x3": {"gt-x1"}, "gt-x4": {"gt-x1", "gt-x3"}, "gt-x5": {"gt-x2", "gt-x4"}, "gt-y1": {"gt-y2"}, "gt-y2": {"gt-y1"}} {
		f.PutBead(id, bead.Open, func(b *bead.Bead) { b.BlockedBy = after })
	}
	f.look()
	f.press("3", ",")
	var got strings.Builder
	for _, l := range f.board.tree {
		if strings.HasPrefix(string(l.item.Bead.ID), "gt-x") || strings.HasPrefix(string(l.item.Bead.ID), "gt-y") {
			got.WriteString(l.rail + " " + string(l.item.Bead.ID) + "\n")
		}
	}
	want := `*─╮─╮ gt-x1
* │ │ gt-x2
│ *─┤ gt-x3
├───* gt-x4
* gt-x5
* gt-y1
* gt-y2
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	f.frame()
	f.press(",")
	if f.board.tree[0].rail != "" {
		t.Error("a second key leaves the graph")
	}
}

// TestEveryBeadIsInTheGraph once, behind what it waits for, whatever waits for what.
func TestEveryBeadIsInTheGraph(t *testing.T) {
	var all []*view.WorkItem
	for i := range 300 {
		it := &view.WorkItem{Bead: &bead.Bead{ID: state.BeadID("gt-" + string(rune('a'+i%26)) + string(rune('a'+i/26))), Priority: bead.P2, Status: bead.Open}}
		all = append(all, it)
	}
	for i, it := range all {
		for _, by := range []int{2, 3, 17} {
			if i*by+1 < len(all) && i > 0 {
				it.Blocks = append(it.Blocks, all[i*by+1].Bead.ID)
			}
		}
	}
	at := map[state.BeadID]int{}
	for i, row := range graphRows(all) {
		at[row.item.Bead.ID] = i + 1
		if strings.Count(row.rail, "*") != 1 {
			t.Fatalf("%s has the rails %q", row.item.Bead.ID, row.rail)
		}
	}
	for _, it := range all {
		for _, id := range it.Blocks {
			if at[it.Bead.ID] == 0 || at[id] <= at[it.Bead.ID] {
				t.Errorf("%s stands before %s", id, it.Bead.ID)
			}
		}
	}
}

// edits is what the person's editor leaves.
func (f *fixture) edits(id state.BeadID, text string, err error) (e edit) {
	f.Helper()
	e = edit{id: id, file: f.TempDir() + "/bead.md", before: editText(f.board.view.Work.Find(id).Bead)}
	f.Must(os.WriteFile(e.file, []byte(text), 0o600))
	if cmd := f.Update(editedMsg{e, err}); cmd != nil {
		f.Update(f.ranOf(cmd))
	}
	return e
}

// TestEditABead: its title and description go through the command; what can't be taken over
// is not lost.
func TestEditABead(t *testing.T) {
	f := newFixture(t, 120, 34)
	e := f.edits("gt-stop1", "A new title\n\nOne line\nand another.\n", nil)
	if got := strings.Join(f.ran, "; "); got != "work edit gt-stop1 --title=A new title --description=One line\nand another." {
		t.Errorf("ran %q", got)
	}
	if _, err := os.Stat(e.file); err == nil {
		t.Error("the file is left behind")
	}
	f.ran = nil
	f.edits("gt-stop1", editText(f.board.view.Work.Find("gt-stop1").Bead), nil)
	if len(f.ran) > 0 || f.board.message != "nothing changed" {
		t.Errorf("unchanged: ran %q, said %q", f.ran, f.board.message)
	}
	f.fail = os.ErrPermission
	e = f.edits("gt-stop1", "Refused\n", nil)
	if _, err := os.Stat(e.file); err != nil || !strings.Contains(f.board.message, "your text is in "+e.file) {
		t.Errorf("refused: %v, said %q", err, f.board.message)
	}
	f.fail, f.ran = nil, nil
	stale := edit{id: "gt-stop1", file: e.file, before: "another title\n"}
	f.Update(editedMsg{stale, nil})
	if len(f.ran) > 0 || !strings.Contains(f.board.message, "was changed meanwhile; your text is in") {
		t.Errorf("stale: ran %q, said %q", f.ran, f.board.message)
	}
	f.press("2", "e")
	if !strings.Contains(f.board.message, "can't be edited") && !strings.Contains(f.board.message, "no bead") {
		t.Errorf("a bead in progress: %q", f.board.message)
	}
}

// TestALongTranscriptOpensAtOnce: of 200 MB the end is read.
func TestALongTranscriptOpensAtOnce(t *testing.T) {
	f := newFixture(t, 120, 34)
	h, err := f.Hooks.Get("polecat-alpha")
	f.Must(err)
	path := rig.Transcript(h.WorkItem.Session)
	f.Plant(path, "")
	f.Must(os.Truncate(f.Tree.Abs(path), 200<<20)) // a hole: nothing of it should be read
	file, err := os.OpenFile(f.Tree.Abs(path), os.O_APPEND|os.O_WRONLY, 0)
	f.Must(err)
	_, err = file.WriteString("\nthe last words\n")
	f.Must(err)
	f.Must(file.Close())
	f.press("2", "]")
	if got := f.frame(); !strings.Contains(got, "the last words") {
		t.Error(got)
	}
	if n := len(f.board.detail.content); n > 10 {
		t.Errorf("%d lines were read", n)
	}
}
