package flow

import (
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
)

// Ready returns an ErrConflict for a bead that can't be slung: it is not open, or
// waits for others, which are named. byID holds those that it is blocked by.
func Ready(b *bead.Bead, byID map[state.BeadID]*bead.Bead) error {
	if b.Status != bead.Open {
		return state.Conflictf("bead "+string(b.ID), "is %s; only an open bead can be slung", b.Status)
	}
	if open := bead.Blockers(b, byID); len(open) > 0 {
		return state.Conflictf("bead "+string(b.ID), "waits for %s", strings.Join(open, ", "))
	}
	return nil
}

// AcceptsWork returns an ErrConflict for an agent that no bead can be slung to.
func AcceptsWork(a *agent.Agent) error {
	switch {
	case a.Status == agent.Retired:
		return state.Conflictf("agent "+string(a.ID), "is retired and gets no more work")
	case a.IsSession() && a.Status == agent.Terminated:
		return state.Conflictf("agent "+string(a.ID), "has no session of %s; its next one can take work", a.Client)
	case a.Role != agent.Polecat && !a.IsSession():
		return state.Conflictf("agent "+string(a.ID), "is a %s; only polecats and sessions of yours execute beads", a.Role)
	}
	return nil
}

// Free returns an ErrConflict for a hook that is taken.
func Free(h *hook.Hook) error {
	if h.Status != hook.Empty {
		return state.Conflictf("hook "+string(h.AgentID), "is %s with bead %s", h.Status, h.WorkItem.BeadID)
	}
	return nil
}

// NewDispatch is the record with which a dispatch of a ready bead begins. Once it is
// durable, the dispatch is carried out or undone, whatever happens.
func NewDispatch(b *bead.Bead, to, by state.AgentID, a state.AssignmentID, now state.Time) dispatch.Record {
	return dispatch.Record{BeadID: b.ID, AgentID: to, AssignmentID: a, By: by, Branch: bead.BranchFor(b.ID, b.Assignments+1),
		Stage: dispatch.Stored, MailName: string(mail.NameAt(now, by)), CreatedAt: now}
}

// Dispatch is the sequence that puts a bead on a hook, from its record.
type Dispatch struct {
	// Record is zero when there is none.
	Record dispatch.Record
	// Bead is zero when it does not exist.
	Bead bead.Bead
	// Hooked is the assignment that the agent's hook names.
	Hooked state.AssignmentID

	// Begun is true in the run that stored the record. A record whose bead was not
	// taken when its process died is undone: the mayor decides again.
	Begun bool
	// Sent is true once this run has sent the assignment. After a crash it is sent
	// again under the same name, which changes nothing.
	Sent bool
	// Refusal is why the dispatch can't be carried out, as this run has found.
	Refusal error
	mail    sending
}

// Answer takes note of how the last effect went, in this run.
func (d *Dispatch) Answer(e Effect, err error) {
	if _, ok := e.(Send); ok {
		d.mail.answer(err)
		d.Sent = err == nil
	}
	if _, ok := e.(PutDispatch); ok {
		d.mail.taken = false
	}
	if err != nil && Refused(err) {
		d.Refusal = err
	}
}

// Next returns the next effect of a dispatch.
func (d *Dispatch) Next() Effect {
	rec, b := d.Record, &d.Bead
	owned := b.AssignmentID == rec.AssignmentID
	switch {
	case rec.Stage == "", rec.Stage == dispatch.Confirmed:
		return Done{}
	case !owned && d.Begun && d.Refusal == nil && b.Status == bead.Open && rec.Stage == dispatch.Stored:
		return HookBead{rec}
	case !owned && d.Hooked == rec.AssignmentID:
		return ClearHook{Agent: rec.AgentID, Assignment: rec.AssignmentID, BeadID: rec.BeadID, By: rec.By}
	case !owned, b.Status != bead.Hooked && b.Status != bead.InProgress: // undone, or the attempt is over
		return RemoveDispatch{Record: rec, Refusal: d.Refusal}
	case b.Status == bead.Hooked && d.Refusal != nil:
		return GiveBack{rec}
	case b.Status == bead.Hooked && d.Hooked != rec.AssignmentID:
		return SetHook{Record: rec, Title: b.Title}
	case b.Status == bead.Hooked && rec.Stage == dispatch.Stored:
		rec.Stage = dispatch.Launched
		return PutDispatch{rec}
	}
	return d.announce()
}

// announce sends the assignment and confirms. A bead that is worked on already is
// not taken back from an agent that can't get mail any more.
func (d *Dispatch) announce() Effect {
	rec := d.Record
	name := fixedName(rec.MailName, rec.By, rec.CreatedAt)
	switch {
	case d.mail.taken:
		rec.MailName = nextName(name, rec.By)
		return PutDispatch{rec}
	case !d.Sent && d.Refusal == nil:
		return Send{As: name, Message: assignment(&rec, &d.Bead, d.mail.large), Short: d.mail.large}
	}
	rec.Stage = dispatch.Confirmed
	return PutDispatch{rec}
}

// HookBead takes the bead. It relies on the record that is stored.
type HookBead struct{ Record dispatch.Record }

// Name implements Effect.
func (HookBead) Name() string { return "bead" }

// Bead implements BeadChange.
func (e HookBead) Bead() state.BeadID { return e.Record.BeadID }

// Change implements BeadChange.
func (e HookBead) Change(b *bead.Bead, now state.Time) error {
	if b.AssignmentID == e.Record.AssignmentID {
		return state.ErrUnchanged
	}
	if err := b.Become(bead.Hooked, "", now); err != nil {
		return err
	}
	b.Assignee, b.AssignmentID, b.Branch = e.Record.AgentID, e.Record.AssignmentID, e.Record.Branch
	b.Assignments++
	return nil
}

// SetHook sets the hook. It relies on the bead that names the assignment.
type SetHook struct {
	Record dispatch.Record
	Title  string
}

// Name implements Effect.
func (SetHook) Name() string { return "hook" }

// Hook implements HookChange.
func (e SetHook) Hook() state.AgentID { return e.Record.AgentID }

// Change implements HookChange.
func (e SetHook) Change(h *hook.Hook, now state.Time) error {
	if h.Assignment() == e.Record.AssignmentID {
		return state.ErrUnchanged
	}
	rec := e.Record
	return h.Set(hook.WorkItem{AssignedAt: rec.CreatedAt, AssignmentID: rec.AssignmentID, BeadID: rec.BeadID, Title: e.Title}, now)
}

// GiveBack makes the bead of a dispatch that can't be carried out open again. It
// relies on nothing; hook and record follow.
type GiveBack struct{ Record dispatch.Record }

// Name implements Effect.
func (GiveBack) Name() string { return "given back" }

// Bead implements BeadChange.
func (e GiveBack) Bead() state.BeadID { return e.Record.BeadID }

// Change implements BeadChange.
func (e GiveBack) Change(b *bead.Bead, now state.Time) error {
	if b.CheckAssignment(e.Record.AssignmentID, bead.Hooked) != nil {
		return state.ErrUnchanged
	}
	return b.Become(bead.Open, "", now)
}

// ClearHook empties a hook if it still names the assignment. It relies on the bead,
// which no longer does. A hook that names another one is left alone.
type ClearHook struct {
	Agent      state.AgentID
	Assignment state.AssignmentID
	BeadID     state.BeadID
	By         state.AgentID
}

// Name implements Effect.
func (ClearHook) Name() string { return "cleared" }

// Hook implements HookChange.
func (e ClearHook) Hook() state.AgentID { return e.Agent }

// Change implements HookChange.
func (e ClearHook) Change(h *hook.Hook, now state.Time) error {
	if h.Assignment() != e.Assignment {
		return state.ErrUnchanged
	}
	return h.Clear(e.Assignment, now)
}

// shortAssignment stands for a text that is larger than the rig lets mail be.
const shortAssignment = "The text is larger than a message may be here: chipset work show prints it.\n"

// maxAssignmentText keeps the mail below its limit; the bead has the whole text.
const maxAssignmentText = 16 << 10

func assignment(rec *dispatch.Record, b *bead.Bead, short bool) mail.Message {
	m := mail.Message{From: rec.By, To: rec.AgentID, Type: mail.WorkAssignment, Priority: mail.Normal,
		Subject: fmt.Sprintf("%s assigned: %s", b.ID, b.Title), ID: "assign-" + string(rec.AssignmentID),
		Ref: &mail.Ref{BeadID: b.ID, AssignmentID: rec.AssignmentID}}
	if b.Priority == bead.P1 {
		m.Priority = mail.Urgent
	}
	if short {
		m.Subject, m.Body = fmt.Sprintf("%s assigned", b.ID), shortAssignment
		return m
	}
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
	m.Body = body.String()
	return m
}
