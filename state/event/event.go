// Package event stores the event log of a rig: state/events/{YYYY-MM-DD}.jsonl,
// append-only, one object on each line. No decision relies on the event log: events are
// appended after the change that they describe, and synced in the background, so that
// they do not slow a sender down.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// Event is one line of the log.
type Event struct {
	Time state.Time `json:"time"`
	// Type is noun.verb, for example "hook.activated" or "mail.sent".
	Type string `json:"type"`
	// Agent is the agent that acted.
	Agent      state.AgentID      `json:"agent,omitempty"`
	Bead       state.BeadID       `json:"bead_id,omitempty"`
	Assignment state.AssignmentID `json:"assignment_id,omitempty"`
	Session    state.SessionID    `json:"session,omitempty"`
	// Subject names the object: an agent, a message, a merge request.
	Subject string `json:"subject,omitempty"`
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"`
	// Text is one sentence for a person.
	Text string `json:"text,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (e *Event) UnmarshalJSON(b []byte) error {
	type plain Event
	return state.UnmarshalWithExtra(b, (*plain)(e), &e.Extra)
}

// MarshalJSON writes unknown fields back.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return state.MarshalWithExtra(plain(e), e.Extra)
}

// Dir is the folder of the log.
const Dir = state.StateDir + "/events"

// Log is state/events/.
type Log struct {
	tree  *state.Tree
	clock state.Clock

	mu    sync.Mutex
	dirty map[state.Path]bool
}

// NewLog opens the event log of a tree. The clock dates the events.
func NewLog(t *state.Tree, clock state.Clock) *Log {
	return &Log{tree: t, clock: clock, dirty: map[state.Path]bool{}}
}

// Tell appends events with the current time. It returns no error, because an event that
// can't be written must not undo the change that it describes. A nil log drops everything.
func (l *Log) Tell(events ...Event) {
	if l == nil || len(events) == 0 {
		return
	}
	now := l.clock.Now()
	for i := range events {
		if events[i].Time.IsZero() {
			events[i].Time = now
		}
	}
	_ = l.Append(events...)
}

// maxText bounds one event's text, in bytes.
const maxText = 4 << 10

// Append adds events in order. They are visible when it returns and durable
// after the next Sync.
func (l *Log) Append(events ...Event) error {
	byDay := map[state.Path][]byte{}
	var days []state.Path
	for _, e := range events {
		if len(e.Text) > maxText {
			e.Text = strings.ToValidUTF8(e.Text[:maxText], "") + "…"
		}
		line, err := state.EncodeLine(e)
		if err != nil {
			return err
		}
		day := Dir.Join(e.Time.UTC().Format(time.DateOnly) + ".jsonl")
		if _, ok := byDay[day]; !ok {
			days = append(days, day)
		}
		byDay[day] = append(byDay[day], line...)
	}
	for _, day := range days {
		if err := l.tree.Append(day, byDay[day]); err != nil {
			return err
		}
		l.mu.Lock()
		l.dirty[day] = true
		l.mu.Unlock()
	}
	return nil
}

// Sync makes the events of this process durable.
func (l *Log) Sync() error {
	l.mu.Lock()
	days := l.dirty
	l.dirty = map[state.Path]bool{}
	l.mu.Unlock()
	var first error
	for day := range days {
		if err := l.tree.SyncFile(day); err != nil && first == nil && !errors.Is(err, state.ErrNotFound) {
			first = err
		}
	}
	return first
}

// Position is a position in the log. The zero Position is the beginning.
type Position struct {
	day    string
	offset int64
	// lines counts the lines of the day before it, for messages.
	lines int
}

// maxDay bounds how much of one day is read, in bytes.
const maxDay = 1 << 30

// Read returns the events after a position that are not older than since, in the order of
// the log, an error for each damaged line, and the position after the events. An
// unfinished last line is left for the next call.
func (l *Log) Read(after Position, since time.Time) ([]Event, []error, Position, error) {
	entries, err := l.tree.List(Dir)
	if err != nil {
		return nil, nil, after, err
	}
	var events []Event
	var bad []error
	for _, entry := range entries {
		day, ok := strings.CutSuffix(entry.Name(), ".jsonl")
		if _, err := time.Parse(time.DateOnly, day); !ok || err != nil {
			bad = append(bad, &state.Corruption{Path: string(Dir.Join(entry.Name())), Reason: "not a day of the log"})
			continue
		}
		if day < after.day || day < since.UTC().Format(time.DateOnly) {
			continue
		}
		if day != after.day {
			after = Position{day: day}
		}
		data, offset, err := l.tree.ReadPart(Dir.Join(entry.Name()), after.offset, maxDay)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		found, broken, end := parse(Dir.Join(entry.Name()), data, after.lines, since)
		events, bad = append(events, found...), append(bad, broken...)
		after = Position{day: day, offset: offset + int64(end), lines: after.lines + bytes.Count(data[:end], []byte{'\n'})}
	}
	return events, bad, after, nil
}

// Tail returns the events in the last size bytes of the log, and the position after them.
// It skips damaged lines.
func (l *Log) Tail(size int64) ([]Event, Position, error) {
	entries, err := l.tree.List(Dir)
	if err != nil {
		return nil, Position{}, err
	}
	var events []Event
	var end Position
	for _, entry := range slices.Backward(entries) {
		day, ok := strings.CutSuffix(entry.Name(), ".jsonl")
		if _, err := time.Parse(time.DateOnly, day); !ok || err != nil {
			continue
		}
		p := Dir.Join(entry.Name())
		data, offset, err := l.tree.ReadPart(p, -size, size)
		if err != nil {
			return nil, Position{}, err
		}
		if offset > 0 {
			first := bytes.IndexByte(data, '\n') + 1 // the first line may be incomplete
			data, offset = data[first:], offset+int64(first)
		}
		found, _, n := parse(p, data, 0, time.Time{})
		if end.day == "" {
			end = Position{day: day, offset: offset + int64(n)}
		}
		events = append(found, events...)
		if size -= int64(len(data)); size <= 0 || offset > 0 {
			break
		}
	}
	return events, end, nil
}

// About returns the last events whose lines contain a word in quotes and for which is
// returns true, at most most of them, oldest first. It parses no other lines.
func (l *Log) About(word string, most int, is func(*Event) bool) ([]Event, error) {
	entries, err := l.tree.List(Dir)
	if err != nil {
		return nil, err
	}
	var found []Event
	for _, entry := range slices.Backward(entries) {
		data, err := l.tree.Read(Dir.Join(entry.Name()), maxDay)
		if err != nil || !strings.HasSuffix(entry.Name(), ".jsonl") {
			continue // doctor reports it
		}
		for len(data) > 0 && len(found) < most {
			at := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
			var e Event
			if bytes.Contains(data[at:], []byte(`"`+word+`"`)) && json.Unmarshal(data[at:], &e) == nil && is(&e) {
				found = append(found, e)
			}
			data = data[:at]
		}
	}
	slices.Reverse(found)
	return found, nil
}

// Day returns the content of one file of the log and the day in its name, for checks.
// Errors: a *state.Corruption for a file that is not a day of the log.
func (l *Log) Day(p state.Path) (day string, data []byte, err error) {
	day, ok := strings.CutSuffix(p.Base(), ".jsonl")
	if _, err := time.Parse(time.DateOnly, day); !ok || err != nil {
		return "", nil, &state.Corruption{Path: string(p), Reason: "not a day of the log"}
	}
	data, err = l.tree.Read(p, maxDay)
	return day, data, err
}

// Lines returns the events of a day's file, and an error for each whole line
// that is not an event.
func Lines(p state.Path, data []byte) ([]Event, []error) {
	events, bad, _ := parse(p, data, 0, time.Time{})
	return events, bad
}

// parse returns the events of the complete lines of data, errors for damaged lines, and
// the end of the last complete line. line is the number of lines before data.
func parse(p state.Path, data []byte, line int, since time.Time) ([]Event, []error, int) {
	var events []Event
	var bad []error
	offset := 0
	for offset < len(data) {
		end := bytes.IndexByte(data[offset:], '\n')
		if end < 0 {
			break
		}
		raw := data[offset : offset+end]
		offset += end + 1
		line++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(raw, &e); err != nil {
			bad = append(bad, &state.Corruption{Path: string(p), Reason: fmt.Sprintf("line %d: %v", line, err)})
			continue
		}
		if !e.Time.Before(since) {
			events = append(events, e)
		}
	}
	return events, bad, offset
}
