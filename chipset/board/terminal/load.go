package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/wording"
)

// loader reads what the detail shows. It runs concurrently with Update, and does not change
// the board.
type loader struct {
	rig     *rig.Rig
	theme   theme
	view    *view.View
	subject subject
}

// maxLines is the most lines of a detail.
const maxLines = 3000

func (l *loader) load(ctx context.Context, t tab) []styled {
	var lines []styled
	var err error
	switch {
	case l.subject.name() == "":
	case l.subject.letter != nil:
		lines = l.letter(l.subject.letter)
	case t == storyTab:
		lines, err = l.story(ctx)
	case t == transcriptTab:
		lines, err = l.transcript()
	case t == diffTab:
		lines, err = l.diff(ctx)
	case t == mailTab:
		lines, err = l.mail()
	}
	if errors.Is(err, state.ErrNotFound) {
		lines = append(lines, styled{text: err.Error(), style: l.theme.dim})
	} else if err != nil {
		lines = append(lines, styled{text: err.Error(), style: l.theme.bad})
	}
	return lines
}

func (l *loader) agentID() state.AgentID {
	if l.subject.Agent != nil {
		return l.subject.Agent.ID
	}
	return ""
}

func (l *loader) beadID() state.BeadID {
	if l.subject.Item != nil {
		return l.subject.Item.Bead.ID
	}
	return ""
}

// story describes the subject, and lists its events, newest first.
func (l *loader) story(ctx context.Context) ([]styled, error) {
	var lines []styled
	put := func(style lipgloss.Style, indent int, format string, args ...any) {
		lines = append(lines, styled{text: fmt.Sprintf(format, args...), style: style, indent: indent})
	}
	if n := l.subject.Need; n != nil {
		put(l.theme.bad, 2, "%s %s", n.Handle(), n.Line())
		for _, c := range n.Commands {
			put(l.theme.key, 4, "  %s", c)
		}
		put(l.theme.plain, 0, "")
	}
	if it := l.subject.Item; it != nil {
		b := it.Bead
		put(l.theme.bold, 0, "%s", b.Title)
		if now, err := view.Now(ctx, l.rig, b.ID); err == nil {
			put(l.theme.plain, 0, "%s", now)
		}
		put(l.theme.dim, 0, "%s, %s%s", b.Priority, b.FailureCounts(), labels(b.Labels))
		if len(it.Waits) > 0 {
			put(l.theme.dim, 0, "waits for %s", wording.Join(it.Waits, ", "))
		}
		if len(it.Blocks) > 0 {
			put(l.theme.dim, 0, "%s behind it: %s", wording.Count(len(it.Blocks), "bead"), wording.JoinFirst(it.Blocks, 8))
		}
		for _, text := range []string{b.Description, b.Acceptance} {
			for part := range strings.Lines(text) {
				put(l.theme.plain, 0, "%s", strings.TrimRight(part, "\n"))
			}
		}
		for _, note := range b.ReworkNotes {
			put(l.theme.warn, 2, "rework: %s", note)
		}
		put(l.theme.plain, 0, "")
	} else if c := l.subject.convoy; c != nil {
		put(l.theme.bold, 0, "%s", c.Name)
		put(l.theme.plain, 0, "%d of %d have landed", c.Landed, c.All)
		put(l.theme.plain, 0, "")
		for _, it := range l.convoy(c.ID) {
			put(l.theme.plain, 2, "%s %s  %s", it.Bead.ID, it.Bead.Status, it.Bead.Title)
		}
	} else if a := l.subject.Agent; a != nil {
		put(l.theme.bold, 0, "%s, %s, %s", a.ID, a.Role, a.Status)
		put(l.theme.plain, 0, "")
	}
	word, is := string(l.beadID()), func(e *event.Event) bool { return e.Bead == l.beadID() }
	if word == "" {
		word = string(l.agentID())
		is = func(e *event.Event) bool { return string(e.Agent) == word || e.Subject == word }
	}
	if word == "" {
		return lines, nil
	}
	events, err := l.rig.Events.About(word, maxEvents, is)
	for _, e := range slices.Backward(events) {
		lines = append(lines, l.event(&e))
	}
	return lines, err
}

// convoy returns the beads of a convoy, those in progress first.
func (l *loader) convoy(id state.ConvoyID) []*view.WorkItem {
	var all []*view.WorkItem
	for _, it := range l.view.Work {
		if it.Bead.ConvoyID == id {
			all = append(all, it)
		}
	}
	slices.SortStableFunc(all, order)
	return all
}

// maxEvents is the most events of a story.
const maxEvents = 300

func labels(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return ", " + strings.Join(all, " ")
}

func (l *loader) event(e *event.Event) styled {
	style := l.theme.plain
	switch noun, verb, _ := strings.Cut(e.Type, "."); {
	case verb == "merged" || verb == "completed":
		style = l.theme.good
	case verb == "failed" || verb == "blocked" || verb == "conflicted" || noun == "warning" || noun == "incident":
		style = l.theme.bad
	case noun == "mail" || noun == "nudge":
		style = l.theme.code
	case verb == "touched" || verb == "seen" || verb == "handled":
		style = l.theme.dim
	}
	return styled{text: fmt.Sprintf("%s  %-18s %-13s %s", e.Time.Local().Format(time.TimeOnly), e.Type, e.Agent, view.EventText(e)), style: style, indent: 10}
}

// transcript is the end of the worker's transcript.
func (l *loader) transcript() ([]styled, error) {
	session := l.subject.session
	if session == "" {
		var err error
		if session, err = view.SessionOf(l.rig, l.agentID(), l.beadID()); err != nil {
			return nil, err
		}
	}
	t := view.NewTranscript(l.rig, session, view.TranscriptEnd)
	passages, _, err := t.More()
	if l.subject.session == "" {
		passages = append(passages, t.Rest()...)
	}
	var lines []styled
	for _, p := range passages {
		lines = append(lines, l.passage(p)...)
	}
	return lines[max(0, len(lines)-maxLines):], err
}

// passage is a passage in its colours.
func (l *loader) passage(p agentcli.Passage) []styled {
	style := l.theme.of(view.PassageTone(p.Kind))
	var lines []styled
	for _, text := range view.Marked(p) {
		lines = append(lines, styled{text: text, style: style, indent: 2})
	}
	return lines
}

// diff is what was changed, in the colours of a patch.
func (l *loader) diff(ctx context.Context) ([]styled, error) {
	if l.beadID() == "" {
		return nil, state.Absent(fmt.Sprintf("%s has no bead", l.agentID()))
	}
	c, err := view.ChangesOf(ctx, l.rig, l.beadID())
	if err != nil {
		return nil, err
	}
	lines := []styled{{text: c.Where, style: l.theme.bold}}
	for _, commit := range c.Commits {
		lines = append(lines, styled{text: "  " + commit.Hash.Short() + " " + commit.Subject, style: l.theme.code})
	}
	lines = append(lines, styled{})
	for text := range strings.Lines(c.Patch) {
		if len(lines) == maxLines {
			lines = append(lines, styled{text: "… chipset diff shows the rest", style: l.theme.dim})
			break
		}
		text = strings.TrimRight(text, "\n")
		lines = append(lines, styled{text: text, style: l.theme.of(view.PatchTone(text))})
	}
	return lines, nil
}

// mail is the mail about a bead, or of an agent, newest first.
func (l *loader) mail() ([]styled, error) {
	bead := l.beadID()
	owners := []state.AgentID{state.Human, l.rig.Mayor()}
	if id := l.agentID(); id != "" {
		owners = append(owners, id)
	}
	var all []mail.Entry
	for _, owner := range slices.Compact(owners) {
		found, _, err := l.rig.Mailbox(owner).List()
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			if bead != "" && e.Ref != nil && e.Ref.BeadID == bead || bead == "" && (e.To == l.agentID() || e.From == l.agentID()) {
				all = append(all, e)
			}
		}
	}
	mail.Sort(all)
	var lines []styled
	for _, e := range slices.Backward(all) {
		lines = append(lines, l.letter(&e)...)
		if len(lines) > maxLines {
			break
		}
	}
	if len(lines) == 0 {
		return nil, state.Absent("there is no mail about it")
	}
	return lines, nil
}

// letter is a message with its body.
func (l *loader) letter(e *mail.Entry) []styled {
	style := l.theme.bold
	if e.Read {
		style = l.theme.dim
	}
	lines := []styled{{text: fmt.Sprintf("%s  %s → %s  %s", e.Timestamp.Local().Format("15:04:05"), e.From, e.To, e.Subject), style: style, indent: 10}}
	for text := range strings.Lines(e.Body) {
		lines = append(lines, styled{text: "    " + strings.TrimRight(text, "\n"), style: l.theme.plain, indent: 4})
	}
	return lines
}

// path returns what a program can open of a subject: with file the transcript, or the
// record of the bead; else the worktree. It is "" if there is none.
func (b *Board) path(s subject, file bool) string {
	if !file {
		if s.Agent == nil || s.Agent.BeadID == "" {
			return ""
		}
		return b.Rig.Worktree(s.Agent.ID)
	}
	l := loader{rig: b.Rig, subject: s}
	session, err := s.session, error(nil)
	if session == "" {
		session, err = view.SessionOf(b.Rig, l.agentID(), l.beadID())
	}
	if err == nil {
		return b.Rig.Tree.Abs(rig.Transcript(session))
	}
	if s.Item == nil {
		return ""
	}
	return b.Rig.Tree.Abs(b.Rig.Beads.Path(string(s.Item.Bead.ID)))
}
