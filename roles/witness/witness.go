// Package witness decides what the witness does: it watches and never touches.
//
// A patrol is scan → evaluate → act → wait. The scan arrives as Facts, Evaluate
// judges one agent, and what follows are nudges, mail and incidents, nothing
// else. An incident on disk is the witness's memory: it says what was nudged
// and what was told, so that a witness that starts again neither repeats an
// alert nor forgets one.
//
//	condition                                          severity  action
//	progress within the stall threshold                none      close an open incident as resolved
//	active without progress, or pending not picked up, warning   health_check nudge, response required
//	longer than the stall threshold
//	still nothing after the nudge interval,            alert     health_escalation mail to the mayor
//	or process gone
//	two nudges unanswered, or longer than the          critical  health_escalation with a restart
//	restart threshold                                            recommendation
//	same bead restarted too often                      critical  escalation that asks for a person
//	a task of mail past its deadline                   none      mail to who asked and who was asked, once
//
// Stall time counts only while the witness patrolled: after a pause of more
// than three patrols, a clock that was set back, a last_activity in the future,
// or a disk without any room, the grace starts again. An open incident outlives
// that: it is closed by progress or by a hook that moved on, never by grace. Work
// that stands still for an answer of the person or the mayor is no stall.
//
// Decide is pure: no disk, no clock, no process.
package witness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Decide turns what a tick fetched into what to do, in order. It changes
// neither of its arguments.
func Decide(s State, f Facts) roles.Decision[State] {
	d := &decision{f: f, s: s, open: slices.Clone(f.Incidents), since: map[state.IncidentID]state.Time{}, told: map[state.IncidentID]bool{},
		watches: memory[state.AgentID, Watch]{m: s.Watches}, standing: memory[string, state.Time]{m: s.Lasting}, lived: memory[state.AgentID, bool]{m: s.Lived}}
	d.answers()
	if f.Scan != nil {
		d.patrol()
	}
	d.letters()
	d.s.Watches, d.s.Lasting, d.s.Lived = d.watches.m, d.standing.m, d.lived.m
	return roles.Decision[State]{Groups: d.groups, Next: d.s}
}

// decision is one tick in the making.
type decision struct {
	f Facts
	s State
	// watches, standing and lived are those of the State, as they will be.
	watches  memory[state.AgentID, Watch]
	standing memory[string, state.Time]
	lived    memory[state.AgentID, bool]

	open []incident.Incident // as they will be after the actions so far
	// seen holds the conditions of this patrol, again is true when the patrols
	// before it do not count.
	seen map[string]bool
	anew bool
	// since is how far back an incident's cause goes, as far as the witness
	// patrolled.
	since map[state.IncidentID]state.Time
	// told are the incidents whose mail this decision sends.
	told    map[state.IncidentID]bool
	recheck bool
	names   int // of mail fixed so far
	groups  []roles.Group
}

// do adds a group of actions.
func (d *decision) do(actions ...roles.Action) { d.groups = append(d.groups, actions) }

// ---- patrol ---------------------------------------------------------------

func (d *decision) patrol() {
	d.begin()
	for i := range d.f.Scan.Agents {
		d.agent(&d.f.Scan.Agents[i])
	}
	d.departed()
	d.mayor()
	d.refinery()
	d.disk()
	d.overdue()
	d.tell()
	d.end()
}

// begin finds out whether the previous patrol still counts.
func (d *decision) begin() {
	now, p := d.f.Now, d.f.Policy
	pause := now.Sub(d.s.Patrolled.Time)
	disk := d.f.Scan.Disk
	full := disk.Total > 0 && disk.Free < fullBytes // progress that nobody can write down
	d.anew = d.s.Patrolled.IsZero() || pause < 0 || pause > p.gap() || full
	d.seen = map[string]bool{}
	if !d.anew {
		return
	}
	d.s.Since = now
	clear(d.standing.change())
	for id, w := range d.watches.change() {
		w.From = now
		d.watches.set(id, w)
	}
}

func (d *decision) end() {
	for condition := range d.standing.m {
		if !d.seen[condition] {
			d.standing.remove(condition)
		}
	}
	d.s.Patrolled = d.f.Now
	wait := d.f.Policy.Patrol
	if d.recheck {
		wait = d.f.Policy.confirm()
	}
	d.s.Wake = state.At(d.f.Now.Add(wait))
}

// lasting returns how long a condition was seen on every patrol, and since when.
func (d *decision) lasting(condition string) (time.Duration, state.Time) {
	d.seen[condition] = true
	since, known := d.standing.get(condition)
	if !known {
		since = d.f.Now
		d.standing.set(condition, since)
	}
	return d.f.Now.Sub(since.Time), since
}

// ---- one agent ------------------------------------------------------------

func (d *decision) agent(a *Agent) {
	if _, known := d.lived.get(a.ID); a.Alive && !known {
		d.lived.set(a.ID, true)
	}
	d.settle(a)
	if a.Role == agent.Human || a.Status == agent.Retired {
		d.watches.remove(a.ID)
		return
	}
	if a.Session && a.Corrupt == "" {
		d.session(a)
		return
	}
	w := d.watch(a)
	sight := d.sight(a, w)
	v := Evaluate(sight, d.f.Policy)
	if v.Severity == incident.None {
		d.relieve(a)
		return
	}
	c := concern{agent: a.ID, kind: v.Kind, severity: v.Severity, from: w.From}
	if !sight.Corrupt {
		item := a.Hook.WorkItem
		c.assignment, c.bead, c.session = item.AssignmentID, item.BeadID, item.Session
		c.activity = &a.Hook.LastActivity
	} else {
		c.detail = a.Corrupt
	}
	if a.Alive && (v.Kind == incident.Stalled || v.Kind == incident.NotPickedUp) {
		c.nudgee = a.ID
	}
	d.hold(c)
}

// longHeld is how long a session of a person's own may hold a bead before the person is told.
const longHeld = 24 * time.Hour

// session watches what a person's own session holds. Its silence is no stall, however long the person thinks.
func (d *decision) session(a *Agent) {
	item := a.Hook.WorkItem
	if item == nil || a.Hook.Status == hook.Completed || d.f.Now.Sub(item.AssignedAt.Time) < longHeld {
		return
	}
	d.hold(concern{agent: a.ID, assignment: item.AssignmentID, bead: item.BeadID, session: item.Session, kind: incident.HeldLong,
		severity: incident.Critical, from: item.AssignedAt, detail: fmt.Sprintf("%s has held %s since %s", a.ID, item.BeadID, item.AssignedAt)})
}

// watch follows one hook: since when nothing has moved on it, by the witness's
// own clock and patrols.
func (d *decision) watch(a *Agent) Watch {
	h := &a.Hook
	if a.Corrupt != "" {
		w, _ := d.watches.get(a.ID)
		return w
	}
	if h.Status == hook.Empty {
		d.watches.remove(a.ID)
		return Watch{}
	}
	old, known := d.watches.get(a.ID)
	w := Watch{Assignment: h.Assignment(), Session: h.WorkItem.Session, Status: h.Status, Activity: h.LastActivity}
	same := known && old.Assignment == w.Assignment && old.Session == w.Session && old.Status == w.Status
	switch {
	case a.Asks: // its silence is somebody else's
		w.From, w.Moved = d.f.Now, same
	case same && old.Activity.Equal(w.Activity.Time):
		w.From, w.Moved = old.From, old.Moved
	case w.Activity.After(d.f.Now.Time):
		w.From, w.Moved = d.f.Now, same
	case w.Activity.Before(d.s.Since.Time):
		w.From, w.Moved = d.s.Since, same
	default:
		w.From, w.Moved = w.Activity, same
	}
	if w != old {
		d.watches.set(a.ID, w)
	}
	return w
}

func (d *decision) sight(a *Agent, w Watch) Sight {
	s := Sight{Hook: a.Hook.Status, Stall: a.Stall, Quiet: d.f.Now.Sub(w.From.Time), Starting: !w.Moved}
	if a.Corrupt != "" {
		long, _ := d.lasting("corrupt " + string(a.ID))
		s.Corrupt = d.proven(long, d.f.Policy.confirm())
		s.Hook = hook.Empty
		return s
	}
	if a.Role == agent.Polecat && !a.Alive && (s.Hook == hook.Active || s.Hook == hook.Pending) {
		// Who has not been seen yet may be just starting.
		grace := d.f.Policy.Patrol
		if _, lived := d.lived.get(a.ID); lived {
			grace = d.f.Policy.confirm()
		}
		s.DeadFor, _ = d.lasting("gone " + string(a.ID))
		s.Dead = d.proven(s.DeadFor, grace)
	}
	if item := a.Hook.WorkItem; item != nil {
		if b := d.bead(item.BeadID); b != nil {
			s.Restarts = b.Restarts
		}
	}
	if i := d.find(incident.Key{Agent: a.ID, Assignment: a.Hook.Assignment(), Kind: quietKind(s.Hook)}); i != nil {
		s.Nudges, s.Unanswered, s.Waiting = i.Nudges, i.Nudges-i.Answers, d.waiting(i, w.From)
	}
	return s
}

// proven reports whether something that can pass by itself has lasted; if not
// yet, the next patrol comes early.
func (d *decision) proven(lasted, grace time.Duration) bool {
	if lasted < grace {
		d.recheck = true
	}
	return lasted >= grace
}

// waiting is how long the newest nudge of an incident has been out, as far as
// the witness patrolled.
func (d *decision) waiting(i *incident.Incident, from state.Time) time.Duration {
	if i.LastNudge != nil && i.LastNudge.After(from.Time) && !i.LastNudge.After(d.f.Now.Time) {
		from = *i.LastNudge
	}
	return d.f.Now.Sub(from.Time)
}

// settle closes the incidents of an agent's hook that are over.
func (d *decision) settle(a *Agent) {
	for _, i := range d.of(a.ID) {
		if why := over(i, a); why != "" {
			d.resolve(i, why)
		}
	}
}

// over says why an incident of a hook is over, or "" while it is not.
func over(i incident.Incident, a *Agent) string {
	if !ofHook(i.Kind) {
		return ""
	}
	h := &a.Hook
	switch {
	case a.Status == agent.Retired:
		return "the agent is retired"
	case a.Corrupt != "":
		return "" // nothing is known of it
	case i.Kind == incident.CorruptHook:
		return "the hook can be read again"
	case h.Assignment() != i.AssignmentID, h.Status == hook.Completed, h.Status == hook.Empty:
		return "the hook moved on"
	case i.Kind == incident.ProcessGone && a.Alive:
		return "a process speaks for it again"
	case i.Kind == incident.NotPickedUp && h.Status == hook.Active:
		return "picked up"
	case (i.Kind == incident.Stalled || i.Kind == incident.Restarts) && progressed(i, h.LastActivity):
		return "progress"
	}
	return ""
}

func progressed(i incident.Incident, activity state.Time) bool {
	if i.Activity == nil {
		return activity.After(i.OpenedAt.Time)
	}
	return !activity.Equal(i.Activity.Time)
}

// departed closes the incidents of agents that are registered no more.
func (d *decision) departed() {
	for _, i := range slices.Clone(d.open) {
		if id := i.AgentID; id != d.f.Self && id != d.f.Mayor && id != d.f.Refinery && d.registered(id) == nil {
			d.resolve(i, "the agent is gone")
		}
	}
}

// ---- nudges and mail to the witness ---------------------------------------

// ProgressWord begins the message of a response that shows progress, for
// example "progress: 3 of 5 tests pass". Anything else shows only that
// somebody is there; a touched hook is the better proof.
const ProgressWord = "progress"

func showsProgress(n *nudge.Nudge) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(n.Message)), ProgressWord)
}

func (d *decision) answers() {
	for i := range d.f.Nudges {
		n := &d.f.Nudges[i]
		var g roles.Group
		switch {
		case n.Type == nudge.Response:
			g = d.answer(n)
		case n.RequiresResponse && n.From != d.f.Self:
			g = roles.Group{roles.Answer(n, d.summary(), n.Ref)}
		}
		d.do(append(g, roles.MarkSeen{Nudge: *n})...)
	}
}

// answer finds the incident that a response refers to. One to an earlier
// assignment or incident is stale and changes nothing.
func (d *decision) answer(n *nudge.Nudge) roles.Group {
	for k := range d.open {
		i := &d.open[k]
		if i.AgentID != n.From || i.LastNudge == nil || i.AnsweredAt != nil && !n.Timestamp.After(i.AnsweredAt.Time) {
			continue
		}
		if n.Ref != nil && n.Ref.AssignmentID != i.AssignmentID {
			continue
		}
		if at := n.InReplyTo; at != nil && at.Before(i.OpenedAt.Time) && !at.Equal(i.LastNudge.Time) {
			continue
		}
		g := roles.Group{RecordAnswer{i.ID, n.Timestamp}}
		i.Answers, i.AnsweredAt = min(i.Answers+1, i.Nudges), &n.Timestamp
		if !showsProgress(n) || i.Kind != incident.Stalled {
			return g
		}
		if w, ok := d.watches.get(n.From); ok && w.Assignment == i.AssignmentID {
			w.From, w.Moved = d.f.Now, true
			d.watches.set(n.From, w)
		}
		return append(g, d.resolved(*i, "answered with progress"))
	}
	return nil
}

func (d *decision) letters() {
	for _, e := range d.f.Mail {
		switch {
		case e.RequestsShutdown(d.f.Mayor, d.f.Session):
			d.do(roles.AnswerShutdown(d.f.Self, e, "")...)
		case e.Type == mail.Coordination && e.From == state.Human:
			d.do(d.reply(&e), roles.MarkRead{Entry: e})
		default:
			d.do(roles.MarkRead{Entry: e})
		}
	}
}

// reply answers a message of a person with the health of the rig.
func (d *decision) reply(to *mail.Entry) roles.Send {
	thread := to.Thread
	if thread == "" {
		thread = string(to.Name)
	}
	return roles.Send{Message: mail.Message{To: to.From, Type: mail.Coordination, Subject: "Re: " + to.Subject, Body: d.report(),
		ID: "answer-" + string(to.Name), Thread: thread, InReplyTo: string(to.Name)}}
}

// summary is the witness's own state in one line.
func (d *decision) summary() string {
	return fmt.Sprintf("patrolling, %s open", wording.Count(len(d.open), "incident"))
}
