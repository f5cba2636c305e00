package execute

import (
	"context"
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// archiveInterval is how often an agent archives its own old mail.
const archiveInterval = time.Hour

// inbox fetches an agent's own mail and nudges: what is unread in processing
// order. It quarantines what does not belong, and archives what is old.
type inbox struct {
	Agent
	archived time.Time
	// since is when this process began.
	since state.Time
	// durable are the unread messages of which this process knows that they
	// survive a power cut.
	durable map[mail.Name]bool
	// said holds the damaged files already reported.
	said map[string]bool
}

func newInbox(a Agent) *inbox { return &inbox{Agent: a, since: a.Now(), said: map[string]bool{}} }

// mail returns the unread mail in processing order.
func (in *inbox) mail(ctx context.Context, mayor state.AgentID) ([]mail.Entry, error) {
	box := in.Rig.Mailbox(in.ID)
	unread, bad, err := box.Unread()
	if err != nil {
		return nil, err
	}
	for _, c := range bad {
		if errors.Is(c, state.ErrRefused) {
			// It stays where it is: with its permissions set right it is mail like any other.
			in.damaged(c)
			continue
		}
		moved, err := box.Quarantine(ctx, c, in.Now())
		if err != nil {
			in.Say("%s: can't quarantine %s: %v", in.ID, c.Path, err)
			continue
		}
		if moved {
			in.Say("%s: quarantined %s: %s", in.ID, c.Path, c.Reason)
		}
	}
	if err := in.settle(box, unread); err != nil {
		return nil, err
	}
	in.address(unread)
	mail.SortForProcessing(unread, mayor)
	if err := in.archive(ctx, box); err != nil {
		in.Say("%s: can't archive old mail: %v", in.ID, err) // it stays where it is: no reason to do nothing else
	}
	return unread, nil
}

// address lets a shutdown_request that names no session, as other programs write it,
// name this one, if it was sent since this process began. An older one was meant for
// an earlier process.
func (in *inbox) address(unread []mail.Entry) {
	for i := range unread {
		e := &unread[i]
		if e.Type == mail.ShutdownRequest && !e.Timestamp.Before(in.since.Time) && (e.Ref == nil || e.Ref.Session == "") {
			e.Ref = &mail.Ref{Session: in.Session}
		}
	}
}

// damaged says once of a file that it can't be read, and reports whether it is
// the first time.
func (in *inbox) damaged(c *state.Corruption) bool {
	if in.said[c.Path] {
		return false
	}
	in.said[c.Path] = true
	in.Say("%s: can't read %s: %s (chipset doctor says more)", in.ID, c.Path, c.Reason)
	in.Rig.Events.Tell(event.Warning(in.ID, event.Work{}, c.Path, c.Reason))
	return true
}

// settle makes sure that the unread messages survive a power cut. What is
// visible may not be durable yet: its sender may have died between rename and
// fsync. Nobody acts on it before it is.
func (in *inbox) settle(box *mail.Mailbox, unread []mail.Entry) error {
	durable := make(map[mail.Name]bool, len(unread))
	fresh := false
	for i := range unread {
		durable[unread[i].Name] = true
		fresh = fresh || !in.durable[unread[i].Name]
	}
	if fresh {
		if err := in.Rig.Tree.SyncDir(box.Dir()); err != nil {
			return err
		}
	}
	in.durable = durable
	return nil
}

// archive moves read mail away that is older than the definition keeps it, a
// slice with each tick: what it moves is itself news that brings the next tick.
func (in *inbox) archive(ctx context.Context, box *mail.Mailbox) error {
	now := in.Now().Time
	if since := now.Sub(in.archived); since >= 0 && since < archiveInterval {
		return nil
	}
	_, more, err := box.ArchiveBatch(ctx, in.ID, now.Add(-in.Rig.Def.Mail.Retention), false)
	if !more || err != nil {
		in.archived = now
	}
	return err
}

// nudges returns what is unseen, oldest first. One that can't be read is a
// hint that is lost: mail is the truth.
func (in *inbox) nudges() ([]nudge.Nudge, error) {
	unseen, _, err := in.Rig.Slot(in.ID).Unseen()
	return unseen, err
}
