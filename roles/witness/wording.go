package witness

import (
	"fmt"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/wording"
)

// escalation returns the mail of an incident. It depends only on the incident and the
// scan, so that it is the same after a crash.
func (d *decision) escalation(i *incident.Incident) Escalate {
	d.told[i.ID] = true
	quiet := d.quiet(i)
	advice := d.recommend(i)
	e := Escalate{ID: i.ID, To: d.recipient(i.Kind), Severity: i.Severity, Subject: subject(i, quiet),
		Metadata: Metadata{IncidentID: i.ID, Kind: i.Kind, Severity: i.Severity, AgentID: i.AgentID, BeadID: i.BeadID,
			AssignmentID: i.AssignmentID, Recommend: advice, Minutes: int(quiet / time.Minute), Nudges: i.Nudges}}
	if i.AssignmentID != "" {
		e.Ref = &mail.Ref{BeadID: i.BeadID, AssignmentID: i.AssignmentID}
		if a := d.registered(i.AgentID); a != nil && a.Corrupt == "" && a.Hook.Assignment() == i.AssignmentID {
			e.Ref.Session = a.Hook.WorkItem.Session
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s.\n\n", i.Severity, e.Subject)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name+":", value)
		}
	}
	line("incident", fmt.Sprintf("%s, open since %s", i.ID, i.OpenedAt))
	line("agent", string(i.AgentID))
	line("bead", string(i.BeadID))
	line("assignment", string(i.AssignmentID))
	if w := d.bead(i.BeadID); w != nil {
		line("title", w.Title)
		line("held against", w.FailureCounts())
	}
	if i.Activity != nil {
		line("progress", "last on "+i.Activity.String())
	}
	if i.Nudges > 0 {
		line("nudges", fmt.Sprintf("%d sent, %d answered", i.Nudges, i.Answers))
	}
	line("detail", i.Detail)
	fmt.Fprintf(&b, "\nRecommended: %s.\n", advise(i, advice))
	e.Body = b.String()
	return e
}

// quiet is how long an incident has lasted while the witness patrolled: a night that
// the machine slept through does not count.
func (d *decision) quiet(i *incident.Incident) time.Duration {
	from, known := d.since[i.ID]
	if !known {
		from = i.OpenedAt
	}
	return max(0, d.f.Now.Sub(from.Time))
}

// recipient is the agent that can do something about it: the mayor moves work,
// everything else needs a person, as does a rig whose mayor is retired.
func (d *decision) recipient(k incident.Kind) state.AgentID {
	if a := d.registered(d.f.Mayor); a != nil && a.Status == agent.Retired {
		return state.Human
	}
	switch k {
	case incident.Stalled, incident.NotPickedUp, incident.ProcessGone, incident.Restarts, incident.MergeStuck:
		return d.f.Mayor
	case incident.CorruptHook, incident.HeldLong, incident.QueueBlocked, incident.QueueDeep, incident.MayorSilent,
		incident.MayorMissing, incident.RefineryGone, incident.DiskLow:
	}
	return state.Human
}

func (d *decision) recommend(i *incident.Incident) Recommendation {
	a := d.registered(i.AgentID)
	alive := a != nil && a.Alive
	switch {
	case !ofHook(i.Kind), i.Kind == incident.CorruptHook, i.Kind == incident.Restarts, a != nil && a.Role == agent.Crew:
		return RecommendHuman
	case i.Kind == incident.ProcessGone, i.Kind == incident.NotPickedUp && !alive:
		return RecommendReassign
	case i.Severity != incident.Critical:
		return RecommendNudge
	case i.Kind == incident.NotPickedUp:
		return RecommendReassign
	}
	if b := d.bead(i.BeadID); b != nil && b.Restarts >= d.f.Policy.MaxRestarts {
		return RecommendHuman
	}
	return RecommendRestart
}

func subject(i *incident.Incident, quiet time.Duration) string {
	who, long := string(i.AgentID), span(quiet)
	switch i.Kind {
	case incident.Stalled:
		return fmt.Sprintf("%s has made no progress on %s for %s", who, i.BeadID, long)
	case incident.NotPickedUp:
		return fmt.Sprintf("%s has not picked up %s for %s", who, i.BeadID, long)
	case incident.ProcessGone:
		return fmt.Sprintf("the process of %s is gone with %s on its hook", who, i.BeadID)
	case incident.Restarts:
		return fmt.Sprintf("%s stalls again on %s, which was restarted too often", who, i.BeadID)
	case incident.CorruptHook:
		return fmt.Sprintf("the hook of %s can't be read", who)
	case incident.HeldLong:
		return fmt.Sprintf("%s has held %s for %d h", who, i.BeadID, int(quiet.Hours()))
	case incident.MergeStuck:
		return "a merge request is stuck"
	case incident.QueueBlocked:
		return "the merge queue is blocked"
	case incident.QueueDeep:
		return "the merge queue is deep"
	case incident.MayorSilent:
		return "the mayor is not acting"
	case incident.MayorMissing:
		return "no mayor is running"
	case incident.RefineryGone:
		return "no refinery is running"
	case incident.DiskLow:
		return "the disk of the rig is almost full"
	}
	return fmt.Sprintf("%s: %s", who, i.Kind)
}

// advise explains a recommendation to a person.
func advise(i *incident.Incident, r Recommendation) string {
	switch i.Kind {
	case incident.CorruptHook:
		return "a person repairs the hook; `chipset doctor` says what is wrong with it"
	case incident.HeldLong:
		return "`chipset unsling " + string(i.BeadID) + "` gives it to another, if its session does not go on with it"
	case incident.QueueBlocked:
		return "a person decides: `chipset queue list`, then `chipset queue retry ID` or `chipset queue drop ID --reason TEXT`"
	case incident.MayorMissing:
		return "start one with `chipset up` or `chipset mayor`"
	case incident.RefineryGone:
		return "start one with `chipset up` or `chipset refinery`"
	case incident.DiskLow:
		return "make room; writes that fail lose nothing, but nothing moves on"
	case incident.Stalled, incident.NotPickedUp, incident.ProcessGone, incident.Restarts, incident.MergeStuck,
		incident.QueueDeep, incident.MayorSilent:
	}
	switch r {
	case RecommendNudge:
		return "nudge; it may be busy without showing it"
	case RecommendRestart:
		return "restart, with a new session for the same bead"
	case RecommendReassign:
		return "reassign to another polecat"
	case RecommendHuman:
	}
	return "a person should look"
}

// question is the text of a health check.
func (d *decision) question(i *incident.Incident) string {
	text := subject(i, d.quiet(i))
	if i.Detail != "" {
		text += ": " + i.Detail
	}
	return text + ". Are you making progress?"
}

// report is the answer to a person who asks.
func (d *decision) report() string {
	var b strings.Builder
	b.WriteString(strings.ToUpper(d.summary()[:1]) + d.summary()[1:] + ".\n")
	for k := range d.open {
		i := &d.open[k]
		fmt.Fprintf(&b, "- %s: %s (%s, %s)\n", i.Severity, subject(i, d.quiet(i)), i.ID, wording.Count(i.Nudges, "nudge"))
	}
	b.WriteString("\n`chipset status --health` shows the same at any time.\n")
	return b.String()
}

// span writes a duration the way one says it.
func span(d time.Duration) string {
	if d < 2*time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return fmt.Sprintf("%d min", int(d/time.Minute))
}
