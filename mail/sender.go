package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
)

// Sender delivers messages into the mailboxes of a tree.
type Sender struct {
	tree   *state.Tree
	agents agent.Store
	clock  state.Clock
	// limit is the largest message in bytes.
	limit int64
	log   *event.Log
}

// NewSender returns a sender. limit is the largest message in bytes; 0, or more than
// MaxSize, means MaxSize.
func NewSender(t *state.Tree, agents agent.Store, clock state.Clock, limit int64) *Sender {
	if limit <= 0 || limit > MaxSize {
		limit = MaxSize
	}
	return &Sender{tree: t, agents: agents, clock: clock, limit: limit}
}

// WithLog makes the sender log each message that it sends, and returns the sender. Call
// it before the sender is used.
func (s *Sender) WithLog(log *event.Log) *Sender {
	s.log = log
	return s
}

// Send delivers a message and returns its name, which contains the message's time or,
// if that name is taken, the next free nanosecond. When the error is nil, the message
// survives a power cut; otherwise there is no message. If the same sender has
// delivered a message with the same ID to the same recipient before, Send delivers
// nothing and returns the name of that message. A message about a task must be a legal
// step of the task; see admitTask. Errors: ErrNotFound, ErrConflict, ErrTooLarge;
// ErrRefused for a message with an ID, if an earlier message of the sender can't be read.
func (s *Sender) Send(ctx context.Context, m Message) (Name, error) {
	if err := s.complete(&m); err != nil {
		return "", err
	}
	if err := s.recipient(&m); err != nil {
		return "", err
	}
	box := NewMailbox(s.tree, m.To)
	if m.ID != "" || m.Task != nil {
		l, err := box.lock(ctx)
		if err != nil {
			return "", err
		}
		defer l.Unlock()
	}
	if m.ID != "" {
		if n, err := box.findID(m.From, m.ID); err != nil || n != "" {
			return n, err
		}
	}
	if err := s.admitTask(box, &m); err != nil {
		return "", err
	}
	for {
		n := NameAt(m.Timestamp, m.From)
		err := s.publish(box, n, &m)
		if !errors.Is(err, state.ErrExists) {
			return n, err
		}
		m.Timestamp = state.At(m.Timestamp.Add(1))
	}
}

// complete sets the defaults of a message and validates it.
func (s *Sender) complete(m *Message) error {
	m.Read, m.Priority = false, cmp.Or(m.Priority, Normal)
	if m.Timestamp.IsZero() {
		m.Timestamp = s.clock.Now()
	}
	return m.Validate()
}

func (s *Sender) publish(box *Mailbox, n Name, m *Message) error {
	file, err := s.file(box, n, m)
	if err != nil {
		return err
	}
	err = s.tree.WriteNew(file.Path, file.Data)
	if err == nil {
		s.log.Tell(event.MailSent(describe(m.To, n, m)))
	}
	return err
}

// file returns the file of a message. It returns ErrExists if the archive has a message
// of that name.
func (s *Sender) file(box *Mailbox, n Name, m *Message) (state.NewFile, error) {
	data, err := m.Encode(s.limit)
	if err != nil {
		return state.NewFile{}, err
	}
	archived, err := s.tree.Exists(box.path(n, true))
	if err != nil {
		return state.NewFile{}, err
	}
	if archived {
		return state.NewFile{}, fmt.Errorf("%s: %w", n, state.ErrExists)
	}
	return state.NewFile{Path: box.path(n, false), Data: data}, nil
}

// delivery identifies a message with an ID in one mailbox.
type delivery struct {
	from state.AgentID
	id   string
}

// findID returns the name of an earlier delivery, which is durable, or "". The caller
// holds the lock of the mailbox.
func (b *Mailbox) findID(from state.AgentID, id string) (Name, error) {
	found, err := b.delivered(map[delivery]bool{{from, id}: true})
	return found[delivery{from, id}], err
}

// delivered returns the names of the wanted deliveries that were made before. They are
// durable: the caller holds the lock of the mailbox, which syncs its folder, and
// delivered syncs the archive.
func (b *Mailbox) delivered(wanted map[delivery]bool) (map[delivery]Name, error) {
	senders := map[state.AgentID]bool{}
	for d := range wanted {
		senders[d.from] = true
	}
	found := map[delivery]Name{}
	for _, archived := range []bool{false, true} {
		entries, bad, err := b.list(archived, func(n Name) bool {
			_, sender, err := state.ParseTimestampedName(string(n))
			return err == nil && senders[sender]
		})
		if err != nil {
			return nil, err
		}
		if err := firstRefused(bad); err != nil {
			return nil, err // it may be a wanted delivery, which must not be made twice
		}
		some := false
		for i := range entries {
			d := delivery{entries[i].From, entries[i].ID}
			if _, earlier := found[d]; !earlier && wanted[d] {
				found[d], some = entries[i].Name, true
			}
		}
		if some && archived {
			if err := b.tree.SyncDir(b.path("x", archived).Dir()); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// SendAs delivers a message under a name that the caller has recorded before, so that
// it can be called again after a crash. The message needs an ID. If a message with the
// same sender and ID has the name already, in the mailbox or the archive, SendAs
// delivers nothing and returns nil. If another file has the name, it returns ErrExists,
// and the caller must choose another name. Durable when it returns nil.
func (s *Sender) SendAs(ctx context.Context, n Name, m Message) error {
	m.Timestamp = n.Time()
	if err := s.complete(&m); err != nil {
		return err
	}
	if m.ID == "" || n != NameAt(m.Timestamp, m.From) {
		return fmt.Errorf("message %s: a fixed name needs an id and the sender's own name", n)
	}
	if err := s.recipient(&m); err != nil {
		return err
	}
	box := NewMailbox(s.tree, m.To)
	l, err := box.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	there, err := box.Get(n)
	switch {
	case err == nil && there.From == m.From && there.ID == m.ID:
		return s.tree.SyncDir(box.path(n, there.Archived).Dir())
	case err != nil && !errors.Is(err, state.ErrCorrupt) && !errors.Is(err, state.ErrNotFound):
		return err
	case errors.Is(err, state.ErrNotFound):
		return s.publish(box, n, &m)
	}
	// A file in place of the folder is another error: it blocks every name.
	if _, err := s.tree.List(box.path(n, there.Archived).Dir()); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", n, state.ErrExists)
}
