// Package nanobot reads and writes the mailboxes of nanobot, another system of agents, for a bridge.
package nanobot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/bridge"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Mailboxes is a folder of mailboxes with a file per message:
//
//	_registry.json                      who is there, one card each
//	AGENT/inbox/{time}_{from}.msg.json  waiting
//	AGENT/processed/…                   the same file, once it was handled
type Mailboxes struct {
	Root string
}

// maxMessage bounds a foreign message, in bytes.
const maxMessage = 1 << 20

// message is a message; field names are the other system's.
type message struct {
	ID        string          `json:"id"`
	From      string          `json:"from"`
	To        string          `json:"to"`
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	TTL       *int            `json:"ttl,omitempty"`
	Trace     []string        `json:"trace,omitempty"`
	Task      *task           `json:"task,omitempty"`
	Content   content         `json:"content"`
	Callback  json.RawMessage `json:"callback,omitempty"`
	ReplyTo   string          `json:"reply_to,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// Types of messages. What is neither of them is a message, too.
const (
	typeMessage    = "message"
	typeTask       = "task"
	typeTaskUpdate = "task_update"
)

// task is what a message says of a task.
type task struct {
	ID       string `json:"id"`
	State    string `json:"state,omitempty"`
	Deadline string `json:"deadline,omitempty"`
}

type content struct {
	Parts []json.RawMessage `json:"parts"`
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Open checks that root holds such mailboxes.
func Open(root string) (*Mailboxes, error) {
	info, err := os.Lstat(filepath.Join(root, "_registry.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, state.Absent(fmt.Sprintf("%s: no _registry.json in it, so no mailboxes", root))
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: _registry.json is not a regular file", root)
	}
	return &Mailboxes{Root: root}, nil
}

// Name implements bridge.System.
func (n *Mailboxes) Name() string { return "nanobot/" + filepath.Base(n.Root) }

// folder is a folder of a mailbox; a link in its place is refused.
func (n *Mailboxes) folder(agent, name string) (string, error) {
	at := n.Root
	for _, part := range []string{agent, name} {
		at = filepath.Join(at, part)
		if info, err := os.Lstat(at); err == nil && !info.IsDir() {
			return "", fmt.Errorf("%s: it is not a folder", at)
		}
	}
	return at, nil
}

// Receive implements bridge.System. A message that became mail is moved to
// processed/, as the other system's own reader does.
func (n *Mailboxes) Receive(ctx context.Context, inbox string, take func(bridge.Message) error) error {
	from, err := n.folder(inbox, "inbox")
	if err != nil {
		return err
	}
	processed, err := n.folder(inbox, "processed")
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !strings.HasSuffix(e.Name(), ".msg.json") {
			continue // another writer's temp file
		}
		letter, err := readMessage(filepath.Join(from, e.Name()), inbox)
		if err == nil {
			err = take(letter)
		}
		if err == nil {
			err = retireFile(filepath.Join(from, e.Name()), processed)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", e.Name(), err))
		}
	}
	return errors.Join(failed...)
}

func retireFile(file, processed string) error {
	if err := state.MkdirOutside(processed); err != nil {
		return err
	}
	err := state.MoveOutside(file, filepath.Join(processed, filepath.Base(file)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its own reader was faster; the mail has an id
	}
	return err
}

func readMessage(file, inbox string) (bridge.Message, error) {
	var m message
	data, err := bridge.ReadFile(file, maxMessage)
	if err != nil {
		return bridge.Message{}, err
	}
	if err := json.Unmarshal(data, &m); err != nil || m.ID == "" || m.From == "" {
		return bridge.Message{}, errors.New("no message of a mailbox, and is left as it is")
	}
	if m.To != inbox {
		return bridge.Message{}, fmt.Errorf("it is for %q, and is left as it is", wording.Clip(m.To, bridge.MaxQuoted))
	}
	return m.inward()
}

// Deliver implements bridge.System. The file's name is made of the rig's message, and
// the other system never deletes one, so what stands in inbox/ or processed/
// was delivered.
func (n *Mailboxes) Deliver(_ context.Context, inbox string, o bridge.Outgoing) error {
	to, err := n.folder(inbox, "inbox")
	if err != nil {
		return err
	}
	processed, err := n.folder(inbox, "processed")
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d_%s.msg.json", o.Timestamp.UnixNano(), o.From)
	for _, dir := range []string{to, processed} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	m, err := outward(inbox, o)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := state.MkdirOutside(to); err != nil {
		return err
	}
	return state.ReplaceOutside(filepath.Join(to, name), append(data, '\n'))
}

// Settle implements bridge.System: there is nothing to forget.
func (n *Mailboxes) Settle(string, *mail.Entry) error { return nil }
