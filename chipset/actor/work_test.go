package actor

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// Makers of convoys take turns, so what they have checked of a bead holds: one maker gets
// it, and another makes nothing.
func TestABeadIsInOneConvoy(t *testing.T) {
	r := rigtest.New(t, "")
	s := as(r, state.Human)
	own, shared := string(add(t, r, "Own").ID), string(add(t, r, "Shared").ID)
	lock, err := r.Tree.Lock(t.Context(), state.LockDispatch, "convoys")
	rigtest.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.CreateConvoy(ctx, "early", []string{shared}); !errors.Is(err, state.ErrLockTimeout) {
		t.Errorf("while another makes one: %v", err)
	}
	lock.Unlock()
	_, err = s.CreateConvoy(t.Context(), "first", []string{shared})
	rigtest.Must(t, err)
	if _, err := s.CreateConvoy(t.Context(), "second", []string{own, shared}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("of a bead that is in another: %v", err)
	}
	if all, _, err := r.Convoys.All(); err != nil || len(all) != 1 || all[0].Name != "first" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestClaimOnlyInPullMode(t *testing.T) {
	r := rigtest.New(t, "")
	add(t, r, "one")
	if _, err := as(r, "polecat-alpha").Claim(t.Context(), ""); !errors.Is(err, state.ErrConflict) {
		t.Errorf("claimed beside the mayor: %v", err)
	}
}

// TestClaimsAtOnce: two who claim the same bead at once get one each, or
// nothing, and never the same.
func TestClaimsAtOnce(t *testing.T) {
	r := rigtest.New(t, "dispatch: {strategy: auto_claim, max_parallel: 5}\n")
	want := add(t, r, "one")
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, id := range []state.AgentID{"polecat-alpha", "polecat-bravo"} {
		wg.Go(func() { _, errs[i] = as(r, id).Claim(t.Context(), "") })
	}
	wg.Wait()
	won := 0
	for i, id := range []state.AgentID{"polecat-alpha", "polecat-bravo"} {
		h, err := r.Hooks.Get(string(id))
		rigtest.Must(t, err)
		if (errs[i] == nil) != (h.Status == hook.Pending) {
			t.Errorf("%s: %v, and the hook is %s", id, errs[i], h.Status)
		}
		if errs[i] == nil {
			won++
			if h.WorkItem.BeadID != want.ID {
				t.Errorf("%s claimed %s", id, h.WorkItem.BeadID)
			}
		} else if !errors.Is(errs[i], state.ErrNotFound) {
			t.Errorf("%s: %v", id, errs[i])
		}
	}
	if won != 1 {
		t.Errorf("%d of two won", won)
	}
	for _, id := range []state.AgentID{"mayor", state.Human} {
		second := add(t, r, "two")
		if _, err := as(r, id).Claim(t.Context(), second.ID); !errors.Is(err, state.ErrConflict) {
			t.Errorf("%s claimed: %v", id, err)
		}
	}
}

// TestDecidedMailIsRead: what tells the person of a blocked bead is dealt with when the
// bead is; other mail about it is not.
func TestDecidedMailIsRead(t *testing.T) {
	for name, decide := range map[string]func(*Actor, state.BeadID) error{
		"reopen": func(a *Actor, id state.BeadID) error { return a.ReopenBead(t.Context(), id, "") },
		"cancel": func(a *Actor, id state.BeadID) error { return a.CancelBead(t.Context(), id, "") },
	} {
		t.Run(name, func(t *testing.T) {
			r := rigtest.New(t, "")
			b := add(t, r, "one")
			_, err := r.Beads.Update(t.Context(), string(b.ID), func(b *bead.Bead) error {
				b.Status, b.AssignmentID = bead.Blocked, "as-2"
				return nil
			})
			rigtest.Must(t, err)
			for _, m := range []mail.Message{
				{From: "mayor", Subject: "it is blocked", Ref: &mail.Ref{BeadID: b.ID, AssignmentID: "as-2"}},
				{From: "mayor", Subject: "another attempt", Ref: &mail.Ref{BeadID: b.ID, AssignmentID: "as-1"}},
				{From: "polecat-alpha", Subject: "of a worker", Ref: &mail.Ref{BeadID: b.ID, AssignmentID: "as-2"}},
			} {
				m.To, m.Type = state.Human, mail.Coordination
				_, err := r.Sender.Send(t.Context(), m)
				rigtest.Must(t, err)
			}
			rigtest.Must(t, decide(as(r, state.Human), b.ID))
			var left []string
			for _, e := range rigtest.Unread(t, r, state.Human) {
				left = append(left, e.Subject)
			}
			if len(left) != 2 || left[0] != "another attempt" || left[1] != "of a worker" {
				t.Errorf("unread %q", left)
			}
		})
	}
}
