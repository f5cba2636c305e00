package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// witnessRole carries out what roles/witness decides.
type witnessRole struct {
	*process
	state witness.State
}

func (r *witnessRole) recover() {}

func (r *witnessRole) killed() { *r = witnessRole{process: r.process} }

func (r *witnessRole) after() time.Duration {
	return max(time.Millisecond, r.state.Wake.Sub(r.w.clock().Time))
}

func (r *witnessRole) round() (roles.Outcome, bool) {
	w := r.w
	now := w.clock()
	f := witness.Facts{Now: now, Self: witnessID, Session: r.session, Mayor: mayorID, Refinery: refineryID, Policy: policy.Witness(w.def),
		Mail: w.entries(witnessID), Nudges: w.nudges(witnessID), Incidents: w.incidents}
	if r.state.Due(now) {
		for i := range w.views {
			h := &w.sights[i].Hook
			w.sights[i].Asks = h.WorkItem != nil && w.held(w.backlog.Get(h.WorkItem.BeadID))
		}
		f.Scan = &witness.Scan{Held: w.held, Agents: w.sights, Backlog: w.backlog, Queue: w.queue(), Dispatches: w.unconfirmed(), MayorMail: w.entries(mayorID), Disk: w.disk()}
	}
	d := witness.Decide(r.state, f)
	return carryOut(r.process, &d, &r.state, r.do)
}

// queue is what the witness sees of the merge queue: a bead that has moved on
// leaves its request behind for no longer than the refinery takes to see it.
func (w *world) queue() witness.Queue {
	var front []mergequeue.Request
	w.live.Scan(func(q *mergequeue.Request) bool {
		front = append(front, *q)
		return len(front) < 4
	})
	q := witness.QueueOf(front, w.backlog)
	if w.live.Len() > len(front) {
		q.Waiting = w.waiting
	}
	return q
}

func (w *world) disk() witness.Disk {
	const total = 100 << 30
	switch {
	case w.full:
		return witness.Disk{Free: 0, Total: total}
	case w.low:
		return witness.Disk{Free: 500 << 20, Total: total}
	}
	return witness.Disk{Free: total / 2, Total: total}
}

func (r *witnessRole) do(action roles.Action) error {
	w := r.w
	switch a := action.(type) {
	case witness.SetStatus:
		if w.sights[w.slots[a.Agent]].Status != a.From {
			return nil
		}
		return w.setStatus(a.Agent, a.To)
	case witness.OpenIncident:
		return w.openIncident(a.Incident)
	case witness.RaiseIncident:
		return w.updateIncident(a.ID, func(i *incident.Incident) error { return i.Raise(a.Severity, string(a.MailName), a.Detail) })
	case witness.ResolveIncident:
		return w.updateIncident(a.ID, func(i *incident.Incident) error { return i.Resolve(a.Resolution, w.clock()) })
	case witness.Ask:
		return r.ask(a)
	case witness.RecordAnswer:
		return w.updateIncident(a.ID, func(i *incident.Incident) error { return i.Answer(a.At) })
	case witness.Escalate:
		return r.escalate(a)
	}
	w.fail("the witness decided %T", action)
	return nil
}

// ask sends first and records then.
func (r *witnessRole) ask(a witness.Ask) error {
	sent, err := r.w.sendNudge(witnessID, a.Nudge)
	if err != nil {
		return err
	}
	return r.w.updateIncident(a.Incident, func(i *incident.Incident) error { i.Ask(a.Count, sent.Timestamp); return nil })
}

// escalate sends the mail of an incident and records that it is sent.
func (r *witnessRole) escalate(a witness.Escalate) error {
	w := r.w
	at := slices.IndexFunc(w.incidents, func(i incident.Incident) bool { return i.ID == a.ID })
	if at < 0 || w.incidents[at].EscalatedAt != nil || w.incidents[at].Severity != a.Severity {
		return nil
	}
	esc := &mayor.Escalation{Kind: string(a.Metadata.Kind), Severity: string(a.Metadata.Severity), Recommend: string(a.Metadata.Recommend)}
	m := mail.Message{From: witnessID, To: a.To, Type: mail.HealthEscalation, Subject: a.Subject, ID: fmt.Sprintf("esc-%s-%s", a.ID, a.Severity), Ref: a.Ref}
	if a.Severity == incident.Critical {
		m.Priority = mail.Urgent
	}
	if err := w.send(m, esc); err != nil {
		return err
	}
	w.judge.alerted(w, &w.incidents[at])
	w.tally.alerted(w, &w.incidents[at])
	now := w.clock()
	return w.updateIncident(a.ID, func(i *incident.Incident) error { i.EscalatedAt = &now; return nil })
}

func (w *world) openIncident(i incident.Incident) error {
	if w.full {
		return errDiskFull
	}
	for k := range w.incidents {
		if w.incidents[k].ID == i.ID {
			return nil // its name says what for and when: it is this one
		}
		if w.incidents[k].Key() == i.Key() {
			w.fail("a second incident is open for %v", i.Key())
		}
	}
	w.incidents = append(slices.Clone(w.incidents), i)
	slices.SortStableFunc(w.incidents, func(a, b incident.Incident) int { return a.OpenedAt.Compare(b.OpenedAt.Time) })
	w.tally.incident(w, &i)
	return nil
}

// updateIncident changes an open incident; one that is resolved leaves the list.
func (w *world) updateIncident(id state.IncidentID, change func(i *incident.Incident) error) error {
	if w.full {
		return errDiskFull
	}
	at := slices.IndexFunc(w.incidents, func(i incident.Incident) bool { return i.ID == id })
	if at < 0 {
		return nil
	}
	before, after := w.incidents[at], w.incidents[at]
	if err := change(&after); err != nil {
		return nil //nolint:nilerr // it is so already
	}
	w.judge.incident(w, &before, &after)
	w.incidents = slices.Clone(w.incidents)
	if after.Open() {
		w.incidents[at] = after
	} else {
		w.incidents = slices.Delete(w.incidents, at, at+1)
	}
	return nil
}
