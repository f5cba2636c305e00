package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// The life of mail, cut at every moment.

func registered(r *model.Run) error {
	for id, role := range map[state.AgentID]agent.Role{"mayor": agent.Mayor, "polecat-alpha": agent.Polecat} {
		if _, err := agent.NewStore(r.Tree, nil).Register(r, id, role, "rig", nil, now); err != nil {
			return err
		}
	}
	return nil
}

func sender(r *model.Run) *Sender { return NewSender(r.Tree, agent.NewStore(r.Tree, nil), fixed, 0) }

func numbered(id string) Message {
	m := hello()
	m.ID, m.Body = id, string(bytes.Repeat([]byte("body "), 1000))
	return m
}

// places lists where a message is, by its id.
func places(c *model.Crash, id string) []string {
	return c.Holding(string(Dir.Join("mayor")), `"id": "`+id+`"`)
}

// sent is kept for what is being sent: when that fails, there is no message.
func sent(c *model.Crash, ids ...string) error {
	for _, id := range ids {
		if c.Failed && !c.Acked(id) && len(places(c, id)) > 0 {
			return fmt.Errorf("message %s is there though its sending failed", id)
		}
	}
	return kept(c, ids...)
}

// kept demands that what was promised is there, in the mailbox or the archive,
// and nothing twice but for a move that a crash left half done.
func kept(c *model.Crash, ids ...string) error {
	for _, id := range ids {
		at := places(c, id)
		switch {
		case c.Acked(id) && len(at) == 0:
			return fmt.Errorf("message %s is lost", id)
		case len(at) > 2, len(at) == 2 && (c.Healed && !c.Cut || !bytes.Equal(c.Files[at[0]].Data, c.Files[at[1]].Data)):
			return fmt.Errorf("message %s is at %v", id, at)
		}
	}
	return nil
}

func sends(ids ...string) func(r *model.Run) error {
	return func(r *model.Run) error {
		for _, id := range ids {
			if _, err := sender(r).Send(r, numbered(id)); err != nil {
				return err
			}
			r.Ack(id)
		}
		return nil
	}
}

func TestCrashSend(t *testing.T) {
	model.Sweep(t, model.Scenario{
		Name: "mail to a new mailbox", Prepare: registered,
		Do: sends("a", "b"), Heal: sends("a", "b"),
		Check: func(c *model.Crash) error { return sent(c, "a", "b") },
	})
	model.Sweep(t, model.Scenario{
		Name: "mail beside other mail",
		Prepare: func(r *model.Run) error {
			return errors.Join(registered(r), sends("old")(r))
		},
		Do: sends("new", "new"), Heal: sends("old", "new"),
		Check: func(c *model.Crash) error {
			if len(places(c, "old")) != 1 {
				return errors.New("the old message is lost")
			}
			return sent(c, "new")
		},
	})
}

// What another program moved to the archive need not be durable there when a sender finds it again.
func TestCrashSendFindsWhatAnotherMoved(t *testing.T) {
	n := NameAt(now, "polecat-alpha")
	for name, again := range map[string]func(r *model.Run) error{
		"send":   sends("a"),
		"sendAs": func(r *model.Run) error { return sender(r).SendAs(r, n, numbered("a")) },
		"sendAll": func(r *model.Run) error {
			_, errs := sender(r).SendAll(r, []Message{numbered("a")})
			return errors.Join(errs...)
		},
	} {
		model.Sweep(t, model.Scenario{
			Name: "mail that another program archives is sent again: " + name,
			Prepare: func(r *model.Run) error {
				return errors.Join(registered(r), sends("a")(r), r.Tree.MkdirAll(NewMailbox(r.Tree, "mayor").path(n, true).Dir()))
			},
			Do: func(r *model.Run) error {
				box := NewMailbox(r.Tree, "mayor")
				err := r.Disk().Rename(r.Tree.Abs(box.path(n, false)), r.Tree.Abs(box.path(n, true)))
				if err = errors.Join(err, again(r)); err == nil {
					r.Ack("a")
				}
				return err
			},
			Check: func(c *model.Crash) error { return kept(c, "a") },
		})
	}
}

// A name that was fixed in a record is used by whoever comes next.
func TestCrashSendAs(t *testing.T) {
	send := func(r *model.Run) error {
		m := numbered("a")
		if err := sender(r).SendAs(r, NameAt(now, m.From), m); err != nil {
			return err
		}
		r.Ack("a")
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name: "mail under a fixed name", Prepare: registered, Do: send, Heal: send,
		Check: func(c *model.Crash) error { return sent(c, "a") },
	})
}

func TestCrashReadAndArchive(t *testing.T) {
	next := func(r *model.Run) error {
		box := NewMailbox(r.Tree, "mayor")
		n := NameAt(now, "polecat-alpha")
		if err := box.MarkRead(r, n); err != nil {
			return err
		}
		r.Ack("read")
		moved, err := box.ArchiveOld(r, "mayor", now.Add(time.Hour), false)
		if err != nil {
			return err
		}
		if len(moved) > 0 {
			r.Ack("archived")
		}
		if e, err := box.Get(n); err != nil || !e.Archived {
			return fmt.Errorf("archived %t, %w", e.Archived, err)
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name:    "mail is read and archived",
		Prepare: func(r *model.Run) error { return errors.Join(registered(r), sends("a", "unread")(r)) },
		Do:      next, Heal: next,
		Check: func(c *model.Crash) error {
			if err := kept(c, "a"); err != nil {
				return err
			}
			at := places(c, "a")
			if len(at) == 0 {
				return errors.New("the message is lost")
			}
			archive := c.Holding(string(Dir.Join("mayor", archiveName)), `"id": "a"`)
			for _, p := range at {
				if c.Acked("read") && !bytes.Contains(c.Files[p].Data, []byte(`"read": true`)) {
					return errors.New("it is unread again")
				}
			}
			if unread := places(c, "unread"); len(unread) != 1 || len(c.Holding(string(Dir.Join("mayor", archiveName)), `"unread"`)) > 0 {
				return fmt.Errorf("unread mail is at %v", unread)
			}
			if c.Acked("archived") && (len(at) != 1 || len(archive) != 1) {
				return fmt.Errorf("it is not archived: %v", at)
			}
			return nil
		},
	})
}

func TestCrashQuarantine(t *testing.T) {
	const name = "2026-03-05T10-30-00.000000000Z-polecat-alpha.json"
	next := func(r *model.Run) error {
		box := NewMailbox(r.Tree, "mayor")
		_, bad, err := box.List()
		if err != nil {
			return err
		}
		for _, c := range bad {
			moved, err := box.Quarantine(r, c, now)
			if err != nil {
				return err
			}
			if moved {
				r.Ack("moved")
			}
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name: "mail goes to quarantine",
		Prepare: func(r *model.Run) error {
			return errors.Join(registered(r), r.Tree.WriteNew(Dir.Join("mayor", name), []byte("{ broken")))
		},
		Do: next, Heal: next,
		Check: func(c *model.Crash) error {
			there := len(c.Holding(string(Dir), "{ broken"))
			kept := len(c.Holding(string(state.QuarantineDir), "{ broken"))
			if there+kept == 0 || c.Acked("moved") && (there > 0 || kept == 0) {
				return fmt.Errorf("%d in the mailbox, %d in quarantine", there, kept)
			}
			return nil
		},
	})
}

// A late marker can't bring a moved file back: marking waits for the lock.
func TestMarkReadHoldsTheLock(t *testing.T) {
	p := newPost(t)
	n := p.send(t, hello())
	l, err := p.box.lock(t.Context())
	must(t, err)
	defer l.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := NewMailbox(p.tree, "mayor").MarkRead(ctx, n); !errors.Is(err, state.ErrLockTimeout) {
		t.Errorf("with the lock taken: %v", err)
	}
}

// What is read as damaged may be in the middle of being replaced or moved by who
// holds the lock: nobody else takes it away.
func TestQuarantineHoldsTheLock(t *testing.T) {
	p := newPost(t)
	at := p.box.Dir().Join("2026-03-05T10-30-00.000000000Z-mayor.json")
	must(t, p.tree.WriteNew(at, []byte("{ broken")))
	l, err := p.box.lock(t.Context())
	must(t, err)
	defer l.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	bad := &state.Corruption{Path: string(at), Reason: "broken"}
	if moved, err := p.box.Quarantine(ctx, bad, state.At(time.Now())); moved || !errors.Is(err, state.ErrLockTimeout) {
		t.Errorf("with the lock taken: %v, %v", moved, err)
	}
}
