package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Dir is the folder above the mailboxes.
const Dir = state.StateDir + "/mail"

const archiveName = "archive"

// Mailbox is one agent's mail. It keeps an index of the messages that are read, so that
// Unread does not open them again.
type Mailbox struct {
	tree  *state.Tree
	owner state.AgentID
	log   *event.Log

	mu     sync.Mutex
	follow state.Follower
	index  index
	// aged are candidates for the archive, oldest first.
	aged []Name
	// cacheFrom is the constant of the same name, or less in tests.
	cacheFrom int
	// parsed counts the files that were read, for tests of the index.
	parsed atomic.Int64
}

// NewMailbox returns the mailbox of an agent. Its folder need not exist yet.
func NewMailbox(t *state.Tree, owner state.AgentID) *Mailbox {
	return &Mailbox{tree: t, owner: owner, cacheFrom: cacheFrom}
}

// WithLog makes the mailbox log which messages are marked as read, archived and
// quarantined, and returns the mailbox. Call it before the mailbox is used.
func (b *Mailbox) WithLog(log *event.Log) *Mailbox {
	b.log = log
	return b
}

// Follow makes Unread look only at files that the watcher reports, unless it may have
// missed a change.
func (b *Mailbox) Follow(w *state.Watcher) {
	b.mu.Lock()
	b.follow = state.NewFollower(b.tree, b.Dir(), w)
	b.mu.Unlock()
}

// Owner is the agent whose mailbox it is.
func (b *Mailbox) Owner() state.AgentID { return b.owner }

// Dir is the mailbox's folder.
func (b *Mailbox) Dir() state.Path { return Dir.Join(string(b.owner)) }

// Stamp returns the version of the mailbox: while it is the same, no message was
// delivered, read or moved. It is zero if the last change is so recent that a later one
// could have the same stamp, and for a mailbox that does not exist.
func (b *Mailbox) Stamp() (state.Stamp, error) {
	dir, err := b.tree.OpenFolder(b.Dir())
	if errors.Is(err, state.ErrNotFound) {
		return state.Stamp{}, nil
	}
	if err != nil {
		return state.Stamp{}, err
	}
	defer dir.Close()
	stamp, err := dir.Stamp()
	if err != nil || !stamp.Settled(time.Now()) { //nolint:forbidigo // compared with the system's own stamps
		return state.Stamp{}, err
	}
	return stamp, nil
}

func (b *Mailbox) path(n Name, archived bool) state.Path {
	if archived {
		return b.Dir().Join(archiveName, string(n))
	}
	return b.Dir().Join(string(n))
}

func (b *Mailbox) lock(ctx context.Context) (*state.Lock, error) {
	return b.tree.Lock(ctx, state.LockMailbox, string(b.owner), b.Dir())
}

// List returns the mail that is not archived, in the order of time, and an error for each
// file that is not a message of this mailbox or can't be read (ErrRefused when the system
// refuses). It changes nothing.
func (b *Mailbox) List() ([]Entry, []*state.Corruption, error) { return b.list(false, nil) }

// Archive returns the archived mail like List.
func (b *Mailbox) Archive() ([]Entry, []*state.Corruption, error) { return b.list(true, nil) }

// Select returns the messages of List, or of Archive, for which wanted returns true for
// the time and the sender in the name. It opens no other files, and skips damaged ones.
// Errors: ErrRefused for a wanted file that the system refuses to read.
func (b *Mailbox) Select(archived bool, wanted func(state.Time, state.AgentID) bool) ([]Entry, error) {
	all, bad, err := b.list(archived, func(n Name) bool {
		at, sender, err := state.ParseTimestampedName(string(n))
		return err == nil && wanted(at, sender)
	})
	if err != nil {
		return nil, err
	}
	return all, firstRefused(bad)
}

// firstRefused returns the first error that is an ErrRefused, or nil.
func firstRefused(bad []*state.Corruption) error {
	for _, c := range bad {
		if errors.Is(c, state.ErrRefused) {
			return c
		}
	}
	return nil
}

// list reads the messages with wanted names; nil wants all.
func (b *Mailbox) list(archived bool, wanted func(Name) bool) ([]Entry, []*state.Corruption, error) {
	dir, err := b.tree.OpenFolder(b.path("x", archived).Dir())
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	names, err := b.names(dir, archived)
	if err != nil {
		return nil, nil, err
	}
	var files []string
	for _, n := range names {
		if wanted == nil || wanted(Name(n.Name)) {
			files = append(files, n.Name)
		}
	}
	slices.Sort(files)
	var entries []Entry
	var bad []*state.Corruption
	place := b.path("x", archived).Dir()
	for i, k := range state.ReadMany(files, func(file string, buf []byte) known { return b.read(dir, Name(file), true, buf) }) {
		c := damage(place.Join(files[i]), k.err)
		switch {
		case errors.Is(k.err, state.ErrNotFound):
		case c != nil:
			bad = append(bad, c)
		case k.err != nil:
			return nil, nil, k.err
		default:
			entries = append(entries, Entry{Name: Name(files[i]), Archived: archived, Message: *k.msg})
		}
	}
	Sort(entries)
	return entries, bad, nil
}

// damage returns err as a *Corruption if it concerns a single file: the file is not a
// message of this mailbox, or the system refuses to read it. Otherwise it returns nil.
func damage(p state.Path, err error) *state.Corruption {
	var c *state.Corruption
	var why unix.Errno
	switch {
	case errors.As(err, &c):
		return c
	case errors.As(err, &why) && (why.Is(fs.ErrPermission) || why == unix.EIO):
		return &state.Corruption{Path: string(p), Reason: why.Error(), Cause: fmt.Errorf("%w: %w", state.ErrRefused, why)}
	}
	return nil
}

// names returns the files of a mailbox's folder, without the archive.
func (b *Mailbox) names(dir *state.Folder, archived bool) ([]state.FolderEntry, error) {
	names, err := dir.Entries()
	if archived || err != nil {
		return names, err
	}
	return slices.DeleteFunc(names, func(n state.FolderEntry) bool {
		if n.Name != archiveName {
			return false
		}
		stamp, err := dir.Stat(archiveName)
		return err == nil && stamp.IsDir()
	}), nil
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

// MarkRead records that the owner has processed a message; only the flag changes. It does
// nothing if the message is read or archived already. Durable when it returns nil.
// Errors: ErrNotFound, *Corruption.
func (b *Mailbox) MarkRead(ctx context.Context, n Name) error {
	l, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	p := b.path(n, false)
	data, err := b.tree.Read(p, MaxSize)
	if errors.Is(err, state.ErrNotFound) {
		_, err = b.Get(n) // an archived message is read
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
	if err := b.tree.Replace(p, flipped); err != nil {
		return err
	}
	b.log.Tell(event.MailHandled(describe(b.owner, n, &m)))
	return nil
}

// describe returns the content of the events about a message.
func describe(owner state.AgentID, n Name, m *Message) event.Mail {
	t := event.Mail{Owner: owner, Name: string(n), From: m.From, Type: string(m.Type), Subject: m.Subject}
	if m.Ref != nil {
		t.Work = event.Work{Bead: m.Ref.BeadID, Assignment: m.Ref.AssignmentID, Session: m.Ref.Session}
	}
	return t
}

// SameArchived reports whether the message in the mailbox can be dropped in favor of the
// archived one of the same name: they are equal, or only the archived one is marked as
// read.
func (m *Message) SameArchived(archived *Message) bool {
	if m.Read && !archived.Read {
		return false
	}
	current := *m
	current.Read = archived.Read
	a, errA := state.Encode(current)
	b, errB := state.Encode(*archived)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// DropArchived removes a message from the mailbox if the archive has the same message;
// see SameArchived. It does nothing if one of them does not exist. Errors: ErrConflict
// when they differ.
func (b *Mailbox) DropArchived(ctx context.Context, n Name) error {
	l, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	var both [2]Message
	for i, archived := range []bool{false, true} {
		both[i], err = b.readMessage(b.path(n, archived), n)
		if errors.Is(err, state.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if !both[0].SameArchived(&both[1]) {
		return state.Conflictf("message "+string(n), "differs from the archived one")
	}
	return b.tree.Remove(b.path(n, false))
}

// Quarantine moves a file that List reported as damaged to the quarantine, if it is still
// damaged under the lock, and reports whether it moved it. Durable when it returns nil.
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
	switch {
	case errors.Is(err, state.ErrNotFound):
		return false, nil
	case !errors.As(err, &again):
		return false, err
	}
	_, err = b.tree.Quarantine(p, again.Reason, now)
	if err == nil {
		b.log.Tell(event.MailQuarantined(b.owner, again))
	}
	return err == nil, err
}
