package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/incident"
)

func (w *witnessRunner) do(ctx context.Context, action roles.Action) error {
	switch a := action.(type) {
	case witness.SetStatus:
		return w.setStatus(ctx, a)
	case witness.OpenIncident:
		return w.open(a.Incident)
	case witness.RaiseIncident:
		return w.change(ctx, a.ID, func(i *incident.Incident) error { return i.Raise(a.Severity, string(a.MailName), a.Detail) })
	case witness.ResolveIncident:
		return w.change(ctx, a.ID, func(i *incident.Incident) error { return i.Resolve(a.Resolution, w.Now()) })
	case witness.Ask:
		return w.ask(ctx, a)
	case witness.RecordAnswer:
		_, err := w.Rig.Incidents.Update(ctx, string(a.ID), func(i *incident.Incident) error { return i.Answer(a.At) })
		return err
	case witness.Escalate:
		return w.escalate(ctx, a)
	case witness.RememberOverdue:
		w.reminded[a.Request] = true
		return nil
	}
	return w.base.do(ctx, action)
}

func (w *witnessRunner) setStatus(ctx context.Context, a witness.SetStatus) error {
	now := w.Now()
	_, err := w.Rig.Agents.Update(ctx, string(a.Agent), func(known *agent.Agent) error {
		if known.Status != a.From {
			return state.ErrUnchanged
		}
		known.Status, known.UpdatedAt = a.To, now
		return nil
	})
	return err
}

func (w *witnessRunner) open(i incident.Incident) error {
	err := w.Rig.Incidents.Create(string(i.ID), i)
	if errors.Is(err, state.ErrExists) {
		return nil // its name says what for and when: it is this one
	}
	if err == nil {
		w.Say("%s: %s", i.Severity, subjectOf(&i))
	}
	return err
}

// subjectOf is whom an incident is about, of what kind it is, and on which bead,
// if there is one.
func subjectOf(i *incident.Incident) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", i.AgentID, i.Kind, i.BeadID))
}

// change raises or resolves an incident, and says so.
func (w *witnessRunner) change(ctx context.Context, id state.IncidentID, change func(i *incident.Incident) error) error {
	changed := false
	i, err := w.Rig.Incidents.Update(ctx, string(id), func(i *incident.Incident) error {
		err := change(i)
		changed = err == nil
		return err
	})
	switch {
	case err != nil || !changed:
	case i.Open():
		w.Say("%s: %s", i.Severity, subjectOf(&i))
	default:
		w.Say("resolved: %s: %s", subjectOf(&i), i.Resolution)
	}
	return err
}

// ask sends first and records then: a nudge that is sent twice is a hint given
// twice, one that is only recorded would be held against the agent.
func (w *witnessRunner) ask(ctx context.Context, a witness.Ask) error {
	sent, err := w.nudge(ctx, a.Nudge)
	if err != nil || sent.Timestamp.IsZero() {
		return err
	}
	_, err = w.Rig.Incidents.Update(ctx, string(a.Incident), func(i *incident.Incident) error {
		i.Ask(a.Count, sent.Timestamp)
		return nil
	})
	return err
}

// escalate sends the mail of an incident under the name that the incident
// fixes, and records that it is sent. A name that is taken by another message
// is replaced in the incident first.
func (w *witnessRunner) escalate(ctx context.Context, a witness.Escalate) error {
	i, err := w.Rig.Incidents.Get(string(a.ID))
	if err != nil {
		return err
	}
	if !i.Open() || i.EscalatedAt != nil || i.Severity != a.Severity {
		return nil
	}
	metadata, err := json.Marshal(a.Metadata)
	if err != nil {
		return err
	}
	fix := func(n mail.Name) error { return w.fixName(ctx, a.ID, n) }
	name := mail.Name(i.MailName)
	if name.Time().IsZero() {
		name = mail.NameAt(w.Now(), w.ID)
		if err := fix(name); err != nil {
			return err
		}
	}
	m := mail.Message{To: a.To, Type: mail.HealthEscalation, Subject: a.Subject, Body: a.Body,
		Priority: escalationPriority(a.Severity), ID: fmt.Sprintf("esc-%s-%s", a.ID, a.Severity), Ref: a.Ref, Metadata: metadata}
	if err := w.sendAs(ctx, name, m, fix); err != nil {
		return fmt.Errorf("escalation of %s to %s: %w", a.ID, a.To, err)
	}
	now := w.Now()
	_, err = w.Rig.Incidents.Update(ctx, string(a.ID), func(i *incident.Incident) error {
		i.EscalatedAt = &now
		return nil
	})
	w.Say("told %s: %s", a.To, a.Subject)
	return err
}

func (w *witnessRunner) fixName(ctx context.Context, id state.IncidentID, name mail.Name) error {
	_, err := w.Rig.Incidents.Update(ctx, string(id), func(i *incident.Incident) error {
		if i.MailName == string(name) {
			return state.ErrUnchanged
		}
		i.MailName = string(name)
		return nil
	})
	return err
}

func escalationPriority(s incident.Severity) mail.Priority {
	if s == incident.Critical {
		return mail.Urgent
	}
	return mail.Normal
}
