package witness

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// world is a rig in memory that carries out what the witness decides.
type world struct {
	t      testing.TB
	policy Policy
	now    state.Time
	state  State

	agents    []Agent
	beads     []bead.Bead
	queue     []mergequeue.Request
	mayorMail []mail.Entry
	mail      []mail.Entry
	nudges    []nudge.Nudge
	disk      Disk
	overdue   []mail.TaskStatus
	reminded  map[mail.Name]bool

	incidents map[state.IncidentID]incident.Incident
	// sent counts the mails of each incident and severity, rises what may be told
	// at most.
	sent    map[string]int
	names   map[mail.Name]state.IncidentID
	rises   int
	nudged  int
	session state.SessionID
}

var epoch = state.At(time.Date(2026, 3, 5, 10, 0, 0, 0, time.UTC))

func newWorld(t testing.TB) *world {
	return &world{t: t, now: epoch, session: "ses-witness", incidents: map[state.IncidentID]incident.Incident{}, sent: map[string]int{}, names: map[mail.Name]state.IncidentID{},
		policy: Policy{Patrol: 10 * time.Second, Stall: 300 * time.Second, Nudge: 120 * time.Second, Restart: 600 * time.Second,
			SlowStart: 60 * time.Second, TestTimeout: 20 * time.Minute, MaxRestarts: 3, MaxParallel: 10, MaxWaiting: 2}}
}

func (w *world) agent(id state.AgentID) *Agent {
	for i := range w.agents {
		if w.agents[i].ID == id {
			return &w.agents[i]
		}
	}
	w.t.Fatalf("no agent %s", id)
	return nil
}

func (w *world) add(id state.AgentID, role agent.Role, alive bool) {
	w.agents = append(w.agents, Agent{ID: id, Role: role, Status: agent.Idle, Alive: alive,
		Hook: hook.Hook{AgentID: id, Status: hook.Empty, LastActivity: w.now}})
}

func (w *world) hang(h hook.Hook) {
	a := w.agent(h.AgentID)
	a.Hook = h
	if h.Status != hook.Empty {
		a.Status = agent.Active
	}
}

// work hangs work on an agent's hook.
func (w *world) work(id state.AgentID, status hook.Status, b state.BeadID, as state.AssignmentID, ses state.SessionID) {
	w.hang(hook.Hook{AgentID: id, Status: status, LastActivity: w.now,
		WorkItem: &hook.WorkItem{BeadID: b, AssignmentID: as, Session: ses, Title: "a title"}})
}

func (w *world) open() []incident.Incident {
	var all []incident.Incident
	for _, i := range w.incidents {
		if i.Open() {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b incident.Incident) int {
		if c := a.OpenedAt.Compare(b.OpenedAt.Time); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return all
}

func (w *world) facts() Facts {
	f := Facts{Now: w.now, Self: "witness", Session: w.session, Mayor: "mayor", Refinery: "refinery", Policy: w.policy,
		Mail: slices.Clone(w.mail), Nudges: slices.Clone(w.nudges), Incidents: w.open()}
	if w.state.Due(w.now) {
		beads := backlog.New(w.beads...)
		f.Scan = &Scan{Agents: slices.Clone(w.agents), Backlog: beads, Queue: QueueOf(w.queue, beads), MayorMail: w.mayorMail, Disk: w.disk, Overdue: w.overdue, Reminded: w.reminded}
	}
	return f
}

// tick runs one tick, of which only the first `limit` actions are carried out
// (-1: all); fewer is a crash. It returns what was decided.
func (w *world) tick(limit int) roles.Decision[State] {
	d := Decide(w.state, w.facts())
	w.state = d.Next
	actions := d.Actions()
	for n, a := range actions {
		if n == limit {
			break
		}
		w.apply(a)
	}
	if limit >= 0 && limit < len(actions) {
		w.state, w.reminded = State{}, nil
	}
	return d
}

func (w *world) apply(action roles.Action) {
	switch a := action.(type) {
	case roles.Send, roles.Nudge, roles.Finish:
	case RememberOverdue:
		if w.reminded == nil {
			w.reminded = map[mail.Name]bool{}
		}
		w.reminded[a.Request] = true
	case SetStatus:
		if found := w.agent(a.Agent); found.Status == a.From {
			found.Status = a.To
		}
	case OpenIncident:
		if i, ok := w.incidents[a.Incident.ID]; ok && i.Key() != a.Incident.Key() {
			w.t.Fatalf("incident %s exists for something else", a.Incident.ID)
		}
		for _, i := range w.open() {
			if i.Key() == a.Incident.Key() {
				w.t.Fatalf("a second incident for %v", i.Key())
			}
		}
		w.incidents[a.Incident.ID] = a.Incident
		w.rises++
	case RaiseIncident:
		i := w.known(a.ID)
		if a.Severity.Rank() <= i.Severity.Rank() {
			w.t.Fatalf("%s raised from %s to %s", a.ID, i.Severity, a.Severity)
		}
		_ = i.Raise(a.Severity, string(a.MailName), a.Detail)
		w.incidents[a.ID] = i
		w.rises++
	case ResolveIncident:
		i := w.known(a.ID)
		_ = i.Resolve(a.Resolution, w.now)
		w.incidents[a.ID] = i
	case Ask:
		w.nudged++
		i := w.known(a.Incident)
		i.Ask(a.Count, w.now)
		w.incidents[a.Incident] = i
	case RecordAnswer:
		i := w.known(a.ID)
		_ = i.Answer(a.At)
		w.incidents[a.ID] = i
	case Escalate:
		i, now := w.known(a.ID), w.now
		if i.MailName == "" || i.EscalatedAt != nil {
			w.t.Fatalf("escalation of %+v", i)
		}
		// A clock that was set back can bring a name twice: the second one moves on.
		for name := mail.Name(i.MailName); ; name = mail.NameAt(state.At(name.Time().Add(1)), "witness") {
			if _, taken := w.names[name]; !taken {
				w.names[name] = i.ID
				break
			}
		}
		w.sent[fmt.Sprintf("%s %s", i.ID, a.Severity)]++
		i.EscalatedAt = &now
		w.incidents[a.ID] = i
	case roles.MarkRead:
		w.mail = slices.DeleteFunc(w.mail, func(e mail.Entry) bool { return e.Name == a.Entry.Name })
	case roles.MarkSeen:
		w.nudges = slices.DeleteFunc(w.nudges, func(n nudge.Nudge) bool { return n.From == a.Nudge.From })
	default:
		w.t.Fatalf("unknown action %T", action)
	}
}

func (w *world) known(id state.IncidentID) incident.Incident {
	i, ok := w.incidents[id]
	if !ok {
		w.t.Fatalf("no incident %s", id)
	}
	return i
}

// show writes one decision on one line.
func (w *world) show(action roles.Action) string {
	about := func(id state.IncidentID) string {
		i := w.incidents[id] // which a crash may have kept from being made
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", i.AgentID, i.Kind, i.AssignmentID))
	}
	switch a := action.(type) {
	case SetStatus:
		return fmt.Sprintf("status %s %s→%s", a.Agent, a.From, a.To)
	case OpenIncident:
		return fmt.Sprintf("open %s: %s", a.Incident.Severity, about(a.Incident.ID))
	case RaiseIncident:
		return fmt.Sprintf("raise %s: %s", a.Severity, about(a.ID))
	case ResolveIncident:
		return fmt.Sprintf("resolve: %s: %s", about(a.ID), a.Resolution)
	case Ask:
		return fmt.Sprintf("ask %s: %s [%d]", a.Nudge.To, a.Nudge.Nudge.Message, a.Count)
	case RecordAnswer:
		return "answered: " + about(a.ID)
	case Escalate:
		return fmt.Sprintf("mail %s %s: %s (recommend %s, %d min, %d nudges)", a.To, a.Severity, a.Subject,
			a.Metadata.Recommend, a.Metadata.Minutes, a.Metadata.Nudges)
	case RememberOverdue:
		return "remember that of " + string(a.Request)
	}
	return fmt.Sprintf("%T", action)
}
