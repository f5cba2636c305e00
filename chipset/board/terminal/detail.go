package terminal

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gastown-chipset/chipset/chipset/view"
)

// tab is one tab of the detail.
type tab int

const (
	storyTab tab = iota
	transcriptTab
	diffTab
	mailTab
	tabCount
)

func (t tab) String() string { return []string{"story", "transcript", "diff", "mail"}[t] }

// detail is the pane that shows one thing in full.
type detail struct {
	tab     tab
	subject subject
	// content is what is shown, wrapped for width.
	content []styled
	wrapped []styled
	width   int
	offset  int
	// end is true while the pane follows the end of a transcript.
	end bool
	// asked counts the loads that were requested: the result of an older one is dropped.
	// waits is true until the last one is done.
	asked int
	waits bool
	// shown is the output of a command, called title, in the place of the subject.
	shown []styled
	title string
}

// name is the title of the pane.
func (d *detail) name() string {
	switch {
	case d.shown != nil:
		return d.title
	case d.subject.name() == "":
		return "Detail"
	case d.subject.Item == nil && d.subject.Agent == nil && d.subject.Need != nil:
		return "Need"
	}
	return d.subject.name()
}

// tabs are the names of the tabs, the current one marked.
func (d *detail) tabs(t *theme) string {
	if d.shown != nil {
		return ""
	}
	var parts []string
	for i := range tabCount {
		if i == d.tab {
			parts = append(parts, t.key.Underline(true).Render(i.String()))
		} else {
			parts = append(parts, t.dim.Render(i.String()))
		}
	}
	return strings.Join(parts, " ")
}

func (d *detail) turn(forward bool) {
	by := tab(1)
	if !forward {
		by = tabCount - 1
	}
	d.tab = (d.tab + by) % tabCount
	d.shown, d.content, d.wrapped, d.offset, d.end = nil, nil, nil, 0, d.tab == transcriptTab
}

func (d *detail) scroll(by, height int) {
	d.offset = max(0, min(d.offset+by, len(d.wrapped)-height))
	d.end = d.tab == transcriptTab && d.offset >= len(d.wrapped)-height
}

// fit wraps the content for a width.
func (d *detail) fit(width, height int) {
	content := d.content
	if d.shown != nil {
		content = d.shown
	}
	d.width, d.wrapped = width, wrap(content, max(1, width))
	if d.end {
		d.offset = len(d.wrapped) - height
	}
	d.offset = max(0, min(d.offset, len(d.wrapped)-height))
}

// output shows what a command printed.
func (d *detail) output(title, text string) {
	d.title, d.shown, d.offset, d.end = title, []styled{}, 0, false
	for l := range strings.SplitSeq(text, "\n") {
		d.shown = append(d.shown, styled{text: l})
	}
}

func (d *detail) draw(t *theme, width, height int) []string {
	var out []string
	for i := d.offset; i < min(d.offset+height, len(d.wrapped)); i++ {
		out = append(out, d.wrapped[i].style.Render(fit(d.wrapped[i].text, width, false)))
	}
	if len(d.wrapped) == 0 {
		out = append(out, line(width, nil, cell{text: " nothing to show", style: t.dim}))
	}
	return out
}

func (d *detail) position(height int) string {
	if len(d.wrapped) <= height {
		return ""
	}
	text := fmt.Sprintf("%d of %d", min(len(d.wrapped), d.offset+height), len(d.wrapped))
	if d.end {
		text += ", follows"
	}
	return text
}

// detailRoom returns the size of the detail pane without its frame.
func (b *Board) detailRoom() (w, h int) { return b.places[detailPane].inner() }

// dueMsg says that it is time for the load with that number.
type dueMsg int

// detailMsg is the result of a load.
type detailMsg struct {
	asked   int
	content []styled
}

const (
	// restBefore is how long the cursor rests on a row before its detail is loaded.
	restBefore = 60 * time.Millisecond
	// reloadPace is the least time between two loads of the same thing.
	reloadPace = 400 * time.Millisecond
)

// selected loads the detail of a new selection after a moment.
func (b *Board) selected() tea.Cmd {
	s := b.subject()
	if s.same(b.detail.subject) && b.detail.wrapped != nil {
		b.detail.subject = s
		return nil
	}
	b.detail.shown = nil
	return b.loadAfter(restBefore)
}

// load loads the detail now.
func (b *Board) load() tea.Cmd { return b.loadAfter(0) }

func (b *Board) loadAfter(rest time.Duration) tea.Cmd {
	b.detail.asked++
	b.detail.waits = true
	n := dueMsg(b.detail.asked)
	return tea.Tick(rest, func(time.Time) tea.Msg { return n })
}

// refresh loads the detail again if it may have changed.
func (b *Board) refresh(parts view.Parts) tea.Cmd {
	s := b.subject()
	if !s.same(b.detail.subject) {
		return b.selected()
	}
	b.detail.subject = s
	changed := parts.Has(view.StoryPart | view.NeedsPart | view.WorkPart | view.AgentsPart)
	if b.detail.tab == mailTab {
		changed = parts.Has(view.MailPart | view.AgentsPart)
	}
	if changed && b.detail.shown == nil && !b.detail.waits {
		return b.loadAfter(reloadPace)
	}
	return nil
}

// due begins a load, unless another was asked for since.
func (b *Board) due(n dueMsg) tea.Cmd {
	if int(n) != b.detail.asked || b.view.At.IsZero() {
		return nil
	}
	s := b.subject()
	if !s.same(b.detail.subject) {
		b.detail.content, b.detail.wrapped, b.detail.offset = nil, nil, 0
		b.detail.end = b.detail.tab == transcriptTab
	}
	b.detail.subject = s
	l := loader{b.Rig, b.theme, b.view, s}
	t := b.detail.tab
	return func() tea.Msg { return detailMsg{int(n), l.load(context.Background(), t)} }
}

// loaded takes over what was loaded, and follows a transcript that grows.
func (b *Board) loaded(msg detailMsg) tea.Cmd {
	if msg.asked != b.detail.asked {
		return nil
	}
	b.detail.content, b.detail.waits = msg.content, false
	b.detail.fit(b.detailRoom())
	a := b.detail.subject.Agent
	if b.detail.tab == transcriptTab && a != nil && a.Alive && b.detail.subject.session != "" && b.detail.shown == nil {
		return b.loadAfter(reloadPace)
	}
	return nil
}
