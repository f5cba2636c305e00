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
		return w.raise(ctx, a)
	case witness.ResolveIncident:
		return w.resolve(ctx, a)
	case witness.Ask:
		return w.ask(ctx, a)
	case witness.RecordAnswer:
		return w.answered(ctx, a)
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

func (w *witnessRunner) raise(ctx context.Context, a witness.RaiseIncident) error {
	raised := false
	i, err := w.Rig.Incidents.Update(ctx, string(a.ID), func(i *incident.Incident) error {
		if !i.Open() || i.Severity.Rank() >= a.Severity.Rank() {
			return state.ErrUnchanged
		}
		raised = true
		i.Severity, i.MailName, i.EscalatedAt = a.Severity, string(a.MailName), nil
		if a.Detail != "" {
			i.Detail = a.Detail
		}
		return nil
	})
	if err == nil && raised {
		w.Say("%s: %s", i.Severity, subjectOf(&i))
	}
	return err
}

func (w *witnessRunner) resolve(ctx context.Context, a witness.ResolveIncident) error {
	now := w.Now()
	resolved := false
	i, err := w.Rig.Incidents.Update(ctx, string(a.ID), func(i *incident.Incident) error {
		if !i.Open() {
			return state.ErrUnchanged
		}
		i.ResolvedAt, i.Resolution, resolved = &now, a.Resolution, true
		return nil
	})
	if err == nil && resolved {
		w.Say("resolved: %s: %s", subjectOf(&i), a.Resolution)
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
		i.Nudges, i.LastNudge = max(i.Nudges, a.Count), &sent.Timestamp
		return nil
	})
	return err
}

func (w *witnessRunner) answered(ctx context.Context, a witness.RecordAnswer) error {
	_, err := w.Rig.Incidents.Update(ctx, string(a.ID), func(i *incident.Incident) error {
		if i.AnsweredAt != nil && !a.At.After(i.AnsweredAt.Time) {
			return state.ErrUnchanged
		}
		i.Answers, i.AnsweredAt = min(i.Answers+1, i.Nudges), &a.At
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
