package terminal

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// lettersMsg is the person's mail, for a search.
type lettersMsg []mail.Entry

// search finds agents, convoys, beads, mail and events as the person types, and shows them
// in the place of the work.
func (b *Board) search() tea.Cmd {
	b.goTo(workPane)
	box := b.Rig.Mailbox(state.Human)
	letters := func() tea.Msg {
		all, _, _ := box.List() // errors are warnings of the view
		slices.Reverse(all)
		return lettersMsg(all)
	}
	return tea.Batch(letters, b.begins("/", b.work.filter, func(string) tea.Cmd { return nil }, b.filter))
}

func (b *Board) filter(text string) {
	b.work.filter = strings.TrimSpace(text)
	b.grow()
	b.layout()
}

// foundShown is the most messages, and the most events, that a search shows.
const foundShown = 100

// found returns the lines that contain every word of the search.
func (b *Board) found() (lines []workRow) {
	words := strings.Fields(strings.ToLower(b.work.filter))
	has := func(parts ...string) bool {
		text := strings.ToLower(strings.Join(parts, " "))
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	}
	for i := range b.view.Agents {
		if a := &b.view.Agents[i]; a.Role != agent.Human && has(string(a.ID), string(a.Role), string(a.BeadID), a.Title) {
			lines = append(lines, workRow{agent: a})
		}
	}
	for i := range b.view.Convoys {
		if c := &b.view.Convoys[i]; has(string(c.ID), c.Name) {
			lines = append(lines, workRow{convoy: c})
		}
	}
	var items []*view.WorkItem
	for _, item := range b.view.Work {
		if item.Matches(words) {
			items = append(items, item)
		}
	}
	slices.SortStableFunc(items, order)
	for _, item := range items {
		lines = append(lines, workRow{item: item})
	}
	most := len(lines) + foundShown
	for i := 0; i < len(b.letters) && len(lines) < most; i++ {
		if e := &b.letters[i]; has(string(e.From), e.Subject, e.Body) {
			lines = append(lines, workRow{letter: e})
		}
	}
	most = len(lines) + foundShown
	for i := len(b.view.Story) - 1; i >= 0 && len(lines) < most; i-- {
		if e := &b.view.Story[i]; has(e.Type, string(e.Agent), string(e.Bead), e.Subject, e.Text) {
			lines = append(lines, workRow{event: e})
		}
	}
	return lines
}

// drawFound draws a line that only a search shows.
func (b *Board) drawFound(l *workRow) []cell {
	t := &b.theme
	row := func(mark, who, text string, at state.Time) []cell {
		return []cell{{text: mark, style: t.moving, width: 1}, {text: who, style: t.dim, width: 15}, {text: text, style: t.plain}, {text: b.age(at), style: t.dim, width: 6, right: true}}
	}
	switch {
	case l.agent != nil:
		word, style := b.stateOf(l.agent)
		return []cell{{text: "@", style: t.key, width: 1}, {text: string(l.agent.ID), style: t.bold, width: 15}, {text: word, style: style, width: 9}, {text: l.agent.Title, style: t.plain}}
	case l.letter != nil:
		return row("m", string(l.letter.From), l.letter.Subject, l.letter.Timestamp)
	}
	return row("·", string(l.event.Agent), fmt.Sprintf("%s %s %s", l.event.Type, l.event.Bead, view.EventText(l.event)), l.event.Time)
}
