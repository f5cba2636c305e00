// Package claudeteam reads and writes what the agent teams of Claude Code share: the inboxes of a
// team, for a bridge that carries mail, and a task list, whose tasks are tied to beads.
package claudeteam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Team is the inboxes of an agent team of Claude Code: inboxes/NAME.json
// below the team's folder, an array each. Today's versions delete an entry when
// it was delivered, older ones set read; the folder's layout tells them apart.
// Writers lock with mkdir NAME.json.lock. Tried with Claude Code 2.1.329.
type Team struct {
	// Dir is the team's folder, such as ~/.claude/teams/session-0a1b2c3d.
	Dir string
}

// maxInbox bounds a inbox, in bytes.
const maxInbox = 16 << 20

// entry is what is read of an entry; the rest of it is kept as it is.
type entry struct {
	From      string `json:"from"`
	Text      string `json:"text"`
	Timestamp string `json:"timestamp"`
	Read      *bool  `json:"read"`
	MsgID     string `json:"msg_id"`
	Summary   string `json:"summary,omitempty"`
}

// newEntry is what is written.
type newEntry struct {
	entry
	MsgV int    `json:"msgV"`
	Type string `json:"type"`
}

// OpenTeam checks that dir is the folder of a team. One that was begun just now has config.json and no inboxes yet.
func OpenTeam(dir string) (*Team, error) {
	c := &Team{Dir: dir}
	configured, err := there(c.configFile())
	if err == nil && configured {
		err = state.MkdirOutside(filepath.Join(dir, "inboxes"))
	}
	if err == nil {
		err = isFolder(filepath.Join(dir, "inboxes"))
	}
	if err != nil {
		return nil, fmt.Errorf("no team of Claude Code: %w", err)
	}
	return c, nil
}

// Name implements bridge.System.
func (c *Team) Name() string { return "claude-teams/" + filepath.Base(c.Dir) }

// current reports whether delivered entries are deleted, and not marked.
func (c *Team) current() bool {
	return strings.HasPrefix(filepath.Base(c.Dir), "session-")
}

func (c *Team) inbox(name string) string {
	return filepath.Join(c.Dir, "inboxes", name+".json")
}

// locked puts what change returns in the place of an inbox, under its lock.
func (c *Team) locked(ctx context.Context, name string, change func(entries []json.RawMessage) ([]json.RawMessage, error)) error {
	file := c.inbox(name)
	return rewrite(ctx, file, func() (any, error) {
		entries, err := readInbox(file)
		if err != nil {
			return nil, err
		}
		return change(entries)
	})
}

func readInbox(file string) ([]json.RawMessage, error) {
	data, err := bridge.ReadFile(file, maxInbox)
	if errors.Is(err, fs.ErrNotExist) {
		return []json.RawMessage{}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return []json.RawMessage{}, nil
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil || entries == nil {
		return nil, fmt.Errorf("%s: it is not an array of messages, and is left as it is (another version of the program?)", file)
	}
	return entries, nil
}

// Receive implements bridge.System. The mail is sent before the entry is retired, and
// outside of the lock, so that nobody waits for the rig's disk.
func (c *Team) Receive(ctx context.Context, inbox string, take func(bridge.Message) error) error {
	entries, err := readInbox(c.inbox(inbox))
	if err != nil {
		return err
	}
	done := map[string]bool{}
	var failed []error
	for i, raw := range entries {
		letter, unread, err := letterOf(raw)
		if err != nil {
			failed = append(failed, fmt.Errorf("entry %d: %w", i+1, err))
			continue
		}
		if !unread {
			continue
		}
		if err := take(letter); err != nil {
			failed = append(failed, fmt.Errorf("entry %d: %w", i+1, err))
			continue
		}
		done[letter.Key] = true
	}
	if len(done) > 0 {
		err := c.locked(ctx, inbox, func(now []json.RawMessage) ([]json.RawMessage, error) { return c.retire(now, done) })
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// retire deletes or marks the entries that are done, and keeps every other
// byte for byte.
func (c *Team) retire(now []json.RawMessage, done map[string]bool) ([]json.RawMessage, error) {
	after := make([]json.RawMessage, 0, len(now))
	for _, raw := range now {
		letter, unread, err := letterOf(raw)
		switch {
		case err != nil || !unread || !done[letter.Key]:
			after = append(after, raw)
		case !c.current():
			marked, err := withFields(raw, map[string]any{"read": true})
			if err != nil {
				return nil, err
			}
			after = append(after, marked)
		}
	}
	return after, nil
}

// mailType is what a protocol message of the team is here, by the type in the
// JSON of an entry's text. What would permit or end something stays text: only
// the person and the mayor say that in a rig, and nobody from outside.
func mailType(t string) mail.Type {
	switch t {
	case "idle_notification":
		return mail.IdleNotification
	case "plan_approval_request":
		return mail.PlanRequest
	case "permission_request":
		return mail.PermissionRequest
	case "shutdown_approved", "shutdown_rejected":
		return mail.ShutdownResponse
	}
	return mail.Coordination
}

// letterOf reads an entry, and reports whether it is unread.
func letterOf(raw json.RawMessage) (bridge.Message, bool, error) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil || e.From == "" || e.Timestamp == "" {
		return bridge.Message{}, false, errors.New("no message of a teammate, and is left as it is")
	}
	at, err := time.Parse(time.RFC3339Nano, e.Timestamp)
	if err != nil {
		return bridge.Message{}, false, fmt.Errorf("timestamp %q, and is left as it is", wording.Clip(e.Timestamp, bridge.MaxQuoted))
	}
	l := bridge.Message{Key: e.MsgID, From: e.From, Subject: wording.Subject(e.Summary, bridge.MaxSubject, wording.Subject(e.Text, bridge.MaxSubject, "(no text)"))}
	if l.Key == "" {
		l.Key = e.Timestamp + "\x00" + e.From + "\x00" + e.Text
	}
	var protocol struct {
		Type    string `json:"type"`
		Summary string `json:"summary"`
	}
	kind := mail.Coordination
	if json.Unmarshal([]byte(e.Text), &protocol) == nil && protocol.Type != "" {
		kind = mailType(protocol.Type)
		l.Subject = wording.Subject(protocol.Summary, bridge.MaxSubject, protocol.Type)
	}
	sent, err := json.Marshal(map[string]string{"bridge": "claude-teams", "sent": at.UTC().Format(time.RFC3339Nano), "from": e.From})
	if err != nil {
		return bridge.Message{}, false, err
	}
	l.Message = mail.Message{Type: kind, Body: strings.ToValidUTF8(e.Text, "\uFFFD"), Metadata: sent}
	return l, e.Read == nil || !*e.Read, nil
}

// Deliver implements bridge.System. Its reader may delete an entry at once, so what
// stands in the inbox does not tell whether it was delivered before. The new inbox
// is staged first, then that it is ready is noted, and then it is put in place by
// one rename: noted, and no longer staged, is delivered.
func (c *Team) Deliver(ctx context.Context, inbox string, o bridge.Outgoing) error {
	e := o.Entry
	file := c.inbox(inbox)
	release, err := takeLock(ctx, file+".lock")
	if err != nil {
		return err
	}
	defer release()
	s := c.steps(inbox, e)
	if delivered, err := s.delivered(); delivered || err != nil {
		return err
	}
	entries, err := readInbox(file)
	if err != nil {
		return err
	}
	for _, raw := range entries {
		var there entry
		if json.Unmarshal(raw, &there) == nil && there.MsgID == entryID(e) {
			return nil // an earlier try came this far, and somebody cleared its note away
		}
	}
	added := entry{From: o.From, Text: string(quote.Lines(e.Body)), Timestamp: e.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"), Read: new(bool),
		MsgID: entryID(e), Summary: string(quote.Attribute(e.Subject, bridge.MaxSubject))}
	raw, err := json.Marshal(newEntry{entry: added, MsgV: 1, Type: "message"})
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(append(entries, raw), "", "  ")
	if err != nil {
		return err
	}
	return s.put(file, data)
}

// Settle implements bridge.System.
func (c *Team) Settle(inbox string, e *mail.Entry) error {
	return remove(c.steps(inbox, e).ready)
}

// entryID is what a message of the rig is called in an inbox.
func entryID(e *mail.Entry) string { return "chipset-" + strings.TrimSuffix(string(e.Name), ".json") }

// steps are the files of one delivery: the inbox as it will be, and the note that
// it is ready.
type steps struct{ staged, ready string }

// steps lie in the team's own folder: they end with it, and share its file system.
func (c *Team) steps(inbox string, e *mail.Entry) steps {
	at := filepath.Join(c.Dir, ".chipset-bridge", inbox+"."+entryID(e))
	return steps{staged: at + ".staged", ready: at + ".ready"}
}

// delivered reports whether an earlier try came through, and clears away one that
// did not.
func (s *steps) delivered() (bool, error) {
	noted, err := there(s.ready)
	if err != nil {
		return false, err
	}
	staged, err := there(s.staged)
	if err != nil || noted && !staged {
		return noted && !staged, err
	}
	return false, errors.Join(remove(s.ready), remove(s.staged)) // the note first: without it, staged means nothing
}

func (s *steps) put(file string, data []byte) error {
	if err := state.MkdirOutside(filepath.Dir(s.staged)); err != nil {
		return err
	}
	if err := state.StageOutside(file, s.staged, data); err != nil {
		return err
	}
	if err := state.ReplaceOutside(s.ready, []byte("ready\n")); err != nil {
		return err
	}
	return state.PutOutside(s.staged, file)
}

func there(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func remove(path string) error {
	if err := state.ReleaseOutside(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
