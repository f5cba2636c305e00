package event

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state"
)

// There is one constructor for each type of event, or for each family of types. The verb
// that makes the change calls it. docs/state.md has a table of all types with their
// fields; a test compares the two.

// Types lists all types of events in alphabetical order.
func Types() []string {
	return []string{
		"agent.card", "agent.registered", "agent.retired", "agent.started", "agent.stopped",
		"bead.added", "bead.blocked", "bead.cancelled", "bead.closed", "bead.done", "bead.edited", "bead.failed",
		"bead.hooked", "bead.in_progress", "bead.merged", "bead.open",
		"branch.not_pushed",
		"client.kept_going", "client.stopped_early",
		"convoy.completed", "convoy.created",
		"dispatch.confirmed", "dispatch.stored", "dispatch.undone",
		"folder.cleared",
		"handoff.written",
		"hook.activated", "hook.cleared", "hook.completed", "hook.corrupt", "hook.lent", "hook.resumed", "hook.returned", "hook.set", "hook.touched",
		"incident.opened", "incident.raised", "incident.resolved",
		"mail.archived", "mail.handled", "mail.injected", "mail.quarantined", "mail.seen", "mail.sent", "mail.stale", "mail.undeliverable",
		"mr.allowed", "mr.conflicted", "mr.dropped", "mr.held", "mr.left_out", "mr.merged", "mr.merging", "mr.rebased", "mr.restored", "mr.retried",
		"mr.submitted", "mr.superseded", "mr.tested",
		"nudge.injected", "nudge.seen", "nudge.sent",
		"permission.decided", "permission.remembered", "permission.revoked",
		"progress.not_written",
		"queue.blocked", "queue.unblocked",
		"retire.committed", "retire.completed", "retire.published", "retire.recorded", "retire.released", "retire.reported",
		"retire.stale", "retire.submitted", "retire.unfinished",
		"rig.created",
		"scope.paused", "scope.resumed",
		"session.not_forgotten",
		"warning",
		"worker.exited", "worker.resumed", "worker.salvaged", "worker.started", "worker.stopped", "worker.totals",
		"worktree.mended", "worktree.not_released",
	}
}

// Work identifies the work that an event is about: a bead, its assignment, and the
// session. Each may be empty.
type Work struct {
	Bead       state.BeadID
	Assignment state.AssignmentID
	Session    state.SessionID
}

func (w Work) event(kind string, agent state.AgentID) Event {
	return Event{Type: kind, Agent: agent, Bead: w.Bead, Assignment: w.Assignment, Session: w.Session}
}

// AgentRegistered says that an agent was added to the rig, or revived.
func AgentRegistered(id state.AgentID, role string) Event {
	return Event{Type: "agent.registered", Agent: id, Subject: string(id), Text: role}
}

// AgentRetired says that an agent gets no more work and no more mail.
func AgentRetired(id state.AgentID, why string) Event {
	return Event{Type: "agent.retired", Agent: id, Subject: string(id), Text: why}
}

// AgentStarted says that a process runs the agent from now on.
func AgentStarted(id state.AgentID, session state.SessionID, pid int) Event {
	return Event{Type: "agent.started", Agent: id, Session: session, Subject: string(id), Text: fmt.Sprintf("pid %d", pid)}
}

// AgentStopped says that the process that runs the agent ends.
func AgentStopped(id state.AgentID, session state.SessionID) Event {
	return Event{Type: "agent.stopped", Agent: id, Session: session, Subject: string(id)}
}

// CardChanged says that an agent's card was changed.
func CardChanged(by, id state.AgentID) Event {
	return Event{Type: "agent.card", Agent: by, Subject: string(id)}
}

// BeadAdded says that there is a new bead.
func BeadAdded(by state.AgentID, id state.BeadID, status, title string) Event {
	return Event{Type: "bead.added", Agent: by, Bead: id, To: status, Text: title}
}

// BeadEdited says that the text of a bead was changed; text names the fields.
func BeadEdited(by state.AgentID, id state.BeadID, text string) Event {
	return Event{Type: "bead.edited", Agent: by, Bead: id, Text: text}
}

// BeadMove is a change of a bead's status.
type BeadMove struct {
	Bead state.BeadID
	// Assignment and Assignee are those after the change, or before it if the change removed them.
	Assignment state.AssignmentID
	Assignee   state.AgentID
	From, To   string
	Why        string
}

// BeadMoved says that the status of a bead changed.
func BeadMoved(by state.AgentID, m BeadMove) Event {
	return Event{Type: "bead." + m.To, Agent: by, Bead: m.Bead, Assignment: m.Assignment, Subject: string(m.Assignee),
		From: m.From, To: m.To, Text: m.Why}
}

// BranchNotPushed says that the branch of finished work is not on the remote.
func BranchNotPushed(agent state.AgentID, w Work, problem string) Event {
	return about("branch.not_pushed", agent, w, problem)
}

// ClientKeptGoing says that a client wanted to stop and was told to go on with its work.
func ClientKeptGoing(agent state.AgentID, w Work) Event { return w.event("client.kept_going", agent) }

// ClientStoppedEarly says that a client stopped although its work is not finished.
func ClientStoppedEarly(agent state.AgentID, w Work) Event {
	return w.event("client.stopped_early", agent)
}

// ConvoyCreated says that there is a new convoy.
func ConvoyCreated(by state.AgentID, id state.ConvoyID, name string) Event {
	return Event{Type: "convoy.created", Agent: by, Subject: string(id), Text: name}
}

// ConvoyCompleted says that every bead of a convoy has landed.
func ConvoyCompleted(by state.AgentID, id state.ConvoyID, name string) Event {
	return Event{Type: "convoy.completed", Agent: by, Subject: string(id), Text: name}
}

// DispatchStored says that a bead is about to be slung to an agent.
func DispatchStored(by, to state.AgentID, w Work) Event {
	e := w.event("dispatch.stored", by)
	e.Subject = string(to)
	return e
}

// DispatchConfirmed says that bead, hook and mail of a dispatch are all durable.
func DispatchConfirmed(by, to state.AgentID, w Work) Event {
	e := w.event("dispatch.confirmed", by)
	e.Subject = string(to)
	return e
}

// DispatchUndone says that a dispatch could not be carried out and was undone.
func DispatchUndone(by, to state.AgentID, w Work, why string) Event {
	e := w.event("dispatch.undone", by)
	e.Subject, e.Text = string(to), why
	return e
}

// FolderCleared says that a file in the place of a folder of the rig was moved to the quarantine.
func FolderCleared(by state.AgentID, p state.Path) Event {
	return Event{Type: "folder.cleared", Agent: by, Subject: string(p),
		Text: "a file was in the place of this folder; it was moved to state/quarantine"}
}

// HandoffWritten says that an agent left a note for its next session. name is the
// hand-off's stamp.
func HandoffWritten(agent state.AgentID, w Work, name, summary string) Event {
	e := w.event("handoff.written", agent)
	e.Subject, e.Text = name, summary
	return e
}

// HookStep is what a step does to a hook.
type HookStep string

// The steps of a hook.
const (
	HookSet       HookStep = "set"
	HookActivated HookStep = "activated"
	HookResumed   HookStep = "resumed"
	HookTouched   HookStep = "touched"
	HookLent      HookStep = "lent"
	HookReturned  HookStep = "returned"
	HookCompleted HookStep = "completed"
	HookCleared   HookStep = "cleared"
)

// HookMove is a step of an agent's hook. From and To are equal, and not logged, if the
// status stays the same.
type HookMove struct {
	Step     HookStep
	Owner    state.AgentID
	From, To string
	Note     string
}

// HookMoved says that a step was made on a hook.
func HookMoved(by state.AgentID, w Work, m HookMove) Event {
	e := w.event("hook."+string(m.Step), by)
	e.Subject, e.Text = string(m.Owner), m.Note
	if m.From != m.To {
		e.From, e.To = m.From, m.To
	}
	return e
}

// HookCorrupt says that an agent can't read its own hook.
func HookCorrupt(owner state.AgentID, problem string) Event {
	return Event{Type: "hook.corrupt", Agent: owner, Subject: string(owner), Text: problem}
}

// Incident is the content of an incident's events.
type Incident struct {
	ID state.IncidentID
	// Agent is the agent that the incident is about.
	Agent state.AgentID
	Work
	Kind, Detail string
}

func (i Incident) build(kind, from, to, text string) Event {
	e := i.event(kind, i.Agent)
	e.Subject, e.From, e.To, e.Text = string(i.ID), from, to, i.Kind
	if text != "" {
		e.Text += ": " + text
	}
	return e
}

// IncidentOpened says that the witness has found a problem.
func IncidentOpened(i Incident, severity string) Event {
	return i.build("incident.opened", "", severity, i.Detail)
}

// IncidentRaised says that an incident is more severe than before.
func IncidentRaised(i Incident, from, to string) Event {
	return i.build("incident.raised", from, to, i.Detail)
}

// IncidentResolved says that an incident is over.
func IncidentResolved(i Incident, severity, resolution string) Event {
	return i.build("incident.resolved", severity, "", resolution)
}

// Request identifies a merge request in events.
type Request struct {
	ID         state.MergeID
	Bead       state.BeadID
	Assignment state.AssignmentID
}

func (r Request) build(kind string, by state.AgentID, text string) Event {
	return Event{Type: "mr." + kind, Agent: by, Bead: r.Bead, Assignment: r.Assignment, Subject: string(r.ID), Text: text}
}

// RequestSubmitted says that there is a new merge request.
func RequestSubmitted(by state.AgentID, r Request, text string) Event {
	return r.build("submitted", by, text)
}

// RequestMoved says that the status of a merge request changed. The type is mr.retried for
// a request that becomes pending, and named after the new status otherwise.
func RequestMoved(by state.AgentID, r Request, from, to, text string) Event {
	kind := to
	if to == "pending" {
		kind = "retried"
	}
	e := r.build(kind, by, text)
	e.From, e.To = from, to
	return e
}

// RequestRetried says that a waiting merge request is tried again, without a change of status.
func RequestRetried(by state.AgentID, r Request, why string) Event {
	return r.build("retried", by, why)
}

// RequestHeld says that a merge request changes protected files, and waits for the person.
func RequestHeld(r Request, files string) Event { return r.build("held", "", files) }

// RequestAllowed says that the person has allowed a change of protected files.
func RequestAllowed(r Request, files string) Event { return r.build("allowed", "", files) }

// RequestRebased says that a candidate of a merge request was made.
func RequestRebased(by state.AgentID, r Request, text string) Event {
	return r.build("rebased", by, text)
}

// RequestTested says that the test of a candidate ended.
func RequestTested(by state.AgentID, r Request, text string) Event {
	return r.build("tested", by, text)
}

// RequestLeftOut says that a merge request was taken out of a stack, to be tested by itself.
func RequestLeftOut(by state.AgentID, r Request, why string) Event {
	return r.build("left_out", by, why)
}

// RequestRestored says that a landing that was undone from outside was restored.
func RequestRestored(by state.AgentID, r Request, text string) Event {
	return r.build("restored", by, text)
}

// Nudge is the content of a nudge's events.
type Nudge struct {
	From, To      state.AgentID
	Type, Message string
	Work
}

func (n Nudge) build(kind string, agent state.AgentID) Event {
	e := n.event(kind, agent)
	e.Subject, e.From, e.To, e.Text = string(n.To), string(n.From), string(n.To), n.Type
	if n.Message != "" {
		e.Text += ": " + n.Message
	}
	return e
}

// NudgeSent says that a nudge is durable in its recipient's slot.
func NudgeSent(n Nudge) Event { return n.build("nudge.sent", n.From) }

// NudgeInjected says that a nudge was shown to its recipient's model.
func NudgeInjected(n Nudge) Event { return n.build("nudge.injected", n.To) }

// NudgeSeen says that its recipient processed a nudge.
func NudgeSeen(n Nudge) Event { return n.build("nudge.seen", n.To) }

// PermissionDecided says that the person's decision about a rule was stored.
func PermissionDecided(by state.AgentID, id, decision, rule string) Event {
	return Event{Type: "permission.decided", Agent: by, Subject: id, To: decision, Text: rule}
}

// PermissionRemembered says that a request was answered by a stored decision.
func PermissionRemembered(asker state.AgentID, id, decision, rule string) Event {
	return Event{Type: "permission.remembered", Agent: asker, Subject: id, To: decision, Text: rule}
}

// PermissionRevoked says that a stored decision was removed.
func PermissionRevoked(by state.AgentID, id, rule string) Event {
	return Event{Type: "permission.revoked", Agent: by, Subject: id, Text: rule}
}

// QueueBlocked says that one merge request blocks all others.
func QueueBlocked(by state.AgentID, id state.MergeID, why string) Event {
	return Event{Type: "queue.blocked", Agent: by, Subject: string(id), Text: why}
}

// QueueUnblocked says that the merge queue moves again.
func QueueUnblocked(by state.AgentID) Event { return Event{Type: "queue.unblocked", Agent: by} }

// RetireReached says that the end of an attempt has reached a stage.
func RetireReached(agent state.AgentID, w Work, stage, text string) Event {
	return about("retire."+stage, agent, w, text)
}

// RetireUnfinished says that the end of an attempt could not be completed.
func RetireUnfinished(agent state.AgentID, w Work, problem string) Event {
	return about("retire.unfinished", agent, w, problem)
}

// about returns an event whose subject is its own agent.
func about(kind string, agent state.AgentID, w Work, text string) Event {
	e := w.event(kind, agent)
	e.Subject, e.Text = string(agent), text
	return e
}

// RigCreated says that a rig was created in a folder.
func RigCreated(id state.RigID, dir string) Event {
	return Event{Type: "rig.created", Agent: state.Human, Subject: string(id), Text: dir}
}

// Warning says that something is wrong, but the work goes on. subject is for example a
// file, an agent, a merge request.
func Warning(agent state.AgentID, w Work, subject, text string) Event {
	e := w.event("warning", agent)
	e.Subject, e.Text = subject, text
	return e
}

// WorkerStarted says that the worker of an assignment was started.
func WorkerStarted(agent state.AgentID, w Work, command string) Event {
	return about("worker.started", agent, w, command)
}

// WorkerResumed says that a worker was started again after the end of its turn.
func WorkerResumed(agent state.AgentID, w Work, why string) Event {
	return about("worker.resumed", agent, w, why)
}

// WorkerStopped says that a worker is being stopped.
func WorkerStopped(agent state.AgentID, w Work, why string) Event {
	return about("worker.stopped", agent, w, why)
}

// WorkerExited says that a worker has ended.
func WorkerExited(agent state.AgentID, w Work, how string) Event {
	return about("worker.exited", agent, w, how)
}

// WorkerSalvaged says that unfinished work was saved on a ref.
func WorkerSalvaged(agent state.AgentID, w Work, ref, why string) Event {
	e := about("worker.salvaged", agent, w, why)
	e.Subject = ref
	return e
}

// WorkerTotals logs the totals of a session. figures is JSON, stored as "totals".
func WorkerTotals(agent state.AgentID, w Work, text string, figures []byte) Event {
	e := about("worker.totals", agent, w, text)
	if len(figures) > 0 {
		e.Extra = state.Extra{"totals": figures}
	}
	return e
}

// ProgressNotWritten says that the progress of a running session could not be stored.
func ProgressNotWritten(agent state.AgentID, w Work, problem string) Event {
	return about("progress.not_written", agent, w, problem)
}

// ScopePaused says that nothing of a scope is started for now, except probes.
func ScopePaused(scope, kind, why string) Event {
	return Event{Type: "scope.paused", Subject: scope, To: kind, Text: why}
}

// ScopeResumed says that work of a scope is started again.
func ScopeResumed(scope, kind string) Event {
	return Event{Type: "scope.resumed", Subject: scope, From: kind}
}

// SessionNotForgotten says that the files of a session in run/ could not be removed.
func SessionNotForgotten(agent state.AgentID, session state.SessionID, problem string) Event {
	return about("session.not_forgotten", agent, Work{Session: session}, problem)
}

// WorktreeMended says that a worktree was repaired after a power cut.
func WorktreeMended(agent state.AgentID, what string) Event {
	return about("worktree.mended", agent, Work{}, what)
}

// WorktreeNotReleased says that a worktree could not be cleaned for the next bead.
func WorktreeNotReleased(agent state.AgentID, w Work, problem string) Event {
	return about("worktree.not_released", agent, w, problem)
}
