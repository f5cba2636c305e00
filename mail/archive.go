package mail

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// archiveSlice is how many messages are moved while the lock is held once. They share the
// syncs, and others wait for the lock no longer than one slice takes.
const archiveSlice = 128

// ArchiveOld moves mail with a time before cutoff to archive/ under the same name, and
// returns the names. It moves unread mail only if unread is true. A message that can't be
// moved does not stop the others; the errors are joined. The lock is released between
// slices. The log names by as the agent that archives. Durable when it returns nil.
func (b *Mailbox) ArchiveOld(ctx context.Context, by state.AgentID, cutoff time.Time, unread bool) ([]Name, error) {
	var moved []Name
	var failed []error
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			failed = append(failed, err)
			break
		}
		var some []Name
		var err error
		some, more, err = b.ArchiveBatch(ctx, by, cutoff, unread)
		moved = append(moved, some...)
		if err != nil {
			failed = append(failed, err)
		}
	}
	return moved, errors.Join(failed...)
}

// ArchiveBatch moves one slice of ArchiveOld. more is true unless it was the last one.
func (b *Mailbox) ArchiveBatch(ctx context.Context, by state.AgentID, cutoff time.Time, unread bool) (moved []Name, more bool, err error) {
	names, more, err := b.nextAged(cutoff, unread)
	if err != nil || len(names) == 0 {
		return nil, false, err
	}
	l, err := b.lock(ctx)
	if err != nil {
		return nil, more, err
	}
	defer l.Unlock()
	var moves []state.FileMove
	var at []Name
	var failed []error
	for _, n := range names {
		// A message that was moved or damaged meanwhile is not an error here.
		m, err := b.readMessage(b.path(n, false), n)
		switch {
		case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrCorrupt):
		case err != nil:
			failed = append(failed, err)
		case m.Timestamp.Before(cutoff) && (m.Read || unread):
			moves, at = append(moves, state.FileMove{From: b.path(n, false), To: b.path(n, true)}), append(at, n)
		}
	}
	var events []event.Event
	for i, err := range b.tree.MoveAll(moves) {
		if err != nil {
			failed = append(failed, err)
			continue
		}
		moved = append(moved, at[i])
		events = append(events, event.MailArchived(by, b.owner, string(at[i])))
	}
	b.log.Tell(events...)
	return moved, more, errors.Join(failed...)
}

// nextAged returns the next slice of candidates: messages that are older than cutoff
// according to their names. It lists them once, before the first slice.
func (b *Mailbox) nextAged(cutoff time.Time, unread bool) (names []Name, more bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.aged) == 0 {
		if err := b.refresh(); err != nil {
			return nil, false, err
		}
		b.unpack()
		b.listAged(cutoff.Add(time.Second), unread) // the times of name and message may differ by a second
	}
	n := min(archiveSlice, len(b.aged))
	names, b.aged = b.aged[:n], b.aged[n:]
	return names, len(b.aged) > 0, nil
}

func (b *Mailbox) listAged(cutoff time.Time, unread bool) {
	type candidate struct {
		name Name
		at   time.Time
	}
	var old []candidate
	add := func(n Name) {
		if at, _, err := state.ParseTimestampedName(string(n)); err == nil && at.Before(cutoff) {
			old = append(old, candidate{n, at.Time})
		}
	}
	for n := range b.index.read {
		add(n)
	}
	if unread {
		for n, k := range b.index.live {
			if k.err == nil {
				add(n)
			}
		}
	}
	slices.SortFunc(old, func(a, c candidate) int { return a.at.Compare(c.at) })
	b.aged = nil
	for _, c := range old {
		b.aged = append(b.aged, c.name)
	}
}
