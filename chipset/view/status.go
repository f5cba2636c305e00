package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Status is a rig at a glance. Lists are never null in JSON.
type Status struct {
	At    state.Time  `json:"at"`
	Rig   string      `json:"rig"`
	RigID state.RigID `json:"rig_id"`
	Dir   string      `json:"dir"`
	// Target is the branch work lands on, Tip what it holds.
	Target     string `json:"target,omitempty"`
	Tip        string `json:"tip,omitempty"`
	TipSubject string `json:"tip_subject,omitempty"`
	Test       string `json:"test,omitempty"`
	// Sandbox says what restricts workers and tests, "" if nothing should.
	Sandbox string `json:"sandbox,omitempty"`
	// Limits says how much of the machine a worker or a test may use.
	Limits string `json:"limits,omitempty"`

	Agents []AgentStatus `json:"agents"`
	Queue  []QueueEntry  `json:"queue"`
	// Beads counts beads by status; Ready those that could be slung now.
	Beads     map[bead.Status]int `json:"beads"`
	Ready     int                 `json:"ready"`
	Blocked   []BlockedBead       `json:"blocked"`
	Convoys   []ConvoyStatus      `json:"convoys"`
	Incidents []incident.Incident `json:"incidents"`
	// Pauses are those in force.
	Pauses []pause.Pause `json:"pauses"`
	// Spent is what attempts have used today.
	Spent SpendLine `json:"spent_today"`
	// Needs is what only the person can decide.
	Needs []Need `json:"needs"`
	// Mail is what waits unread for the person.
	Mail []MailLine `json:"mail"`
	// Overdue are tasks sent by mail whose deadline has passed.
	Overdue  []mail.TaskStatus `json:"overdue,omitempty"`
	Warnings []string          `json:"warnings"`
}

// AgentStatus is one agent with what is on its hook.
type AgentStatus struct {
	ID     state.AgentID `json:"id"`
	Role   agent.Role    `json:"role"`
	Status agent.Status  `json:"status"`
	// Client is the client of a person's own session, "" for other agents.
	Client string `json:"client,omitempty"`
	// Alive is true while a process runs the agent; PID is 0 otherwise.
	Alive bool `json:"alive"`
	PID   int  `json:"pid,omitempty"`
	// Hook is the hook's status, "corrupt" if it can't be read.
	Hook         hook.Status        `json:"hook"`
	BeadID       state.BeadID       `json:"bead_id,omitempty"`
	Title        string             `json:"title,omitempty"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	// Session is that of the worker.
	Session      state.SessionID `json:"session,omitempty"`
	AssignedAt   *state.Time     `json:"assigned_at,omitempty"`
	LastActivity *state.Time     `json:"last_activity,omitempty"`
	// Lease is set while a person has taken the worker's session over.
	Lease *hook.Lease `json:"lease,omitempty"`
	// Progress is what the worker's client says it has done so far.
	Progress *agentcli.Progress `json:"progress,omitempty"`
	// Asks are the messages whose answer it waits for.
	Asks   []mail.Name `json:"asks,omitempty"`
	Unread int         `json:"unread"`
}

// hookCorrupt stands for a hook that is missing or can't be read.
const hookCorrupt hook.Status = "corrupt"

// QueueEntry is one merge request that has not ended.
type QueueEntry struct {
	mergequeue.Request
	Title string
	// Wait says what it waits for, in words.
	Wait string
}

// MarshalJSON writes the request as it is stored, with title and wait beside it.
func (q QueueEntry) MarshalJSON() ([]byte, error) {
	type more struct {
		ID           state.MergeID      `json:"id"`
		Seq          int64              `json:"seq"`
		BeadID       state.BeadID       `json:"bead_id"`
		AssignmentID state.AssignmentID `json:"assignment_id"`
		AgentID      state.AgentID      `json:"agent_id"`
		Branch       string             `json:"source_branch"`
		Status       mergequeue.Status  `json:"status"`
		Stage        mergequeue.Stage   `json:"stage,omitempty"`
		Failure      mergequeue.Failure `json:"failure,omitempty"`
		Reason       string             `json:"reason,omitempty"`
		SubmittedAt  state.Time         `json:"submitted_at"`
		UpdatedAt    state.Time         `json:"updated_at"`
		Title        string             `json:"title,omitempty"`
		Wait         string             `json:"wait,omitempty"`
	}
	return state.EncodeLine(more{q.ID, q.Seq, q.BeadID, q.AssignmentID, q.AgentID, q.SourceBranch, q.Request.Status,
		q.Stage, q.Failure, q.Reason, q.SubmittedAt, q.UpdatedAt, q.Title, q.Wait})
}

// BlockedBead waits for a person.
type BlockedBead struct {
	ID     state.BeadID `json:"id"`
	Title  string       `json:"title"`
	Reason string       `json:"reason"`
}

// ConvoyStatus is the progress of a convoy, counted now.
type ConvoyStatus struct {
	ID     state.ConvoyID `json:"id"`
	Name   string         `json:"name"`
	Landed int            `json:"landed"`
	All    int            `json:"all"`
}

// MailLine is one unread message at a glance.
type MailLine struct {
	Name     mail.Name     `json:"name"`
	From     state.AgentID `json:"from"`
	Type     mail.Type     `json:"type"`
	Subject  string        `json:"subject"`
	Priority mail.Priority `json:"priority"`
	At       state.Time    `json:"at"`
	BeadID   state.BeadID  `json:"bead_id,omitempty"`
}

// GetStatus returns the status of a rig. Without git or a definition it returns what it
// can. It fails if folders can't be read at all.
func GetStatus(ctx context.Context, r *rig.Rig) (*Status, error) {
	m, err := glance(ctx, r)
	if err != nil {
		return nil, err
	}
	if _, err := m.followMail(); err != nil {
		return nil, err
	}
	if _, err := m.progress.update(r.Tree, m.hooks.rows); err != nil {
		return nil, err
	}
	m.ask()
	rows, bad, err := r.Spend.AllRows()
	if err != nil {
		return nil, err
	}
	m.spend.count(rows, 1)
	m.unreadable = append(m.unreadable, bad...)
	m.around = look(ctx, r)
	return m.status(ctx)
}

// status puts together what the model knows.
func (m *Model) status(ctx context.Context) (*Status, error) {
	s := &Status{At: m.at, Rig: m.r.Name(), RigID: m.r.Tree.RigID(), Dir: m.r.Dir, Beads: map[bead.Status]int{},
		Target: m.around.target, Tip: m.around.tip, TipSubject: m.around.subject, Test: m.around.test, Sandbox: m.around.sandbox, Limits: m.around.limits,
		Agents: []AgentStatus{}, Queue: []QueueEntry{}, Blocked: []BlockedBead{}, Convoys: []ConvoyStatus{}, Incidents: []incident.Incident{},
		Pauses: append([]pause.Pause{}, m.inForce()...), Needs: []Need{}, Mail: []MailLine{}, Warnings: append([]string{}, m.around.targetWarnings...)}
	s.Spent = m.spend.on(m.at)
	err := s.addAgents(m)
	s.addNeeds(ctx, m)
	s.addWork(m)
	s.addQueue(m)
	for _, i := range m.incidents.sorted() {
		if i.Open() {
			s.Incidents = append(s.Incidents, i)
		}
	}
	slices.SortStableFunc(s.Incidents, func(a, b incident.Incident) int { return b.Severity.Rank() - a.Severity.Rank() })
	s.addMail(m)
	s.addWarnings(m)
	return s, err
}

// addOverdue finds the overdue tasks of an agent.
func (s *Status) addOverdue(r *rig.Rig, asked []mail.Entry) error {
	tasks, err := mail.OverdueTasks(asked, s.At.Time, r.Mailbox)
	if errors.Is(err, state.ErrCorrupt) {
		return nil // an unreadable mailbox is a warning already
	}
	for _, t := range tasks {
		s.Overdue = append(s.Overdue, t)
		s.Warnings = append(s.Warnings, fmt.Sprintf("task %s from %s for %s has been overdue since %s: %s (%s)", t.ID, t.Requester, t.Assignee, t.Deadline, t.Subject, t.State))
	}
	return err
}

func (s *Status) addAgents(m *Model) error {
	var failed []error
	for _, a := range m.agents.sorted() {
		stamp, alive := m.alive[a.ID]
		line := AgentStatus{ID: a.ID, Role: a.Role, Status: a.Status, Client: a.Client, Alive: alive, PID: stamp.PID, Hook: hookCorrupt}
		if h := m.hooks.rows[string(a.ID)]; h != nil {
			line.Hook = h.Status
			if w := h.WorkItem; w != nil {
				line.BeadID, line.Title, line.AssignmentID, line.Session = w.BeadID, w.Title, w.AssignmentID, w.Session
				line.AssignedAt, line.LastActivity = &w.AssignedAt, &h.LastActivity
				line.Progress = m.progress.known[w.Session]
				if m.lent[a.ID] {
					line.Lease = w.Lease
				}
			}
		}
		var asked []mail.Entry
		if b := m.boxes[a.ID]; b != nil {
			line.Unread, asked = len(b.unread), b.asked
			s.warnOf(b.damage...)
		}
		if a.Status == agent.Retired && !alive && line.Hook == hook.Empty && line.Unread == 0 {
			continue
		}
		s.Agents = append(s.Agents, line)
		failed = append(failed, s.addOverdue(m.r, asked))
	}
	order := []agent.Role{agent.Human, agent.Mayor, agent.Witness, agent.Refinery, agent.Polecat, agent.Crew}
	slices.SortStableFunc(s.Agents, func(a, b AgentStatus) int {
		return slices.Index(order, a.Role) - slices.Index(order, b.Role)
	})
	return errors.Join(failed...)
}

// BusyFirst lists the agents without the person, those with work or a question first.
func (s *Status) BusyFirst() []*AgentStatus {
	var busy, idle []*AgentStatus
	for i := range s.Agents {
		switch a := &s.Agents[i]; {
		case a.Role == agent.Human:
		case a.BeadID != "" || len(a.Asks) > 0:
			busy = append(busy, a)
		default:
			idle = append(idle, a)
		}
	}
	return append(busy, idle...)
}

// addNeeds finds what waits for the person. An error becomes a warning.
func (s *Status) addNeeds(ctx context.Context, m *Model) {
	needs, err := m.needs(ctx)
	if err != nil {
		s.warnOf(err)
	}
	s.Needs = append(s.Needs, needs...)
	for i := range needs {
		for k := range s.Agents {
			if n := &needs[i]; n.Name != "" && n.AgentID == s.Agents[k].ID {
				s.Agents[k].Asks = append(s.Agents[k].Asks, n.Name)
			}
		}
	}
}

func (s *Status) addWork(m *Model) {
	for status, n := range m.work.counts {
		if n > 0 {
			s.Beads[status] = n
		}
	}
	s.Ready = m.work.ready(s.At)
	for _, id := range slices.Sorted(maps.Keys(m.work.blocked)) {
		b := m.work.beads[id]
		s.Blocked = append(s.Blocked, BlockedBead{b.ID, b.Title, b.CloseReason})
	}
	for _, c := range m.convoys.sorted() {
		s.Convoys = append(s.Convoys, ConvoyStatus{c.ID, c.Name, m.work.convoys.landed[c.ID], len(c.BeadIDs)})
	}
}

func (s *Status) addQueue(m *Model) {
	var ahead *mergequeue.Request
	live := m.queue()
	together := mergequeue.StackedWith(live)
	for i := range live {
		q := live[i]
		entry := QueueEntry{Request: q, Wait: queueWait(&q, ahead, together[q.ID])}
		if b := m.work.beads[q.BeadID]; b != nil {
			entry.Title = b.Title
		}
		s.Queue = append(s.Queue, entry)
		if ahead == nil {
			ahead = &live[i]
		}
	}
}

// queueWait says what a live request waits for. ahead is the first of the queue, with are
// the requests that it is tested together with.
func queueWait(q, ahead *mergequeue.Request, with []state.MergeID) string {
	switch {
	case q.Status == mergequeue.Conflicted && q.Reason != "":
		return wording.Reason(q.Reason)
	case q.Status == mergequeue.Conflicted:
		return string(q.Failure)
	case q.IsHeld():
		return "waits for you: it changes " + q.Held.Summary()
	case q.Waiting != "":
		return wording.Reason(q.Waiting)
	case len(with) > 0:
		return "together with " + wording.Join(with, ", ")
	case q.Status == mergequeue.Pending && ahead != nil:
		return "behind " + string(ahead.ID)
	}
	return ""
}

// warnOf adds a warning for each error that the doctor can explain, once.
func (s *Status) warnOf(errs ...error) {
	for _, err := range errs {
		warning := err.Error() + ": chipset doctor says what to do"
		if !slices.Contains(s.Warnings, warning) {
			s.Warnings = append(s.Warnings, warning)
		}
	}
}

func (s *Status) addMail(m *Model) {
	b := m.boxes[state.Human]
	if b == nil {
		return
	}
	unread := slices.Clone(b.unread)
	mail.SortForProcessing(unread, m.r.Mayor())
	for _, e := range unread {
		line := MailLine{Name: e.Name, From: e.From, Type: e.Type, Subject: e.Subject, Priority: e.Priority, At: e.Timestamp}
		if e.Ref != nil {
			line.BeadID = e.Ref.BeadID
		}
		s.Mail = append(s.Mail, line)
	}
}

func (s *Status) addWarnings(m *Model) {
	s.Warnings = append(s.Warnings, m.around.warnings...)
	add := func(format string, args ...any) { s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...)) }
	waiting := s.Beads[bead.Open]+s.Beads[bead.Hooked]+s.Beads[bead.InProgress]+s.Beads[bead.Failed] > 0
	landing := slices.ContainsFunc(s.Queue, func(q QueueEntry) bool { return q.Request.Status != mergequeue.Conflicted })
	var down []string
	for _, a := range s.Agents {
		if a.Role == agent.Polecat && !a.Alive && (a.Hook == hook.Pending || a.Hook == hook.Active) {
			down = append(down, fmt.Sprintf("%s (%s)", a.ID, a.BeadID))
		}
		if a.Hook == hookCorrupt {
			add("the hook of %s is missing or can't be read: chipset doctor says why", a.ID)
		}
	}
	if len(m.alive) == 0 {
		if waiting || landing || len(down) > 0 {
			add("the rig is not running: chipset up starts it")
		}
		waiting, landing, down = false, false, nil // that says it all
	}
	if waiting {
		s.warnUnlessAlive(m, m.r.Mayor(), "no work is assigned")
	}
	if landing {
		s.warnUnlessAlive(m, m.r.Refinery(), "nothing lands")
	}
	if len(down) > 0 {
		add("%s not running although there is work on the hook: %s (chipset up starts the rig)", wording.Count(len(down), "polecat"), wording.JoinFirst(down, 3))
	}
	const most = 3
	for i, err := range m.unreadable {
		if i == most {
			add("%s left out: chipset doctor lists them", wording.Count(len(m.unreadable)-most, "unreadable file"))
			break
		}
		add("%v", err)
	}
	if m.around.quarantined > 0 {
		add("%s in quarantine: chipset doctor lists them", wording.Count(m.around.quarantined, "file"))
	}
}

func (s *Status) warnUnlessAlive(m *Model, id state.AgentID, so string) {
	if _, yes := m.alive[id]; !yes {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s is not running: %s (chipset up starts the rig)", id, so))
	}
}
