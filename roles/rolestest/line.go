package rolestest

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Line is one thing that happens in a transcript.
type Line struct {
	Noun    string
	Words   []string
	Options map[string]string
	Text    string
}

// Parse takes a line apart. An option is a word that holds "=".
func Parse(line string) Line {
	line, text, _ := strings.Cut(line, "|")
	l := Line{Options: map[string]string{}, Text: strings.TrimSpace(text)}
	for i, word := range strings.Fields(line) {
		key, value, option := strings.Cut(word, "=")
		switch {
		case i == 0:
			l.Noun = word
		case option:
			l.Options[key] = value
		default:
			l.Words = append(l.Words, word)
		}
	}
	return l
}

// Word returns the word at i, behind the noun, or "".
func (l Line) Word(i int) string {
	if i < len(l.Words) {
		return l.Words[i]
	}
	return ""
}

// Has reports whether a word stands behind the name, or an option of that key.
func (l Line) Has(word string) bool {
	_, ok := l.Options[word]
	return ok || slices.Contains(l.Words[min(1, len(l.Words)):], word)
}

// Number returns the option of a key, or otherwise where there is no number.
func (l Line) Number(key string, otherwise int) int {
	if n, err := strconv.Atoi(l.Options[key]); err == nil {
		return n
	}
	return otherwise
}

// Duration returns the first word as a duration.
func (l Line) Duration() (time.Duration, error) { return time.ParseDuration(l.Word(0)) }

// Agent is the agent that a line names first.
func (l Line) Agent() state.AgentID { return state.AgentID(l.Word(0)) }

// Assignment is the assignment in the options.
func (l Line) Assignment() state.AssignmentID { return state.AssignmentID(l.Options["as"]) }

// Session is the session in the options.
func (l Line) Session() state.SessionID { return state.SessionID(l.Options["session"]) }

// Bead is the bead of a line; where no status is given, it is open.
func (l Line) Bead(now state.Time) bead.Bead {
	id := l.Word(0)
	b := bead.Bead{ID: state.BeadID(id), Title: "title of " + id, Status: bead.Open, Priority: bead.P2, CreatedAt: now,
		AssignmentID: l.Assignment(), ConvoyID: state.ConvoyID(l.Options["convoy"]), Attempts: l.Number("attempts", 0),
		Conflicts: l.Number("conflicts", 0), Restarts: l.Number("restarts", 0), Unended: l.Number("unended", 0), CloseReason: l.Text, Worker: l.Options["worker"]}
	if note := l.Options["note"]; note != "" {
		b.ReworkNotes = []string{note}
	}
	if on := l.Options["on"]; on != "" {
		b.Assignee, b.Branch = state.AgentID("polecat-"+on), "polecat/"+id
	}
	for _, word := range l.Words[1:] {
		if bead.Status(word).Known() {
			b.Status = bead.Status(word)
		}
		if p := bead.Priority(word); p == bead.P1 || p == bead.P3 {
			b.Priority = p
		}
	}
	if needs := l.Options["needs"]; needs != "" {
		for id := range strings.SplitSeq(needs, ",") {
			b.BlockedBy = append(b.BlockedBy, state.BeadID(id))
		}
	}
	if d, err := time.ParseDuration(l.Options["age"]); err == nil {
		b.CreatedAt = state.At(now.Add(-d))
	}
	if d, err := time.ParseDuration(l.Options["ready_in"]); err == nil {
		at := state.At(now.Add(d))
		b.ReadyAt = &at
	}
	return b
}

// Hook is the hook of a line, whose work was assigned and touched now.
func (l Line) Hook(now state.Time) hook.Hook {
	h := hook.Hook{AgentID: l.Agent(), Status: hook.Status(l.Word(1)), LastActivity: now}
	if h.Status != hook.Empty {
		h.WorkItem = &hook.WorkItem{BeadID: state.BeadID(l.Options["bead"]), AssignmentID: l.Assignment(), Session: l.Session(), Title: "a title", AssignedAt: now}
	}
	return h
}

// Mail is the message of a line, as it lies in the mailbox of to since at.
func (l Line) Mail(to state.AgentID, at state.Time) mail.Entry {
	m := mail.Message{From: l.Agent(), To: to, Type: mail.Type(l.Word(1)), Subject: l.Text, Body: "body", Timestamp: at, Thread: l.Options["thread"]}
	if l.refers() {
		m.Ref = &mail.Ref{BeadID: state.BeadID(l.Options["bead"]), AssignmentID: l.Assignment(), Session: l.Session()}
	}
	return mail.Entry{Name: mail.NameAt(at, m.From), Message: m}
}

// refers reports whether a message of this line refers to work or a session.
func (l Line) refers() bool { return l.Has("bead") || l.Has("as") || l.Has("session") }

// Nudge is the nudge of a line, of the time at; an early one is an hour older.
func (l Line) Nudge(at state.Time) nudge.Nudge {
	n := nudge.Nudge{From: l.Agent(), Type: nudge.Type(l.Word(1)), Message: l.Text, Timestamp: at, RequiresResponse: l.Has("respond")}
	if l.Has("early") {
		n.Timestamp = state.At(at.Add(-time.Hour))
	}
	if l.refers() {
		n.Ref = &nudge.Ref{AssignmentID: l.Assignment(), Session: l.Session()}
	}
	return n
}

// Request is the merge request of a line; it is of the bead whose name it bears,
// where no other one is given.
func (l Line) Request(now state.Time) mergequeue.Request {
	r := mergequeue.Request{ID: state.MergeID(l.Word(0)), BeadID: state.BeadID(l.Options["of"]), AssignmentID: l.Assignment(), UpdatedAt: now,
		Status: mergequeue.Pending, Stage: mergequeue.Stage(l.Options["stage"]), Failure: mergequeue.Failure(l.Options["failure"]), Reason: l.Text}
	if r.BeadID == "" {
		r.BeadID = state.BeadID(strings.TrimPrefix(l.Word(0), "mr-"))
	}
	if status := l.Word(1); status != "" {
		r.Status = mergequeue.Status(status)
	}
	return r
}
