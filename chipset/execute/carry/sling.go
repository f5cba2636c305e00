// Package carry holds the sequences of several durable steps that make a
// bead's way: slinging it, retiring an attempt, and the interventions of a
// person. Each is safe at every boundary: whatever a process was doing when it
// died is finished or undone from the records on disk, by whoever comes next.
//
//	Sling    bead + polecat → dispatch record → bead hooked → hook pending → mail → confirmed
//	Finish   retire record → branch durable → bead done → merge request → mail → hook completed
//	Reopen, Block, Cancel, Unsling   the bead first, then the hook, then the request
package carry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
)

// AlreadySlung is returned by Sling for a bead that hangs on a hook, durably: nothing
// was done but what an earlier dispatch had left to do, and that is no failure.
type AlreadySlung struct {
	Bead  state.BeadID
	Agent state.AgentID
}

func (a *AlreadySlung) Error() string {
	return fmt.Sprintf("bead %s is slung to %s already", a.Bead, a.Agent)
}

// Sling hangs a ready bead on an empty hook. When it returns nil, bead, hook
// and assignment mail are durable. Errors: *AlreadySlung; ErrConflict when the
// bead is not open, waits for others (they are named), or the hook is taken;
// ErrNotFound. On an error nothing is left half done, unless the process dies:
// then the next Sling of the bead, or HealDispatch, finishes or undoes it.
func Sling(ctx context.Context, r *rig.Rig, id state.BeadID, to, by state.AgentID) (dispatch.Record, error) {
	return (&sling{Rig: r}).begin(ctx, id, to, by)
}

// sling is one run of the pipeline, by Sling or by HealDispatch.
type sling struct {
	*rig.Rig
	// step is called after each effect that is durable on its own; an error ends
	// the run there, as a crash would. nil outside of tests.
	step func(effect string) error
}

// did marks an effect that is durable.
func (s *sling) did(effect string) error {
	if s.step == nil {
		return nil
	}
	return s.step(effect)
}

func (s *sling) begin(ctx context.Context, id state.BeadID, to, by state.AgentID) (dispatch.Record, error) {
	r := s.Rig
	lock, err := r.Tree.Lock(ctx, state.LockDispatch, string(id), dispatch.Dir)
	if err != nil {
		return dispatch.Record{}, err
	}
	defer lock.Unlock()
	// A crash may have ended an earlier dispatch of it half-way. That comes to its end first: whoever is told
	// "already" relies on the hook and on the mail.
	if _, err := s.settle(ctx, id); err != nil && !errors.Is(err, state.ErrCorrupt) {
		return dispatch.Record{}, err
	}
	b, err := s.ready(id)
	if err != nil {
		return dispatch.Record{}, err
	}
	if err := acceptsWork(r, to); err != nil {
		return dispatch.Record{}, err
	}
	now := r.Clock.Now()
	rec := dispatch.Record{BeadID: id, AgentID: to, AssignmentID: state.NewAssignmentID(), By: by,
		Branch: bead.BranchFor(id, b.Assignments+1), Stage: dispatch.Stored,
		MailName: string(mail.NameAt(now, by)), CreatedAt: now}
	if err := r.Dispatch.Put(string(id), rec); err != nil {
		return rec, err
	}
	r.Emit(event.Event{Type: "dispatch.stored", Agent: by, Bead: id, Assignment: rec.AssignmentID, Subject: string(to)})
	if err := s.did("stored"); err != nil {
		return rec, err
	}
	return s.carryOut(ctx, rec)
}

// ready reads the bead and refuses one that can't be slung.
func (s *sling) ready(id state.BeadID) (bead.Bead, error) {
	r := s.Rig
	b, err := r.Beads.Get(string(id))
	if err != nil {
		return b, err
	}
	if b.Status == bead.Hooked || b.Status == bead.InProgress {
		for _, dir := range []state.Path{r.Beads.Dir(), hook.Dir} { // visible is not durable
			if err := r.Tree.SyncDir(dir); err != nil {
				return b, err
			}
		}
		return b, &AlreadySlung{id, b.Assignee}
	}
	if b.Status != bead.Open {
		return b, state.Conflictf("bead "+string(id), "is %s; only an open bead can be slung", b.Status)
	}
	byID := make(map[state.BeadID]*bead.Bead, len(b.BlockedBy))
	for _, dep := range b.BlockedBy {
		if d, err := r.Beads.Get(string(dep)); err == nil {
			byID[dep] = &d
		} else if !errors.Is(err, state.ErrNotFound) {
			return b, err
		}
	}
	if open := bead.Blockers(&b, byID); len(open) > 0 {
		return b, state.Conflictf("bead "+string(id), "waits for %s", strings.Join(open, ", "))
	}
	return b, nil
}

func acceptsWork(r *rig.Rig, to state.AgentID) error {
	a, err := r.Agents.Get(string(to))
	if err != nil {
		return err
	}
	if a.Role != agent.Polecat {
		return state.Conflictf("agent "+string(to), "is a %s; only polecats execute beads", a.Role)
	}
	if a.Status == agent.Retired {
		return state.Conflictf("agent "+string(to), "is retired and gets no more work")
	}
	h, err := r.Hooks.Get(string(to))
	if err != nil {
		return err
	}
	if h.Status != hook.Empty {
		return state.Conflictf("hook "+string(to), "is %s with bead %s", h.Status, h.WorkItem.BeadID)
	}
	return nil
}

// carryOut does the steps of a dispatch that are not durable yet. It is called
// with the dispatch lock held, by Sling and after a crash by HealDispatch.
func (s *sling) carryOut(ctx context.Context, rec dispatch.Record) (dispatch.Record, error) {
	b, err := s.hookBead(ctx, rec)
	if err != nil {
		return rec, s.undo(ctx, rec, err)
	}
	if err := s.did("bead"); err != nil {
		return rec, err
	}
	if err := s.hangUp(ctx, rec, b.Title); err != nil {
		return rec, s.undo(ctx, rec, err)
	}
	if err := s.did("hook"); err != nil {
		return rec, err
	}
	rec.Stage = dispatch.Launched
	if err := s.Dispatch.Put(string(rec.BeadID), rec); err != nil {
		return rec, err
	}
	if err := s.did("launched"); err != nil {
		return rec, err
	}
	return s.announce(ctx, rec, &b)
}

// hookBead moves the bead, unless a crash came after it was moved.
func (s *sling) hookBead(ctx context.Context, rec dispatch.Record) (bead.Bead, error) {
	moved := false
	b, err := s.Beads.Update(ctx, string(rec.BeadID), func(b *bead.Bead) error {
		if b.AssignmentID == rec.AssignmentID {
			return state.ErrUnchanged
		}
		if err := b.Become(bead.Hooked, "", s.Clock.Now()); err != nil {
			return err
		}
		b.Assignee, b.AssignmentID, b.Branch = rec.AgentID, rec.AssignmentID, rec.Branch
		b.Assignments++
		moved = true
		return nil
	})
	if err == nil && moved {
		s.Emit(event.Event{Type: "bead.hooked", Agent: rec.By, Bead: rec.BeadID, Assignment: rec.AssignmentID,
			From: string(bead.Open), To: string(bead.Hooked), Subject: string(rec.AgentID), Text: b.Title})
	}
	return b, err
}

// hangUp sets the hook, unless a crash came after it was set.
func (s *sling) hangUp(ctx context.Context, rec dispatch.Record, title string) error {
	h, err := s.Hooks.Get(string(rec.AgentID))
	if err != nil {
		return err
	}
	if h.Assignment() == rec.AssignmentID {
		return nil
	}
	_, err = s.Hooks.Set(ctx, rec.AgentID, hook.WorkItem{AssignedAt: rec.CreatedAt, AssignmentID: rec.AssignmentID,
		BeadID: rec.BeadID, Title: title}, s.Clock.Now())
	if err == nil {
		s.Emit(event.Event{Type: "hook.set", Agent: rec.By, Bead: rec.BeadID, Assignment: rec.AssignmentID,
			Subject: string(rec.AgentID), From: string(hook.Empty), To: string(hook.Pending)})
	}
	return err
}

// announce sends the assignment under its fixed name and confirms. An agent
// that can't get mail any more can't get work either: the bead is given back,
// unless it is being worked on already.
func (s *sling) announce(ctx context.Context, rec dispatch.Record, b *bead.Bead) (dispatch.Record, error) {
	rec, err := s.send(ctx, rec, b)
	switch {
	case err == nil:
	case b.Status == bead.Hooked:
		return rec, s.undo(ctx, rec, err)
	case !refused(err):
		return rec, err
	}
	if err := s.did("mail"); err != nil {
		return rec, err
	}
	rec.Stage = dispatch.Confirmed
	if err := s.Dispatch.Put(string(rec.BeadID), rec); err != nil {
		return rec, err
	}
	s.Emit(event.Event{Type: "dispatch.confirmed", Agent: rec.By, Bead: rec.BeadID, Assignment: rec.AssignmentID, Subject: string(rec.AgentID)})
	return rec, s.did("confirmed")
}

// send delivers the assignment under the name that the record holds. When
// somebody's message has this very nanosecond, the next one is fixed first.
func (s *sling) send(ctx context.Context, rec dispatch.Record, b *bead.Bead) (dispatch.Record, error) {
	m := assignment(rec, b)
	for {
		n, err := mail.ParseName(rec.MailName)
		if err != nil || n != mail.NameAt(n.Time(), rec.By) {
			n = mail.NameAt(rec.CreatedAt, rec.By)
		}
		err = s.SendAs(ctx, n, m)
		switch {
		case errors.Is(err, state.ErrTooLarge) && m.Body != shortAssignment:
			m.Subject, m.Body = fmt.Sprintf("%s assigned", b.ID), shortAssignment
		case errors.Is(err, state.ErrExists):
			rec.MailName = string(mail.NameAt(state.At(n.Time().Add(1)), rec.By))
			if err := s.Dispatch.Put(string(rec.BeadID), rec); err != nil {
				return rec, err
			}
		default:
			return rec, err
		}
	}
}

// shortAssignment stands for a text that is larger than the rig lets mail be.
const shortAssignment = "The text is larger than a message may be here: chipset work show prints it.\n"

// maxAssignmentText keeps the mail below its limit; the bead has the whole text.
const maxAssignmentText = 16 << 10

func assignment(rec dispatch.Record, b *bead.Bead) mail.Message {
	var body strings.Builder
	fmt.Fprintf(&body, "Bead %s (%s): %s\nBranch: %s\n", b.ID, b.Priority, b.Title, rec.Branch)
	text := b.Description
	if len(text) > maxAssignmentText {
		text = strings.ToValidUTF8(text[:maxAssignmentText], "") + "\n… (the rest: chipset work show " + string(b.ID) + ")"
	}
	if text != "" {
		fmt.Fprintf(&body, "\n%s\n", text)
	}
	if b.Acceptance != "" {
		fmt.Fprintf(&body, "\nAcceptance: %.4000s\n", b.Acceptance)
	}
	priority := mail.Normal
	if b.Priority == bead.P1 {
		priority = mail.Urgent
	}
	return mail.Message{From: rec.By, To: rec.AgentID, Type: mail.WorkAssignment, Priority: priority,
		Subject: fmt.Sprintf("%s assigned: %s", b.ID, b.Title), Body: body.String(), ID: "assign-" + string(rec.AssignmentID),
		Ref: &mail.Ref{BeadID: b.ID, AssignmentID: rec.AssignmentID}}
}

// refused tells an error that stays however often one tries from a fault of the
// disk or of time.
func refused(err error) bool {
	return errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt)
}

// undo gives the bead back, frees the hook, and removes the record of a
// dispatch that can't be carried out, and returns why. The record goes last:
// without it nobody would know what is to be given back.
func (s *sling) undo(ctx context.Context, rec dispatch.Record, cause error) error {
	if !refused(cause) {
		return cause // it is tried again from the record
	}
	b, err := s.Beads.Update(ctx, string(rec.BeadID), func(b *bead.Bead) error {
		if b.CheckAssignment(rec.AssignmentID, bead.Hooked) != nil {
			return state.ErrUnchanged
		}
		return b.Become(bead.Open, "", s.Clock.Now())
	})
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return errors.Join(cause, err)
	}
	if err := s.did("given back"); err != nil {
		return err
	}
	if b.AssignmentID != rec.AssignmentID {
		if err := ReleaseHook(ctx, s.Rig, rec.AgentID, rec.AssignmentID, rec.By); err != nil {
			return errors.Join(cause, err)
		}
	}
	if err := s.Dispatch.Remove(string(rec.BeadID)); err != nil {
		return errors.Join(cause, err)
	}
	s.Emit(event.Event{Type: "dispatch.undone", Agent: rec.By, Bead: rec.BeadID, Assignment: rec.AssignmentID,
		Subject: string(rec.AgentID), Text: cause.Error()})
	return cause
}

// HealDispatch finishes or undoes a dispatch that its process did not come to
// the end of. It reports whether there was anything to do.
func HealDispatch(ctx context.Context, r *rig.Rig, id state.BeadID) (bool, error) {
	return (&sling{Rig: r}).heal(ctx, id)
}

func (s *sling) heal(ctx context.Context, id state.BeadID) (bool, error) {
	lock, err := s.Tree.Lock(ctx, state.LockDispatch, string(id), dispatch.Dir)
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	return s.settle(ctx, id)
}

// settle is heal with the dispatch lock held.
func (s *sling) settle(ctx context.Context, id state.BeadID) (bool, error) {
	rec, err := s.Dispatch.Get(string(id))
	if errors.Is(err, state.ErrNotFound) {
		return false, nil
	}
	if err != nil || rec.Stage == dispatch.Confirmed {
		return false, err
	}
	b, err := s.Beads.Get(string(id))
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return false, err
	}
	if b.AssignmentID == rec.AssignmentID {
		switch b.Status {
		case bead.Hooked:
			_, err = s.carryOut(ctx, rec)
			if err != nil && refused(err) {
				err = nil // undone, which heals as well
			}
			return true, err
		case bead.InProgress:
			_, err = s.announce(ctx, rec, &b)
			return true, err
		default: // the attempt is over: there is nothing to announce any more
			return true, s.Dispatch.Remove(string(id))
		}
	}
	// The bead was never taken, or was given back: nothing else may stay behind.
	if err := ReleaseHook(ctx, s.Rig, rec.AgentID, rec.AssignmentID, rec.By); err != nil {
		return true, err
	}
	return true, s.Dispatch.Remove(string(id))
}

// HealDispatches heals all of them and tells how many there were. One that
// can't be healed stops no other; the error is all of theirs.
func HealDispatches(ctx context.Context, r *rig.Rig) (int, error) {
	all, _, err := r.Dispatch.All()
	if err != nil {
		return 0, err
	}
	n := 0
	var failed []error
	for _, rec := range all {
		if rec.Stage == dispatch.Confirmed {
			continue
		}
		healed, err := HealDispatch(ctx, r, rec.BeadID)
		if err != nil {
			failed = append(failed, fmt.Errorf("dispatch of %s: %w", rec.BeadID, err))
		} else if healed {
			n++
		}
	}
	return n, errors.Join(failed...)
}
