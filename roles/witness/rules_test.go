package witness

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
)

// Everything that waits for the mayor counts, each under a name that stays, and nothing else does.
func TestWhatTheMayorNeglects(t *testing.T) {
	polecat := func(id state.AgentID, s hook.Status) Agent {
		return Agent{ID: id, Role: agent.Polecat, Status: agent.Active, Alive: true,
			Hook: hook.Hook{AgentID: id, Status: s, WorkItem: &hook.WorkItem{BeadID: "gt-h", AssignmentID: "as-" + state.AssignmentID(id)}}}
	}
	retired, dead := polecat("retired", hook.Completed), polecat("dead", hook.Empty)
	retired.Status, dead.Alive = agent.Retired, false
	ready := func(id state.BeadID) bead.Bead { return bead.Bead{ID: id, Status: bead.Open} }
	scan := &Scan{
		Agents: []Agent{polecat("alpha", hook.Completed), polecat("bravo", hook.Active), polecat("free", hook.Empty), retired, dead},
		Backlog: backlog.New(bead.Bead{ID: "gt-f", Status: bead.Failed}, bead.Bead{ID: "gt-d", Status: bead.Done}, bead.Bead{ID: "gt-out", Status: bead.InProgress},
			ready("gt-1"), ready("gt-2"), ready("gt-held")),
		Dispatches: []dispatch.Record{{AssignmentID: "as-on", BeadID: "gt-3", Stage: dispatch.Launched}, {AssignmentID: "as-off", Stage: dispatch.Confirmed}},
		MayorMail:  []mail.Entry{{Name: "now", Message: mail.Message{Priority: mail.Urgent}}, {Name: "later", Message: mail.Message{Priority: mail.Normal}}},
		Held:       func(b *bead.Bead) bool { return b.ID == "gt-held" },
	}
	for most, last := range map[int][]string{0: {"ready gt-1"}, 2: {"ready gt-1"}, 1: nil} { // one bead is out
		d := &decision{f: Facts{Now: epoch, Scan: scan, Policy: Policy{MaxParallel: most}}}
		var got []string
		for _, n := range d.neglected() {
			got = append(got, n.what)
		}
		if want := append([]string{"mail now", "dispatch as-on", "hook as-alpha", "failed gt-f"}, last...); !slices.Equal(got, want) {
			t.Errorf("of at most %d: %q, want %q", most, got, want)
		}
	}
}

// A disk is low and critical from a figure on, or a share where it is small, and of what nobody knows nothing is said.
func TestDiskFigures(t *testing.T) {
	const big = 1 << 50
	for _, c := range []struct {
		disk Disk
		low  bool
		crit bool
		over bool // an incident that is open is resolved
	}{
		{Disk{lowBytes, big}, false, false, false},
		{Disk{lowBytes - 1, big}, true, false, false},
		{Disk{lowBytes + lowBytes/4, big}, false, false, true},
		{Disk{lowBytes + lowBytes/4 - 1, big}, false, false, false},
		{Disk{criticalBytes, big}, true, false, false},
		{Disk{criticalBytes - 1, big}, true, true, false},
		{Disk{5, 100}, false, false, false},
		{Disk{1, 100}, true, false, false},
		{Disk{0, 100}, true, true, false},
		{Disk{}, false, false, true},
	} {
		if c.disk.Low() != c.low || c.disk.Critical() != c.crit {
			t.Errorf("%+v: low %v, critical %v", c.disk, c.disk.Low(), c.disk.Critical())
		}
		w := newWorld(t)
		w.disk, w.incidents = c.disk, map[state.IncidentID]incident.Incident{"in-1": {ID: "in-1", AgentID: "witness", Kind: incident.DiskLow, Severity: incident.Critical, OpenedAt: epoch, MailName: "told", EscalatedAt: &epoch}}
		w.tick(-1)
		if over := len(w.open()) == 0; over != c.over {
			t.Errorf("%+v: over is %v", c.disk, over)
		}
	}
}

// A request that stands first and lands not is told with its reason: as an alert when a person has to decide, as a
// warning when it waits by itself.
func TestQueueBlockedSaysWhy(t *testing.T) {
	for want, r := range map[incident.Severity]mergequeue.Request{
		incident.Alert:   {Status: mergequeue.Conflicted, Reason: "conflict in README.md"},
		incident.Warning: {Status: mergequeue.Pending, Waiting: "the checkout of main is in the way"},
	} {
		w := newWorld(t)
		w.add("mayor", agent.Mayor, true)
		w.add("refinery", agent.Refinery, true)
		r.ID, r.BeadID, r.AssignmentID = "mr-1", "gt-1", "as-1"
		w.beads = []bead.Bead{{ID: "gt-1", Status: bead.Done, AssignmentID: "as-1"}}
		w.queue, w.policy.MaxWaiting = []mergequeue.Request{r}, 0
		for range 40 {
			w.tick(-1)
			w.now = state.At(w.now.Add(10 * time.Second))
		}
		if all := w.open(); len(all) != 1 || all[0].Kind != incident.QueueBlocked || all[0].Severity != want || !strings.Contains(all[0].Detail, r.Reason+r.Waiting) {
			t.Errorf("%+v: %+v", r, all)
		}
	}
}

// An answer counts once, for the incident that it is about.
func TestAnswersThatCount(t *testing.T) {
	at := func(s int) state.Time { return state.At(epoch.Add(time.Duration(s) * time.Second)) }
	opened, asked, before, answered := at(10), at(20), at(5), at(25)
	for name, c := range map[string]struct {
		nudge  nudge.Nudge
		change func(*incident.Incident)
		counts bool
	}{
		"plain":                {nudge: nudge.Nudge{Timestamp: at(30)}, counts: true},
		"to the last nudge":    {nudge: nudge.Nudge{Timestamp: at(30), InReplyTo: &asked}, counts: true},
		"to an earlier one":    {nudge: nudge.Nudge{Timestamp: at(30), InReplyTo: &opened}, counts: true},
		"to another incident":  {nudge: nudge.Nudge{Timestamp: at(30), InReplyTo: &before}},
		"of another":           {nudge: nudge.Nudge{Timestamp: at(30), From: "polecat-bravo"}},
		"to nothing":           {nudge: nudge.Nudge{Timestamp: at(30)}, change: func(i *incident.Incident) { i.LastNudge = nil }},
		"for the second time":  {nudge: nudge.Nudge{Timestamp: at(25)}, change: func(i *incident.Incident) { i.AnsweredAt = &answered }},
		"after the first":      {nudge: nudge.Nudge{Timestamp: at(26)}, change: func(i *incident.Incident) { i.AnsweredAt = &answered }, counts: true},
		"of another attempt":   {nudge: nudge.Nudge{Timestamp: at(30), Ref: &nudge.Ref{AssignmentID: "as-2"}}},
		"of the same attempt":  {nudge: nudge.Nudge{Timestamp: at(30), Ref: &nudge.Ref{AssignmentID: "as-1"}}, counts: true},
		"progress of a merge":  {nudge: nudge.Nudge{Timestamp: at(30), Message: "progress"}, change: func(i *incident.Incident) { i.Kind = incident.MergeStuck }, counts: true},
		"a clock was set back": {nudge: nudge.Nudge{Timestamp: at(30), InReplyTo: &before}, change: func(i *incident.Incident) { i.LastNudge = &before }, counts: true},
	} {
		i := incident.Incident{ID: "in-1", AgentID: "polecat-alpha", AssignmentID: "as-1", Kind: incident.Stalled, OpenedAt: opened, LastNudge: &asked, Nudges: 2}
		if c.change != nil {
			c.change(&i)
		}
		if c.nudge.From == "" {
			c.nudge.From = i.AgentID
		}
		d := &decision{f: Facts{Now: at(40)}, open: []incident.Incident{i}}
		if g := d.answer(&c.nudge); len(g) > 1 || (len(g) == 1) != c.counts {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// A question about work says which; one about the rig names none. Who asks the witness is answered, unless it is the witness.
func TestQuestionsNameTheWork(t *testing.T) {
	d := &decision{f: Facts{Now: epoch, Self: "witness"}, since: map[state.IncidentID]state.Time{}}
	i := &incident.Incident{ID: "in-1", AgentID: "polecat-alpha", Kind: incident.Stalled, OpenedAt: epoch}
	of := d.ask(i, &concern{nudgee: "polecat-alpha", assignment: "as-1", bead: "gt-1", session: "ses-1"}).Nudge.Nudge.Ref
	if of == nil || of.AssignmentID != "as-1" || of.BeadID != "gt-1" || of.Session != "ses-1" {
		t.Errorf("about %+v", of)
	}
	if of := d.ask(i, &concern{nudgee: "mayor"}).Nudge.Nudge.Ref; of != nil || i.Nudges != 2 {
		t.Errorf("about %+v, %d nudges", of, i.Nudges)
	}
	for from, answered := range map[state.AgentID]bool{"mayor": true, "witness": false} {
		for _, wants := range []bool{true, false} {
			d := &decision{f: Facts{Now: epoch, Self: "witness", Nudges: []nudge.Nudge{{From: from, Type: nudge.HealthCheck, RequiresResponse: wants}}}}
			d.answers()
			if got := len(d.groups[0]) == 2; got != (answered && wants) {
				t.Errorf("%s, who wants an answer (%v): %+v", from, wants, d.groups)
			}
		}
	}
}
