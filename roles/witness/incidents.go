package witness

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
)

// concern is what an incident is opened, raised and nudged for.
type concern struct {
	agent      state.AgentID
	assignment state.AssignmentID
	bead       state.BeadID
	session    state.SessionID
	kind       incident.Kind
	severity   incident.Severity
	// from is since when it is so, as far as the witness patrolled.
	from     state.Time
	activity *state.Time
	detail   string
	// nudgee is who is asked, or "" when nobody could answer.
	nudgee state.AgentID
}

// ofHook reports whether incidents of a kind belong to one agent's hook.
func ofHook(k incident.Kind) bool {
	switch k {
	case incident.Stalled, incident.NotPickedUp, incident.ProcessGone, incident.Restarts, incident.CorruptHook, incident.HeldLong:
		return true
	case incident.MergeStuck, incident.QueueBlocked, incident.QueueDeep, incident.MayorSilent,
		incident.MayorMissing, incident.RefineryGone, incident.DiskLow:
	}
	return false
}

// marksStalled reports whether the agent counts as stalled while such an
// incident is open.
func marksStalled(k incident.Kind) bool {
	return ofHook(k) && k != incident.CorruptHook && k != incident.HeldLong
}

// hold opens or raises the incident of a concern, reports it, and asks the agent
// when a nudge is due. A severity never falls: only the end of the incident ends it.
func (d *decision) hold(c concern) {
	var g roles.Group
	i := d.find(incident.Key{Agent: c.agent, Assignment: c.assignment, Kind: c.kind})
	switch {
	case i == nil:
		i = d.opening(c)
		g = append(g, OpenIncident{*i})
	case c.severity.Rank() > i.Severity.Rank():
		i.Severity, i.EscalatedAt, i.MailName, i.Detail = c.severity, nil, d.mailName(c.severity), c.detail
		g = append(g, RaiseIncident{ID: i.ID, Severity: i.Severity, MailName: mail.Name(i.MailName), Detail: i.Detail})
	}
	d.since[i.ID] = c.from
	var ask roles.Group
	if c.nudgee != "" && i.Severity != incident.Critical && (i.Nudges == 0 || d.waiting(i, c.from) >= d.f.Policy.Nudge) {
		ask = roles.Group{d.ask(i, &c)}
	}
	if d.untold(i) {
		g = append(g, d.escalation(i))
	}
	if g = append(g, ask...); len(g) > 0 {
		d.do(g...)
	}
}

// ask is the next health check of an incident.
func (d *decision) ask(i *incident.Incident, c *concern) Ask {
	i.Nudges++
	n := nudge.Nudge{Type: nudge.HealthCheck, RequiresResponse: true, Message: d.question(i)}
	if c.assignment != "" {
		n.Ref = &nudge.Ref{BeadID: c.bead, AssignmentID: c.assignment, Session: c.session}
	}
	return Ask{Nudge: roles.Nudge{To: c.nudgee, Nudge: n}, Incident: i.ID, Count: i.Nudges}
}

func (d *decision) opening(c concern) *incident.Incident {
	i := incident.Incident{AgentID: c.agent, AssignmentID: c.assignment, BeadID: c.bead, Kind: c.kind,
		Severity: c.severity, OpenedAt: d.f.Now, Activity: c.activity, Detail: c.detail, MailName: d.mailName(c.severity)}
	i.ID = idOf(&i)
	// The status comes first: a crash in between leaves no incident, and the next
	// patrol begins again.
	if a := d.registered(c.agent); a != nil && marksStalled(c.kind) && (a.Status == agent.Active || a.Status == agent.Idle) {
		d.do(SetStatus{Agent: a.ID, From: a.Status, To: agent.Stalled})
	}
	d.open = append(d.open, i)
	return &d.open[len(d.open)-1]
}

// idOf makes the name of an incident from what it is for and when it opened.
func idOf(i *incident.Incident) state.IncidentID {
	sum := fnv.New64a()
	for _, part := range []string{string(i.AgentID), string(i.AssignmentID), string(i.Kind), i.OpenedAt.String()} {
		sum.Write([]byte(part + "\x00"))
	}
	return state.IncidentID("in-" + strconv.FormatUint(sum.Sum64(), 36))
}

// mailName fixes the name of the next escalation; a warning has none. Those of
// one patrol follow each other by a nanosecond, because they can meet in one
// mailbox.
func (d *decision) mailName(s incident.Severity) string {
	if s.Rank() < incident.Alert.Rank() {
		return ""
	}
	at := state.At(d.f.Now.Add(time.Duration(d.names)))
	d.names++
	return string(mail.NameAt(at, d.f.Self))
}

// resolve closes an incident.
func (d *decision) resolve(i incident.Incident, why string) { d.do(d.resolved(i, why)) }

// resolved is what closes an incident; it is not open any more for what follows.
func (d *decision) resolved(i incident.Incident, why string) ResolveIncident {
	d.open = slices.DeleteFunc(d.open, func(o incident.Incident) bool { return o.ID == i.ID })
	return ResolveIncident{ID: i.ID, Resolution: why}
}

// relieve gives an agent that counts as stalled its status back once nothing is
// open for it.
func (d *decision) relieve(a *Agent) {
	if a.Status != agent.Stalled || slices.ContainsFunc(d.of(a.ID), func(i incident.Incident) bool { return marksStalled(i.Kind) }) {
		return
	}
	to := agent.Idle
	if a.Corrupt == "" && a.Hook.WorkItem != nil {
		to = agent.Active
	}
	d.do(SetStatus{Agent: a.ID, From: agent.Stalled, To: to})
}

// tell sends the mail of every incident that an earlier patrol did not get to
// tell of. After a crash in between it is sent again, under the name that was fixed.
func (d *decision) tell() {
	for k := range d.open {
		if i := &d.open[k]; d.untold(i) {
			d.do(d.escalation(i))
		}
	}
}

// untold reports whether an incident has grown and no mail of this decision or
// before it reports that.
func (d *decision) untold(i *incident.Incident) bool {
	return i.Severity.Rank() >= incident.Alert.Rank() && i.EscalatedAt == nil && !d.told[i.ID]
}

func (d *decision) find(key incident.Key) *incident.Incident {
	for k := range d.open {
		if d.open[k].Key() == key {
			return &d.open[k]
		}
	}
	return nil
}

// of lists the open incidents of an agent; what is resolved meanwhile stays in
// the list.
func (d *decision) of(id state.AgentID) []incident.Incident {
	var all []incident.Incident
	for _, i := range d.open {
		if i.AgentID == id {
			all = append(all, i)
		}
	}
	return all
}

func (d *decision) registered(id state.AgentID) *Agent {
	if d.f.Scan == nil {
		return nil
	}
	for k := range d.f.Scan.Agents {
		if d.f.Scan.Agents[k].ID == id {
			return &d.f.Scan.Agents[k]
		}
	}
	return nil
}

func (d *decision) bead(id state.BeadID) *bead.Bead {
	if d.f.Scan == nil {
		return nil
	}
	return d.f.Scan.Backlog.Get(id)
}
