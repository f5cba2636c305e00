package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/environment"
	"github.com/gastown-chipset/chipset/chipset/process/sandbox"
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
	// Sandbox says what restricts workers and tests, "" when nothing shall.
	Sandbox string `json:"sandbox,omitempty"`

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
	// Needs is what only the person can decide.
	Needs []Need `json:"needs"`
	// Mail is what waits unread for the person.
	Mail []MailLine `json:"mail"`
	// Overdue are tasks of mail whose deadline has passed.
	Overdue  []mail.TaskStatus `json:"overdue,omitempty"`
	Warnings []string          `json:"warnings"`
}

// AgentStatus is one agent with what is on its hook.
type AgentStatus struct {
	ID     state.AgentID `json:"id"`
	Role   agent.Role    `json:"role"`
	Status agent.Status  `json:"status"`
	// Alive is true while a process speaks for the agent; PID is 0 otherwise.
	Alive bool `json:"alive"`
	PID   int  `json:"pid,omitempty"`
	// Hook is the hook's status, "corrupt" when it can't be read.
	Hook         hook.Status        `json:"hook"`
	BeadID       state.BeadID       `json:"bead_id,omitempty"`
	Title        string             `json:"title,omitempty"`
	AssignmentID state.AssignmentID `json:"assignment_id,omitempty"`
	AssignedAt   *state.Time        `json:"assigned_at,omitempty"`
	LastActivity *state.Time        `json:"last_activity,omitempty"`
	// Progress is what the worker's client says it has done so far.
	Progress *agentcli.Progress `json:"progress,omitempty"`
	// Asks are the messages whose answer it waits for.
	Asks   []mail.Name `json:"asks,omitempty"`
	Unread int         `json:"unread"`
}

// hookCorrupt stands for a hook that is missing or can't be read.
const hookCorrupt hook.Status = "corrupt"

// QueueEntry is one merge request that has not come to its end.
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

// ConvoyStatus is how far a convoy is, counted now.
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
}

// GetStatus looks at a rig. A rig opened without git or definition is shown as
// far as it goes. The error is for folders that can't be read at all.
func GetStatus(ctx context.Context, r *rig.Rig) (*Status, error) {
	snap, err := r.ReadOutline(ctx)
	if err != nil {
		return nil, err
	}
	s := &Status{At: snap.At, Rig: r.Name(), RigID: r.Tree.RigID(), Dir: r.Dir, Beads: map[bead.Status]int{},
		Agents: []AgentStatus{}, Queue: []QueueEntry{}, Blocked: []BlockedBead{}, Convoys: []ConvoyStatus{},
		Incidents: []incident.Incident{}, Pauses: []pause.Pause{}, Needs: []Need{}, Mail: []MailLine{}, Warnings: []string{}}
	s.addTarget(ctx, r)
	if err := s.addAgents(r, snap); err != nil {
		return nil, err
	}
	s.Pauses = append(s.Pauses, snap.Pauses...)
	s.addNeeds(ctx, r, snap)
	s.addWork(snap)
	s.addQueue(snap)
	for _, i := range snap.Incidents {
		if i.Open() {
			s.Incidents = append(s.Incidents, i)
		}
	}
	slices.SortStableFunc(s.Incidents, func(a, b incident.Incident) int { return b.Severity.Rank() - a.Severity.Rank() })
	if err := s.addMail(r); err != nil {
		return nil, err
	}
	return s, s.addWarnings(ctx, r, snap)
}

// addOverdue finds the tasks asked of an agent that should have been done by now.
func (s *Status) addOverdue(r *rig.Rig, asked []mail.Entry) error {
	tasks, err := mail.OverdueTasks(asked, s.At.Time, r.Mailbox)
	if errors.Is(err, state.ErrCorrupt) {
		return nil // a mailbox that can't be read is a warning already
	}
	for _, t := range tasks {
		s.Overdue = append(s.Overdue, t)
		s.Warnings = append(s.Warnings, fmt.Sprintf("task %s of %s for %s is overdue since %s: %s (%s)", t.ID, t.Requester, t.Assignee, t.Deadline, t.Subject, t.State))
	}
	return err
}

func (s *Status) addTarget(ctx context.Context, r *rig.Rig) {
	if r.Def == nil || r.Git == nil {
		return
	}
	s.Sandbox = sandbox.Describe(sandbox.Mode(r.Def.Sandbox))
	s.Test = r.Def.Merge.Test.Line
	if s.Test == "" {
		s.Test = strings.Join(r.Def.Merge.Test.Argv, " ")
	}
	branch, err := r.Target(ctx)
	if err != nil {
		s.Warnings = append(s.Warnings, "target branch: "+err.Error())
		return
	}
	s.Target = string(branch)
	tip, found, err := r.Git.ResolveRef(ctx, branch.Ref())
	if err != nil || !found {
		if err := environment.TargetLost(ctx, r); err != nil {
			s.Warnings = append(s.Warnings, err.Error())
		} else {
			s.Warnings = append(s.Warnings, fmt.Sprintf("the target branch %s does not exist", branch))
		}
		return
	}
	s.Tip = string(tip)
	if log, err := r.Git.Log(ctx, "", tip, 1); err == nil && len(log) > 0 {
		s.TipSubject = log[0].Subject
	}
}

func (s *Status) addAgents(r *rig.Rig, snap *rig.Records) error {
	for _, a := range snap.Agents {
		stamp, alive := snap.Alive[a.ID]
		line := AgentStatus{ID: a.ID, Role: a.Role, Status: a.Status, Alive: alive, PID: stamp.PID, Hook: hookCorrupt}
		if h := snap.Hooks[a.ID]; h != nil {
			line.Hook = h.Status
			if w := h.WorkItem; w != nil {
				line.BeadID, line.Title, line.AssignmentID = w.BeadID, w.Title, w.AssignmentID
				line.AssignedAt, line.LastActivity = &w.AssignedAt, &h.LastActivity
				line.Progress = agentcli.ReadProgress(r.Tree, w.Session)
			}
		}
		unread, asked, err := s.survey(r, a.ID)
		if err != nil {
			return err
		}
		line.Unread = len(unread)
		if a.Status == agent.Retired && !alive && line.Hook == hook.Empty && line.Unread == 0 {
			continue
		}
		s.Agents = append(s.Agents, line)
		if err := s.addOverdue(r, asked); err != nil {
			return err
		}
	}
	order := []agent.Role{agent.Human, agent.Mayor, agent.Witness, agent.Refinery, agent.Polecat, agent.Crew}
	slices.SortStableFunc(s.Agents, func(a, b AgentStatus) int {
		return slices.Index(order, a.Role) - slices.Index(order, b.Role)
	})
	return nil
}

// addNeeds finds what waits for the person. What can't be found out is no reason to
// show nothing.
func (s *Status) addNeeds(ctx context.Context, r *rig.Rig, snap *rig.Records) {
	needs, err := needsOf(ctx, r, snap)
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

func (s *Status) addWork(snap *rig.Records) {
	for i := range snap.Beads {
		b := &snap.Beads[i]
		s.Beads[b.Status]++
		if b.Status == bead.Open && len(bead.Blockers(b, snap.BeadByID)) == 0 && (b.ReadyAt == nil || !b.ReadyAt.After(snap.At.Time)) {
			s.Ready++
		}
		if b.Status == bead.Blocked {
			s.Blocked = append(s.Blocked, BlockedBead{b.ID, b.Title, b.CloseReason})
		}
	}
	for i := range snap.Convoys {
		c := &snap.Convoys[i]
		s.Convoys = append(s.Convoys, ConvoyStatus{c.ID, c.Name, c.Landed(snap.BeadByID), len(c.BeadIDs)})
	}
}

func (s *Status) addQueue(snap *rig.Records) {
	var ahead *mergequeue.Request
	together := mergequeue.StackedWith(snap.Queue)
	for i := range snap.Queue {
		q := snap.Queue[i]
		if !q.Status.Live() {
			continue
		}
		entry := QueueEntry{Request: q, Wait: queueWait(&q, ahead, together[q.ID])}
		if b := snap.BeadByID[q.BeadID]; b != nil {
			entry.Title = b.Title
		}
		s.Queue = append(s.Queue, entry)
		if ahead == nil {
			ahead = &snap.Queue[i]
		}
	}
}

// queueWait says what a live request waits for; ahead is the first of the queue,
// with are those that it is tested with.
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
		return "together with " + mergequeue.JoinIDs(with)
	case q.Status == mergequeue.Pending && ahead != nil:
		return "behind " + string(ahead.ID)
	}
	return ""
}

// survey is what waits in a mailbox, and what in it asks for tasks. A message that
// can't be read, or a mailbox that is not a folder of the tree, is a warning and no
// reason to show nothing.
func (s *Status) survey(r *rig.Rig, id state.AgentID) (unread, asked []mail.Entry, err error) {
	unread, asked, bad, err := r.Mailbox(id).UnreadAndRequests()
	for _, c := range bad {
		s.warnOf(c)
	}
	if !errors.Is(err, state.ErrCorrupt) && !errors.Is(err, fs.ErrPermission) {
		return unread, asked, err
	}
	s.warnOf(err)
	return nil, nil, nil
}

// warnOf warns once of what the doctor knows about.
func (s *Status) warnOf(err error) {
	warning := err.Error() + ": chipset doctor says what to do"
	if !slices.Contains(s.Warnings, warning) {
		s.Warnings = append(s.Warnings, warning)
	}
}

func (s *Status) addMail(r *rig.Rig) error {
	unread, _, err := s.survey(r, state.Human)
	mail.SortForProcessing(unread, r.Mayor())
	for _, e := range unread {
		s.Mail = append(s.Mail, MailLine{e.Name, e.From, e.Type, e.Subject, e.Priority, e.Timestamp})
	}
	return err
}

func (s *Status) addWarnings(ctx context.Context, r *rig.Rig, snap *rig.Records) error {
	add := func(format string, args ...any) { s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...)) }
	if r.Def == nil {
		add("chipset.yaml can't be used: chipset validate says why")
	}
	if r.Git == nil {
		add("no git repository around %s can be used: chipset doctor says why", r.Dir)
	}
	if err := r.Tree.Verify(); err != nil {
		add("%v", err)
	}
	troubles, err := environment.Look(ctx, r)
	for _, t := range troubles {
		add("%s (%s)", t.Detail, t.Hint)
	}
	if err != nil {
		add("%v", err)
	}
	waiting := s.Beads[bead.Open] + s.Beads[bead.Hooked] + s.Beads[bead.InProgress] + s.Beads[bead.Failed]
	if waiting > 0 {
		s.warnUnlessAlive(snap, r.Mayor(), "nobody hands out work")
	}
	if len(s.Queue) > 0 {
		s.warnUnlessAlive(snap, r.Refinery(), "nothing lands")
	}
	for _, a := range s.Agents {
		_, alive := snap.Alive[a.ID]
		if a.Role == agent.Polecat && !alive && (a.Hook == hook.Pending || a.Hook == hook.Active) {
			add("%s holds %s, but does not run: chipset up starts it", a.ID, a.BeadID)
		}
		if a.Hook == hookCorrupt {
			add("the hook of %s is missing or can't be read: chipset doctor says why", a.ID)
		}
	}
	for _, err := range snap.Unreadable {
		add("%v", err)
	}
	kept, err := r.Tree.Quarantined()
	if len(kept) > 0 {
		add("%s in quarantine: chipset doctor lists them", wording.Count(len(kept), "file"))
	}
	return err
}

func (s *Status) warnUnlessAlive(snap *rig.Records, id state.AgentID, so string) {
	if _, yes := snap.Alive[id]; !yes {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s is not running: %s (chipset up starts the rig)", id, so))
	}
}
