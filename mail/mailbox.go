package mail

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// Dir is the folder above the mailboxes.
const Dir = state.StateDir + "/mail"

const archiveName = "archive"

// Mailbox is one agent's mail.
type Mailbox struct {
	tree  *state.Tree
	owner state.AgentID

	mu    sync.Mutex
	cache map[Name]known
}

type known struct {
	info  fs.FileInfo
	fresh bool
	msg   Message
	err   error
}

// NewMailbox opens the mailbox of an agent. It need not exist yet.
func NewMailbox(t *state.Tree, owner state.AgentID) *Mailbox {
	return &Mailbox{tree: t, owner: owner, cache: map[Name]known{}}
}

// Owner is whose mailbox it is.
func (b *Mailbox) Owner() state.AgentID { return b.owner }

// Dir is the mailbox's folder.
func (b *Mailbox) Dir() state.Path { return Dir.Join(string(b.owner)) }

func (b *Mailbox) path(n Name, archived bool) state.Path {
	if archived {
		return b.Dir().Join(archiveName, string(n))
	}
	return b.Dir().Join(string(n))
}

func (b *Mailbox) lock(ctx context.Context) (*state.Lock, error) {
	return b.tree.Lock(ctx, state.LockMailbox, string(b.owner), b.Dir())
}

// List returns the mail that is not archived in the order of time, and beside
// it what does not belong (each a *Corruption). Nothing is moved or flipped.
func (b *Mailbox) List() ([]Entry, []*state.Corruption, error) { return b.list(false, false) }

// Archive returns the archived mail like List.
func (b *Mailbox) Archive() ([]Entry, []*state.Corruption, error) { return b.list(true, false) }

func (b *Mailbox) list(archived, unread bool) ([]Entry, []*state.Corruption, error) {
	dir := b.path("x", archived).Dir()
	files, err := b.tree.List(dir)
	if err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var entries []Entry
	var bad []*state.Corruption
	seen := make(map[Name]bool, len(files))
	for _, f := range files {
		if f.IsDir() && !archived && f.Name() == archiveName {
			continue
		}
		n := Name(f.Name())
		seen[n] = true
		if k, known := b.cache[n]; unread && known && k.err == nil && k.msg.Read {
			continue // read once is read for ever: no need to look
		}
		m, err := b.peek(n, archived)
		var c *state.Corruption
		switch {
		case errors.Is(err, state.ErrNotFound):
		case errors.As(err, &c):
			bad = append(bad, c)
		case err != nil:
			return nil, nil, err
		default:
			entries = append(entries, Entry{Name: n, Archived: archived, Message: m})
		}
	}
	if !archived {
		for n := range b.cache {
			if !seen[n] {
				delete(b.cache, n)
			}
		}
	}
	Sort(entries)
	return entries, bad, nil
}

// racyWindow: see state.Store; a file this old when read can't be replaced by
// one that looks the same.
const racyWindow = 100 * time.Millisecond

func (b *Mailbox) peek(n Name, archived bool) (Message, error) {
	p := b.path(n, archived)
	if archived {
		return b.readMessage(p, n)
	}
	info, err := os.Lstat(b.tree.Abs(p))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Message{}, fmt.Errorf("%s: %w", p, state.ErrNotFound)
		}
		return Message{}, err
	}
	if k, ok := b.cache[n]; ok && k.fresh && state.SameVersion(k.info, info) {
		return k.msg, k.err
	}
	age := time.Since(info.ModTime())
	m, err := b.readMessage(p, n)
	// What the system refused may be granted without any change to the file.
	lasting := err == nil || errors.Is(err, state.ErrCorrupt)
	b.cache[n] = known{info: info, fresh: lasting && age > racyWindow, msg: m, err: err}
	return m, err
}

func (b *Mailbox) readMessage(p state.Path, n Name) (Message, error) {
	data, err := b.tree.Read(p, MaxSize)
	if err != nil {
		return Message{}, err
	}
	return Decode(string(p), b.owner, n, data)
}

// Get returns one message, archived or not. Errors: ErrNotFound, *Corruption.
func (b *Mailbox) Get(n Name) (Entry, error) {
	for _, archived := range []bool{false, true} {
		m, err := b.readMessage(b.path(n, archived), n)
		if !errors.Is(err, state.ErrNotFound) {
			return Entry{Name: n, Archived: archived, Message: m}, err
		}
	}
	return Entry{}, &state.Unknown{Kind: "message", Name: string(n)}
}

// Unread returns what the owner has not processed, in the order of time.
func (b *Mailbox) Unread() ([]Entry, []*state.Corruption, error) {
	all, bad, err := b.list(false, true)
	unread := all[:0]
	for _, e := range all {
		if !e.Read {
			unread = append(unread, e)
		}
	}
	return unread, bad, err
}

// MarkRead records that the owner has processed a message; nothing but the
// flag changes. It is no error when it was read or archived before. Durable
// when it returns nil. Errors: ErrNotFound, *Corruption.
func (b *Mailbox) MarkRead(ctx context.Context, n Name) error {
	l, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	p := b.path(n, false)
	data, err := b.tree.Read(p, MaxSize)
	if errors.Is(err, state.ErrNotFound) {
		_, err = b.Get(n) // archived: it was read before
		return err
	}
	if err != nil {
		return err
	}
	m, err := Decode(string(p), b.owner, n, data)
	if err != nil || m.Read {
		return err
	}
	flipped, err := markRead(data)
	if err != nil {
		return &state.Corruption{Path: string(p), Reason: err.Error()}
	}
	return b.tree.Replace(p, flipped)
}

// ArchiveOld moves read mail whose time is before cutoff to archive/ under the
// same name, and returns the names. Unread mail is moved only when unread is
// asked for. A message that can't be moved stops no other: the error is all of
// theirs. Durable when it returns nil.
func (b *Mailbox) ArchiveOld(ctx context.Context, cutoff time.Time, unread bool) ([]Name, error) {
	candidates, _, err := b.List()
	if err != nil {
		return nil, err
	}
	var moved []Name
	var failed []error
	for _, e := range candidates {
		if !e.Timestamp.Before(cutoff) || !e.Read && !unread {
			continue
		}
		if err := ctx.Err(); err != nil {
			return moved, errors.Join(append(failed, err)...)
		}
		switch done, err := b.archiveOne(ctx, e.Name, unread); {
		case err != nil:
			failed = append(failed, err)
		case done:
			moved = append(moved, e.Name)
		}
	}
	return moved, errors.Join(failed...)
}

// archiveOne holds the lock for one message only, so that a large archival
// does not stop the mailbox. It reports whether it moved the message.
func (b *Mailbox) archiveOne(ctx context.Context, n Name, unread bool) (bool, error) {
	l, err := b.lock(ctx)
	if err != nil {
		return false, err
	}
	defer l.Unlock()
	m, err := b.readMessage(b.path(n, false), n)
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return false, nil // moved or damaged meanwhile; quarantine is another step
	}
	if err != nil || !m.Read && !unread {
		return false, err
	}
	if err := b.tree.Move(b.path(n, false), b.path(n, true)); err != nil {
		return false, err
	}
	return true, nil
}

// Quarantine moves a file that does not belong out of the mailbox, after
// looking at it again under the lock. It reports whether it was moved.
func (b *Mailbox) Quarantine(ctx context.Context, c *state.Corruption, now state.Time) (bool, error) {
	l, err := b.lock(ctx)
	if err != nil {
		return false, err
	}
	defer l.Unlock()
	p := state.Path(c.Path)
	n, inside := strings.CutPrefix(c.Path, string(b.Dir())+"/")
	info, err := os.Lstat(b.tree.Abs(p))
	archive := n == archiveName && err == nil && info.IsDir()
	if !inside || archive {
		return false, fmt.Errorf("%s is not in the mailbox of %s", c.Path, b.owner)
	}
	_, err = b.readMessage(p, Name(p.Base()))
	var again *state.Corruption
	if !errors.As(err, &again) {
		return false, nil // gone, or whole by now
	}
	_, err = b.tree.Quarantine(p, again.Reason, now)
	return err == nil, err
}

// Office is the sender's side: it delivers into the mailboxes of a tree.
type Office struct {
	tree   *state.Tree
	agents agent.Store
	clock  state.Clock
	// limit is the largest message in bytes.
	limit int64
}

// NewOffice opens the sender's side. limit 0 means MaxSize; it can only be lower.
func NewOffice(t *state.Tree, agents agent.Store, clock state.Clock, limit int64) *Office {
	if limit <= 0 || limit > MaxSize {
		limit = MaxSize
	}
	return &Office{tree: t, agents: agents, clock: clock, limit: limit}
}

// Send delivers a message under the next free nanosecond and returns its name.
// It returns nil only when the message survives a power cut; on every error
// there is no message. A message with an ID that the same sender delivered to
// the same recipient before is not delivered again: the earlier name comes back.
// A message about a task is held to the task's life, see admitTask. Errors:
// ErrNotFound, ErrConflict, ErrTooLarge.
func (o *Office) Send(ctx context.Context, m Message) (Name, error) {
	m.Read = false
	if m.Priority == "" {
		m.Priority = Normal
	}
	if m.Timestamp.IsZero() {
		m.Timestamp = o.clock.Now()
	}
	if err := m.Validate(); err != nil {
		return "", err
	}
	if err := o.recipient(&m); err != nil {
		return "", err
	}
	box := NewMailbox(o.tree, m.To)
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
	if err := o.admitTask(box, &m); err != nil {
		return "", err
	}
	for {
		n := NameAt(m.Timestamp, m.From)
		err := o.publish(box, n, &m)
		if !errors.Is(err, state.ErrExists) {
			return n, err
		}
		m.Timestamp = state.At(m.Timestamp.Add(1))
	}
}

func (o *Office) publish(box *Mailbox, n Name, m *Message) error {
	data, err := m.Encode(o.limit)
	if err != nil {
		return err
	}
	archived, err := o.tree.Exists(box.path(n, true))
	if err != nil {
		return err
	}
	if archived {
		return fmt.Errorf("%s: %w", n, state.ErrExists)
	}
	return o.tree.WriteNew(box.path(n, false), data)
}

func (b *Mailbox) findID(from state.AgentID, id string) (Name, error) {
	for _, archived := range []bool{false, true} {
		entries, _, err := b.list(archived, false)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if e.From == from && e.ID == id {
				return e.Name, b.tree.SyncDir(b.path(e.Name, archived).Dir())
			}
		}
	}
	return "", nil
}

// SendAs delivers a message under a name that was fixed before, in a record
// that survives its sender. The message needs an ID: what stands at the name,
// in the mailbox or the archive, with the same sender and ID, is this message
// and counts as delivered. Anything else there is ErrExists, and the caller
// fixes another name. Durable when it returns nil.
func (o *Office) SendAs(ctx context.Context, n Name, m Message) error {
	m.Read, m.Timestamp = false, n.Time()
	if m.Priority == "" {
		m.Priority = Normal
	}
	if err := m.Validate(); err != nil {
		return err
	}
	if m.ID == "" || n != NameAt(m.Timestamp, m.From) {
		return fmt.Errorf("message %s: a fixed name needs an id and the sender's own name", n)
	}
	if err := o.recipient(&m); err != nil {
		return err
	}
	box := NewMailbox(o.tree, m.To)
	l, err := box.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	there, err := box.Get(n)
	switch {
	case err == nil && there.From == m.From && there.ID == m.ID:
		return o.tree.SyncDir(box.path(n, there.Archived).Dir())
	case err == nil, errors.Is(err, state.ErrCorrupt):
		return fmt.Errorf("%s: %w", n, state.ErrExists)
	case !errors.Is(err, state.ErrNotFound):
		return err
	}
	return o.publish(box, n, &m)
}
