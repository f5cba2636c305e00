package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"charm.land/lipgloss/v2"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// roomy is the least width at which a pane shows more columns.
const roomy = 80

// age is how long ago a time was, or "".
func (b *Board) age(at state.Time) string {
	if at.IsZero() {
		return ""
	}
	return strings.ReplaceAll(screen.Age(max(0, b.now().Sub(at.Time))), " ", "")
}

func (b *Board) needRows() rows {
	needs := b.view.Needs
	r := rows{empty: "nothing waits for you", draw: func(i, width int) []cell {
		n := &needs[i]
		text := n.What
		if n.Why != "" {
			text += ": " + n.Why
		}
		behind := ""
		if len(n.Behind) > 0 {
			behind = fmt.Sprintf("+%d behind", len(n.Behind))
		}
		cells := []cell{{text: n.Handle(), style: b.theme.bad, width: 3, right: true}, {text: string(n.Kind), style: b.theme.warn, width: 10}, {text: text, style: b.theme.bold}}
		if width >= roomy {
			cells = append(cells, cell{text: behind, style: b.theme.dim, width: 10, right: true})
		}
		return append(cells, cell{text: b.age(n.Since), style: b.theme.dim, width: 6, right: true})
	}}
	for i := range needs {
		r.keys = append(r.keys, string(needs[i].Key))
	}
	return r
}

func (b *Board) agentRows() rows {
	agents := b.view.BusyFirst()
	r := rows{empty: "no agents"}
	tools, spent := false, false // empty columns are left out
	for i := range b.view.Agents {
		if p := b.view.Agents[i].Progress; p != nil {
			tools, spent = tools || p.Tool != "", spent || p.Spent() != ""
		}
	}
	for _, a := range agents {
		r.keys = append(r.keys, string(a.ID))
	}
	r.draw = func(i, width int) []cell {
		a := agents[i]
		mark := cell{text: "○", style: b.theme.dim, width: 1}
		if a.Alive {
			mark = cell{text: "●", style: b.theme.good, width: 1}
		}
		word, style := b.stateOf(a)
		cells := []cell{mark, {text: string(a.ID), style: b.theme.plain, width: 15}, {text: word, style: style, width: 9}}
		work := string(a.BeadID)
		if a.BeadID != "" {
			work += " " + a.Title
		} else if a.Unread > 0 && a.Role != agent.Crew {
			work = fmt.Sprintf("%d unread", a.Unread)
		}
		cells = append(cells, cell{text: work, style: b.theme.plain})
		if a.BeadID == "" {
			return cells
		}
		var p agentcli.Progress
		if a.Progress != nil {
			p = *a.Progress
		}
		if tools {
			cells = append(cells, cell{text: p.Tool, style: b.theme.busy, width: 8})
		}
		if spent && width >= roomy {
			cells = append(cells, cell{text: p.Spent(), style: b.theme.dim, width: 13, right: true})
		}
		return append(cells, cell{text: b.age(*a.AssignedAt), style: b.theme.dim, width: 6, right: true})
	}
	return r
}

// stateOf is the state of an agent in a word. One that has been silent for long is not
// called busy.
func (b *Board) stateOf(a *view.AgentStatus) (string, lipgloss.Style) {
	quiet := time.Duration(0)
	if a.LastActivity != nil {
		quiet = b.now().Sub(a.LastActivity.Time)
	}
	switch {
	case a.Status == agent.Stalled:
		return "stalled", b.theme.bad
	case a.Lease != nil:
		return "attached", b.theme.warn
	case len(a.Asks) > 0:
		return "asks you", b.theme.bad
	case a.Status == agent.Retired:
		return "retired", b.theme.dim
	case a.Hook == hook.Active && a.Client != "":
		return "yours", b.theme.busy
	case a.Hook == hook.Active && !a.Alive:
		return "stopped", b.theme.warn
	case a.Hook == hook.Active && quiet >= quietAfter:
		return "quiet " + strings.ReplaceAll(screen.Age(quiet), " ", ""), b.theme.warn
	case a.Hook == hook.Active:
		return "working", b.theme.good
	case a.Hook == hook.Empty && a.Alive:
		return "idle", b.theme.dim
	case a.Hook == hook.Empty:
		return "off", b.theme.dim
	case a.Hook == hook.Pending || a.Hook == hook.Completed:
		return string(a.Hook), b.theme.busy
	}
	return string(a.Hook), b.theme.bad
}

// quietAfter is how long an agent makes no progress before it is called quiet.
const quietAfter = 2 * time.Minute

func (b *Board) workRows() rows {
	lines, rails, ids := b.tree, 0, 8
	for i := range lines {
		if lines[i].rail != "" {
			rails = max(rails, utf8.RuneCountInString(lines[i].rail)+1)
		}
		if it := lines[i].item; it != nil {
			ids = max(ids, len(it.Bead.ID))
		}
	}
	r := rows{empty: "no work yet: chipset work add", draw: func(i, width int) []cell {
		l := &lines[i]
		if c := l.convoy; c != nil {
			return []cell{{text: screen.Bar(c.Landed, c.All, 10), style: b.theme.good, width: 12}, {text: fmt.Sprintf("%d/%d", c.Landed, c.All), style: b.theme.dim, width: 7}, {text: c.Name, style: b.theme.bold}}
		}
		it := l.item
		if it == nil {
			return b.drawFound(l)
		}
		mark, style := b.markOf(it)
		indent := ""
		if l.depth > 0 {
			indent = strings.Repeat("  ", min(l.depth, 8)-1) + "└ "
		}
		name := indent + mark + " " + string(it.Bead.ID)
		if l.rail != "" {
			name = strings.Replace(l.rail, "*", mark, 1) + " " + string(it.Bead.ID)
		}
		title := b.theme.plain
		if it.Bead.Status.Finished() || len(it.Waits) > 0 {
			title = b.theme.dim
		}
		priority := b.theme.dim
		if it.Bead.Priority == bead.P1 {
			priority = b.theme.warn
		}
		idWidth := min(ids, max(8, width/4))
		cells := []cell{{text: name, style: style, width: max(rails, 2+len([]rune(indent))) + idWidth}, {text: string(it.Bead.Priority), style: priority, width: 2},
			{text: it.Bead.Title, style: title}}
		return append(cells, cell{text: b.wordOf(it), style: style, width: 15, right: true})
	}}
	if b.work.filter != "" {
		r.empty = "nothing matches"
	} else if b.hidden > 0 {
		r.empty = "all work is finished; press . to show it"
	}
	r.keys = make([]string, len(lines))
	for i := range lines {
		r.keys[i] = lines[i].key()
	}
	return r
}

// markOf is a symbol for the status of a bead.
func (b *Board) markOf(it *view.WorkItem) (string, lipgloss.Style) {
	switch it.Bead.Status {
	case bead.Open:
		if it.Ready(b.now()) {
			return "○", b.theme.plain
		}
		return "◌", b.theme.dim
	case bead.Hooked, bead.InProgress:
		return "◐", b.theme.busy
	case bead.Done:
		return "◕", b.theme.moving
	case bead.Merged, bead.Closed:
		return "●", b.theme.good
	case bead.Failed:
		return "✗", b.theme.bad
	case bead.Blocked:
		return "■", b.theme.bad
	case bead.Cancelled:
		return "–", b.theme.dim
	}
	return "?", b.theme.bad
}

// wordOf is the state of a bead in a word or two.
func (b *Board) wordOf(it *view.WorkItem) string {
	switch it.Bead.Status {
	case bead.Open:
		switch {
		case len(it.Waits) > 1:
			return fmt.Sprintf("waits for %d", len(it.Waits))
		case len(it.Waits) == 1:
			return "◂ " + string(it.Waits[0])
		case !it.Ready(b.now()):
			return "cooling down"
		}
		return "ready"
	case bead.Hooked, bead.InProgress:
		return strings.TrimPrefix(string(it.Bead.Assignee), "polecat-")
	case bead.Done:
		return "in the queue"
	case bead.Blocked:
		return "needs you"
	case bead.Merged, bead.Closed, bead.Failed, bead.Cancelled:
	}
	return string(it.Bead.Status)
}

func (b *Board) queueRows() rows {
	queue := b.view.Queue
	landed := lastLanded(b.view.Story)
	r := rows{empty: "nothing waits to land", draw: func(i, width int) []cell {
		if i >= len(queue) {
			e := landed[i-len(queue)]
			return []cell{{text: "✓", style: b.theme.good, width: 1}, {text: string(e.Bead), style: b.theme.dim, width: 10}, {text: "landed", style: b.theme.good, width: 10},
				{text: b.titleOf(e.Bead), style: b.theme.dim}, {text: b.age(e.Time), style: b.theme.dim, width: 6, right: true}}
		}
		q := &queue[i]
		word, style := string(q.Request.Status), b.theme.dim
		switch q.Request.Status {
		case mergequeue.Merging:
			word, style = string(q.Stage), b.theme.moving
		case mergequeue.Conflicted:
			word, style = string(q.Failure), b.theme.bad
		case mergequeue.Pending, mergequeue.Merged, mergequeue.Superseded, mergequeue.Dropped:
		}
		if q.Request.Status == mergequeue.Pending && q.Waiting != "" {
			word, style = "held up", b.theme.warn
		}
		text := q.Title
		if q.Wait != "" {
			text = q.Wait + " · " + text
		}
		return []cell{{text: fmt.Sprint(i + 1), style: b.theme.dim, width: 1}, {text: string(q.BeadID), style: style, width: 10}, {text: word, style: style, width: 10},
			{text: text, style: b.theme.plain}, {text: b.age(q.SubmittedAt), style: b.theme.dim, width: 6, right: true}}
	}}
	for i := range queue {
		r.keys = append(r.keys, string(queue[i].ID))
	}
	for i := range landed {
		r.keys = append(r.keys, "landed "+string(landed[i].Bead))
	}
	return r
}

// landedShown is how many landed beads the queue shows after those that wait.
const landedShown = 5

// lastLanded returns the last landings of the story, newest first.
func lastLanded(story []event.Event) []event.Event {
	var found []event.Event
	for i := len(story) - 1; i >= 0 && len(found) < landedShown; i-- {
		if story[i].Type == "bead.merged" {
			found = append(found, story[i])
		}
	}
	return found
}

func (b *Board) titleOf(id state.BeadID) string {
	if it := b.view.Work.Find(id); it != nil {
		return it.Bead.Title
	}
	return ""
}
