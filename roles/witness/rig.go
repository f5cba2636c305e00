package witness

import (
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// condition is something about the rig as a whole: the incident is open as long
// as it holds.
type condition struct {
	agent    state.AgentID
	kind     incident.Kind
	severity incident.Severity
	// holds is true also while the severity is still none.
	holds  bool
	from   state.Time
	nudgee state.AgentID
	detail string
}

func (d *decision) judge(c condition) {
	if !c.holds {
		if i := d.find(incident.Key{Agent: c.agent, Kind: c.kind}); i != nil {
			d.resolve(*i, "no longer so")
		}
		return
	}
	if c.severity != incident.None {
		d.hold(concern{agent: c.agent, kind: c.kind, severity: c.severity, from: c.from, detail: c.detail, nudgee: c.nudgee})
	}
}

// climb is the ladder of a condition that began at from and counts from a
// threshold on.
func (d *decision) climb(who state.AgentID, kind incident.Kind, quiet, threshold time.Duration, from state.Time) incident.Severity {
	s := Sight{Quiet: quiet}
	if i := d.find(incident.Key{Agent: who, Kind: kind}); i != nil {
		s.Nudges, s.Unanswered, s.Waiting = i.Nudges, i.Nudges-i.Answers, d.waiting(i, from)
	}
	p := d.f.Policy
	return ladder(s, threshold, p.Restart+threshold-p.Stall, p.Nudge)
}

// patient is true while the witness has not patrolled long enough to say that
// something that counts from a threshold on is over.
func (d *decision) patient(threshold time.Duration) bool {
	return d.f.Now.Sub(d.s.Since.Time) <= threshold
}

// missing is an alert once a role that is needed has had no process for longer
// than starting one takes.
func (d *decision) missing(who state.AgentID, kind incident.Kind, needed bool, detail string) {
	a := d.registered(who)
	c := condition{agent: who, kind: kind, holds: needed && (a == nil || !a.Alive), detail: detail}
	if c.holds {
		long, since := d.lasting(string(kind))
		c.from = since
		if d.proven(long, d.f.Policy.gap()) {
			c.severity = incident.Alert
		}
	}
	d.judge(c)
}

// mayor watches that somebody coordinates.
func (d *decision) mayor() {
	who := d.f.Mayor
	waiting := d.f.Scan.Backlog.Unfinished()
	d.missing(who, incident.MayorMissing, waiting > 0,
		fmt.Sprintf("no process runs the mayor and %s not finished", wording.Count(waiting, "bead")))

	c := condition{agent: who, kind: incident.MayorSilent}
	// A missing mayor is an incident of its own, and neglects nothing.
	if a := d.registered(who); a != nil && a.Alive {
		c.nudgee = who
		var worst time.Duration
		for _, n := range d.neglected() {
			if long, since := d.lasting("neglected " + n.what); !c.holds || long > worst {
				worst, c.holds, c.from, c.detail = long, true, since, n.text
			}
		}
		c.severity = d.climb(who, c.kind, worst, d.f.Policy.Stall, c.from)
	}
	// Something is always on its way through the mayor's hands: only what stays
	// keeps an incident open.
	c.holds = c.holds && (c.severity != incident.None || d.patient(d.f.Policy.Stall))
	d.judge(c)
}

type neglect struct{ what, text string }

// neglected lists what waits for the mayor, whoever's fault it is.
func (d *decision) neglected() []neglect {
	scan, now := d.f.Scan, d.f.Now
	var all []neglect
	add := func(what, format string, args ...any) {
		all = append(all, neglect{what, fmt.Sprintf(format, args...)})
	}
	for i := range scan.MayorMail {
		if e := &scan.MayorMail[i]; e.Priority == mail.Urgent {
			add("mail "+string(e.Name), "urgent mail is unread: %s", e.Subject)
		}
	}
	for i := range scan.Dispatches {
		if r := &scan.Dispatches[i]; r.Stage != dispatch.Confirmed {
			add("dispatch "+string(r.AssignmentID), "the dispatch of %s to %s is not finished", r.BeadID, r.AgentID)
		}
	}
	free, held := 0, 0
	for i := range scan.Agents {
		a := &scan.Agents[i]
		switch {
		case a.Session && a.Corrupt == "" && a.Hook.Status != hook.Empty && a.Hook.Status != hook.Completed:
			held++
		case a.Corrupt != "" || a.Role != agent.Polecat || a.Status == agent.Retired:
		case a.Hook.Status == hook.Completed:
			add("hook "+string(a.Hook.Assignment()), "the completed hook of %s is not cleared", a.ID)
		case a.Hook.Status == hook.Empty && a.Alive:
			free++
		}
	}
	for b := range scan.Backlog.Failed() {
		add("failed "+string(b.ID), "%s failed and nobody decides", b.ID)
	}
	room := free
	if most := d.f.Policy.MaxParallel; most > 0 {
		room = min(room, most-scan.Backlog.OutCount()+held)
	}
	for b := range scan.Backlog.Ready(now) { // who comes later waits for nobody's fault
		if scan.Held != nil && scan.Held(b) {
			continue
		}
		if room--; room < 0 {
			break
		}
		add("ready "+string(b.ID), "%s is ready, %s free, and nobody takes it", b.ID, wording.Count(free, "polecat"))
	}
	return all
}

// refinery watches that finished work lands.
func (d *decision) refinery() {
	who, waiting, head := d.f.Refinery, d.f.Scan.Queue.Waiting, d.f.Scan.Queue.Head
	d.missing(who, incident.RefineryGone, waiting > 0,
		fmt.Sprintf("no process runs the refinery and %s to land", wording.Count(waiting, "request")))
	d.mergeStuck(head)
	d.queueBlocked(head)

	was := d.find(incident.Key{Agent: who, Kind: incident.QueueDeep}) != nil
	deep := condition{agent: who, kind: incident.QueueDeep, holds: d.f.Policy.MaxWaiting > 0 && mergequeue.IsDeep(waiting, d.f.Policy.MaxWaiting, was),
		severity: incident.Warning, from: d.f.Now, detail: wording.Count(waiting, "request") + " in the merge queue"}
	d.judge(deep)
}

func (d *decision) mergeStuck(head *mergequeue.Request) {
	c := condition{agent: d.f.Refinery, kind: incident.MergeStuck}
	a := d.registered(c.agent)
	if head != nil && head.Status == mergequeue.Merging && a != nil && a.Alive {
		quiet, since := d.lasting("merging " + string(head.ID) + " " + head.UpdatedAt.String())
		threshold := d.f.Policy.Stall
		if head.Stage == mergequeue.StageTest {
			threshold += d.f.Policy.TestTimeout
		}
		c.severity = d.climb(c.agent, c.kind, quiet, threshold, since)
		c.holds = c.severity != incident.None || d.patient(threshold)
		c.from, c.nudgee = since, c.agent
		c.detail = fmt.Sprintf("%s has been in stage %s for %s", head.ID, head.Stage, span(quiet))
	}
	d.judge(c)
}

// queueBlocked tells a person about a request that nobody takes out of the way.
// One that waits by itself (a red tip, a checkout in the way) was reported by
// the refinery.
func (d *decision) queueBlocked(head *mergequeue.Request) {
	c := condition{agent: d.f.Refinery, kind: incident.QueueBlocked}
	if head != nil && (head.Status == mergequeue.Conflicted || head.Waiting != "") {
		why := head.Waiting
		if head.Status == mergequeue.Conflicted {
			why = head.Reason
		}
		long, since := d.lasting("blocked " + string(head.ID))
		c.holds, c.from, c.detail = true, since, fmt.Sprintf("%s stands first and does not land: %s", head.ID, wording.Reason(why))
		switch {
		case long <= d.f.Policy.Stall:
		case head.Status == mergequeue.Conflicted:
			c.severity = incident.Alert
		default:
			c.severity = incident.Warning
		}
	}
	d.judge(c)
}

// Free space below which the state tree is in danger: an absolute amount, or
// for a small file system a share of it.
const (
	lowBytes, lowShare           = 1 << 30, 20    // 1 GiB or 1/20
	criticalBytes, criticalShare = 128 << 20, 100 // 128 MiB or 1/100
	// fullBytes is so little that not even a touch of a hook can be counted on.
	fullBytes = 1 << 20
)

// disk watches the file system of the state tree. It must recover by a quarter
// before the incident closes, so that one that breathes is reported once.
func (d *decision) disk() {
	disk := d.f.Scan.Disk
	c := condition{agent: d.f.Self, kind: incident.DiskLow, from: d.f.Now, holds: disk.Total > 0 && disk.Free < disk.low()+disk.low()/4,
		detail: disk.String()}
	switch {
	case !c.holds:
	case disk.Critical():
		c.severity = incident.Critical
	case disk.Low():
		c.severity = incident.Alert
	}
	d.judge(c)
}
