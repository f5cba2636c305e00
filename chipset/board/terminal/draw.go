package terminal

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Least size of a screen that shows anything.
const (
	leastWidth  = 40
	leastHeight = 12
)

// View implements tea.Model.
func (b *Board) View() tea.View {
	v := tea.NewView(strings.Join(b.screen(), "\n"))
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "chipset " + fit(b.view.Rig, len(b.view.Rig), false)
	if n := len(b.view.Needs); n > 0 {
		v.WindowTitle = fmt.Sprintf("(%d) %s", n, v.WindowTitle)
	}
	return v
}

// screen draws all lines, each as wide as the screen.
func (b *Board) screen() []string {
	switch {
	case b.width == 0:
		return nil
	case b.width < leastWidth || b.height < leastHeight:
		return []string{fit(fmt.Sprintf("the board needs %d×%d", leastWidth, leastHeight), b.width, false)}
	case b.view.At.IsZero():
		return []string{line(b.width, nil, cell{text: " looking at the rig …", style: b.theme.dim})}
	}
	out := []string{b.head()}
	left, right := b.column(0), b.column(b.places[detailPane].x)
	for i := range b.height - 2 {
		l := at(left, i)
		if b.places[detailPane].x > 0 {
			l += at(right, i)
		}
		out = append(out, l)
	}
	out = append(out, b.foot())
	if b.box != nil {
		out = overlay(out, b.box, b.width)
	}
	return out
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// column draws the panes that begin at a column, from above.
func (b *Board) column(x int) []string {
	var out []string
	for p := range paneCount {
		if r := b.places[p]; r.h > 0 && r.x == x {
			out = append(out, b.pane(p, r)...)
		}
	}
	return out
}

// pane draws one pane.
func (b *Board) pane(p paneID, r rect) []string {
	t := &b.theme
	w, h := r.inner()
	border, title := t.border, t.title
	switch {
	case b.focus == p:
		border, title = t.focus, t.focus.Bold(true)
	case p == needsPane:
		border, title = t.need, t.bad
	}
	if p == detailPane {
		return frame(border, title, r, "5 "+b.detail.name(), b.detail.tabs(t), b.detail.position(h), b.detail.draw(t, w, h))
	}
	l, name := &b.lists[p], p.String()
	if p == workPane && b.work.filter != "" {
		name = "Found"
	}
	return frame(border, title, r, fmt.Sprintf("%d %s", p+1, name), b.note(p), l.position(h), l.lines(t, w, h, b.focus == p))
}

// note is the text at the right of a pane's title.
func (b *Board) note(p paneID) string {
	t, v := &b.theme, b.view
	switch p {
	case needsPane:
		return t.bad.Render(wording.Count(len(v.Needs), "decision"))
	case agentsPane:
		alive, all := b.alive()
		return t.dim.Render(fmt.Sprintf("%d of %d running", alive, all))
	case workPane:
		if b.work.filter != "" {
			return t.warn.Render(fmt.Sprintf("/%s: %d", fit(b.work.filter, min(20, ansi.StringWidth(b.work.filter)), false), len(b.tree)))
		}
		parts := []string{fmt.Sprintf("%d ready", v.Ready)}
		if n := v.Beads[bead.Merged] + v.Beads[bead.Closed]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d landed", n))
		}
		return t.dim.Render(strings.Join(parts, ", "))
	case queuePane:
		return t.dim.Render(fmt.Sprintf("%d waiting", len(v.Queue)))
	case detailPane, paneCount:
	}
	return ""
}

func (b *Board) alive() (alive, all int) {
	for i := range b.view.Agents {
		if a := &b.view.Agents[i]; a.Role != agent.Human && a.Role != agent.Crew {
			all++
			if a.Alive {
				alive++
			}
		}
	}
	return alive, all
}

// head is the first line: the rig, whether it is up, the numbers of beads, the cost.
func (b *Board) head() string {
	t, v := &b.theme, b.view
	name := t.bold.Reverse(true).Render(" " + fit(v.Rig, min(24, ansi.StringWidth(v.Rig)), false) + " ")
	var parts []string
	alive, _ := b.alive()
	working, begun := v.Beads[bead.InProgress]+v.Beads[bead.Hooked], "at work"
	if alive == 0 {
		begun = "interrupted"
	}
	switch {
	case b.trouble != "":
		parts = append(parts, t.bad.Render("✗ "+fit(b.trouble, min(60, ansi.StringWidth(b.trouble)), false)))
	case alive == 0 && b.width >= wide:
		parts = append(parts, t.warn.Render("○ down")+t.dim.Render(": chipset up starts it"))
	case alive == 0:
		parts = append(parts, t.warn.Render("○ down"))
	case len(v.Pauses) > 0:
		parts = append(parts, t.warn.Render("‖ "+fit(string(v.Pauses[0].Scope)+" paused", 30, false)))
	default:
		parts = append(parts, t.good.Render("● up"))
	}
	if n := len(v.Needs); n == 1 {
		parts = append(parts, t.bad.Render("1 needs you"))
	} else if n > 1 {
		parts = append(parts, t.bad.Render(fmt.Sprintf("%d need you", n)))
	} else {
		parts = append(parts, t.good.Render("nothing needs you"))
	}
	if n := len(v.Incidents) + len(v.Warnings); n > 0 {
		said := fmt.Sprint(n)
		if b.width >= 100 {
			said = wording.Count(n, "warning")
		}
		parts = append(parts, t.warn.Render("! "+said)+" "+t.key.Render("w"))
	}
	for _, c := range []struct {
		n     int
		word  string
		style lipgloss.Style
	}{{working, begun, t.busy}, {len(v.Queue), "to land", t.moving}, {v.Beads[bead.Merged] + v.Beads[bead.Closed], "landed", t.good}} {
		if c.n > 0 {
			parts = append(parts, c.style.Render(fmt.Sprintf("%d %s", c.n, c.word)))
		}
	}
	if spent := v.SpentWords(); spent != "" {
		parts = append(parts, t.plain.Render(spent))
	}
	text := name + "  " + strings.Join(parts, t.dim.Render("  ·  "))
	target := ""
	if v.Target != "" {
		target = t.dim.Render(fit(v.Target+" "+wording.ShortHash(v.Tip)+" "+v.TipSubject, min(50, max(0, b.width-ansi.StringWidth(text)-3)), true))
	}
	text = ansi.Truncate(text, b.width, "…")
	return text + strings.Repeat(" ", max(0, b.width-ansi.StringWidth(text)-ansi.StringWidth(target))) + target
}

// foot is the last line: a question, a message, or the keys.
func (b *Board) foot() string {
	t := &b.theme
	switch {
	case b.prompt != nil:
		text := t.key.Render(b.prompt.question) + " " + b.prompt.View()
		if b.prompt.question == "/" || b.prompt.question == ":" {
			text = t.key.Render(b.prompt.question) + b.prompt.View()
		}
		return ansi.Truncate(text, b.width, "")
	case b.message != "":
		style := t.good
		if b.failed {
			style = t.bad
		}
		return line(b.width, nil, cell{text: b.message, style: style})
	}
	s := b.subject().Subject
	var keys []string
	for i := range b.acts {
		if a := &b.acts[i]; a.Can(s) {
			keys = append(keys, t.key.Render(a.Key)+" "+a.Name)
		}
	}
	tail := []string{t.key.Render("/") + " find", t.key.Render(":") + " command", t.key.Render("?") + " help", t.key.Render("q") + " quit"}
	if b.detail.shown != nil || b.focus == detailPane || b.work.filter != "" {
		tail = append([]string{t.key.Render("esc") + " back"}, tail...)
	}
	end := strings.Join(tail, "  ")
	begin := strings.Join(keys, "  ")
	if room := b.width - ansi.StringWidth(end) - 2; ansi.StringWidth(begin) > room {
		begin = ansi.Truncate(begin, max(0, room), "…")
	}
	return begin + strings.Repeat(" ", max(1, b.width-ansi.StringWidth(begin)-ansi.StringWidth(end))) + ansi.Truncate(end, b.width, "")
}

// dialog is a box with a question and what the answer loses.
func (b *Board) dialog(title string, lost []string) []string {
	width := min(b.width-4, 72)
	var lines []string
	put := func(l styled) {
		for _, w := range wrap([]styled{l}, width-4) {
			lines = append(lines, " "+w.style.Render(fit(w.text, width-4, false))+" ")
		}
	}
	put(styled{text: title, style: b.theme.bold})
	put(styled{})
	for _, l := range lost {
		put(styled{text: l, style: b.theme.warn})
	}
	put(styled{})
	put(styled{text: "y: yes    any other key: no", style: b.theme.key})
	return frame(b.theme.need, b.theme.bad, rect{w: width, h: len(lines) + 2}, "Are you sure?", "", "", lines)
}

// help is a box with every key.
func (b *Board) help() []string {
	rows := [][2]string{{"tab 1…5", "go to the next pane, or to one of them"}, {"↑ ↓ j k", "move; also pgup pgdn home end"}, {"enter", "open the detail; esc goes back"},
		{"[ ] ← →", "story, transcript, diff and mail of the selection"}, {"/", "find agents, work, mail and events as you type"}, {". ,", "show or hide finished work; show work as a tree or a graph"},
		{"w", "warnings, incidents and pauses"}, {":", "run any chipset command"}, {"e v E", "edit the bead; view its transcript; open its worktree in your editor"}}
	for i := range b.acts {
		rows = append(rows, [2]string{b.acts[i].Key, b.acts[i].About})
	}
	rows = append(rows, [2]string{"q", "leave the board; the rig keeps running"})
	width := min(b.width-4, 78)
	var lines []string
	for _, r := range rows {
		lines = append(lines, line(width-2, nil, cell{width: 1}, cell{text: r[0], style: b.theme.key, width: 8}, cell{text: r[1], style: b.theme.plain}))
	}
	if most := b.height - 4; len(lines) > most {
		lines = lines[:most]
	}
	return frame(b.theme.focus, b.theme.focus.Bold(true), rect{w: width, h: len(lines) + 2}, "Keys", "", "any key closes", lines)
}
