package actor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// waitTick is how often a wait polls, in case a notification is lost.
const waitTick = time.Second

// Wait calls look after every change in one of the folders, until look returns true.
// what names the wait in errors; timeout 0 waits forever. Errors: ErrTimeout, that of
// look, the context's.
func Wait(ctx context.Context, r *rig.Rig, what string, timeout time.Duration, look func() (bool, error), folders ...state.Path) error {
	var news <-chan struct{}
	// Without notification the tick must do.
	if w, err := state.NewWatcher(r.Tree); err == nil {
		defer w.Close()
		if ch, err := w.Subscribe(folders...); err == nil {
			news = ch
			r.Follow(w)
			defer r.Follow(nil) // before the watcher is closed
		}
	}
	var over <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	for {
		if found, err := look(); found || err != nil {
			return err
		}
		select {
		case <-news:
		case <-tick.C:
		case <-over:
			return fmt.Errorf("%s: %w: nothing within %s", what, ErrTimeout, timeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// MailFilter selects the unread mail to wait for.
type MailFilter struct {
	// Type and From are "" for any. The mail of an agent's machinery counts only
	// when its type is asked for.
	Type mail.Type
	From state.AgentID
}

func (f MailFilter) wants(reader state.AgentID, e *mail.Entry) bool {
	switch {
	case f.From != "" && e.From != f.From:
		return false
	case f.Type != "":
		return e.Type == f.Type
	}
	return MayMarkRead(reader, e.Type)
}

// WaitMail waits for unread mail of the actor, and returns the message to process
// first. It returns at once if there is some; nothing is marked. The last mail of a
// worker to the person counts as a question from then on, unless mail of another
// sender ends the wait. Errors: ErrTimeout.
func (a *Actor) WaitMail(ctx context.Context, timeout time.Duration, f MailFilter) (mail.Entry, error) {
	box := a.Mailbox(a.ID)
	var first mail.Entry
	var question mail.Name
	noted := false
	err := Wait(ctx, a.Rig, "mail wait", timeout, func() (bool, error) {
		unread, _, err := box.Unread()
		if err != nil {
			return false, err
		}
		unread = slices.DeleteFunc(unread, func(e mail.Entry) bool { return !f.wants(a.ID, &e) })
		if len(unread) == 0 {
			if !noted {
				noted = true
				question, err = a.awaitReply(ctx, f)
			}
			return false, err
		}
		mail.SortForProcessing(unread, a.Mayor())
		first = unread[0]
		return true, nil
	}, box.Dir())
	if err == nil && question != "" && first.From != state.Human && first.From != a.Mayor() {
		err = a.setAwaited(ctx, question, false)
	}
	return first, err
}

// MayMarkRead reports whether reader may mark a message of a type as read. The mail of an
// agent's machinery is marked by its role process; the person has no such process.
func MayMarkRead(reader state.AgentID, t mail.Type) bool {
	return reader == state.Human || !t.RoleOnly()
}
