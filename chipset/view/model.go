package view

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/permission"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/spend"
)

// View is a rig at one moment. It shares memory with the views before and after it:
// treat it as read-only. Many goroutines may read it.
type View struct {
	Status
	// Work is every bead with its place in the graph.
	Work Work
	// Story are the last events of the rig, oldest first.
	Story []event.Event
	Spend Spend
}

// Parts is a set of parts of a view, such as those that differ from the view before.
type Parts uint

// The parts of a view.
const (
	// NeedsPart is Needs.
	NeedsPart Parts = 1 << iota
	// AgentsPart is Agents.
	AgentsPart
	// WorkPart is Work, with Beads, Ready and Blocked.
	WorkPart
	// QueuePart is Queue.
	QueuePart
	// ConvoysPart is Convoys.
	ConvoysPart
	// MailPart is Mail and Overdue.
	MailPart
	// StoryPart is Story.
	StoryPart
	// SpendPart is Spend and Spent.
	SpendPart
	// HealthPart is Incidents, Pauses, Warnings, and the surroundings of the rig.
	HealthPart

	// AllParts is every part.
	AllParts = HealthPart<<1 - 1
)

// Has reports whether the set contains any of some parts.
func (p Parts) Has(any Parts) bool { return p&any != 0 }

// Model keeps a View of a rig up to date. The cost of an update grows with what has
// changed, and with the number of agents, not with the beads, the mail or the events of
// the rig. Only one goroutine at a time may use it; any number may use its views.
type Model struct {
	r *rig.Rig
	// outline is true in a model of one moment that has only outlines of beads.
	outline bool

	at         state.Time
	agents     table[agent.Agent]
	hooks      table[hook.Hook]
	beads      table[bead.Bead]
	requests   table[mergequeue.Request]
	convoys    table[convoy.Convoy]
	dispatches table[dispatch.Record]
	ends       table[retire.Record]
	incidents  table[incident.Incident]
	pauses     table[pause.Pause]
	rules      table[permission.Rule]
	spent      table[spend.Record]

	spend spendIndex
	work  workIndex
	// live are the merge requests that have not ended.
	live       map[state.MergeID]*mergequeue.Request
	unreadable []error
	alive      map[state.AgentID]rig.Stamp
	// lent are the agents whose session a person has taken over.
	lent     map[state.AgentID]bool
	boxes    map[state.AgentID]*box
	progress progressFiles
	awaited  state.Follower
	stamps   state.Follower
	watcher  *state.Watcher
	// changed signals changes in watched folders.
	changed <-chan struct{}
	watched int

	questions   []actor.Question
	questionErr error
	around      surroundings
	story       story

	view View
	// probed is when processes were last looked for, looked when the surroundings were,
	// on the monotonic clock.
	probed, looked time.Time
}

const (
	// probeInterval is how often the model looks for processes that have ended silently.
	probeInterval = time.Second
	// surroundingsInterval is how often the model looks at git, the disk and the
	// quarantine when nothing has changed.
	surroundingsInterval = 10 * time.Second
)

// NewModel makes a model that is kept up to date with Update. The watcher may be nil; then
// every update looks at all folders.
func NewModel(r *rig.Rig, w *state.Watcher) *Model {
	follow := func(dir state.Path) state.Follower { return state.NewFollower(r.Tree, dir, w) }
	return &Model{r: r, watcher: w, work: newWorkIndex(), live: map[state.MergeID]*mergequeue.Request{}, boxes: map[state.AgentID]*box{},
		agents:     newTable(r.Agents.Since, func(a *agent.Agent) string { return string(a.ID) }),
		hooks:      newTable(r.Hooks.Since, func(h *hook.Hook) string { return string(h.AgentID) }),
		beads:      newTable(r.Beads.Since, func(b *bead.Bead) string { return string(b.ID) }),
		requests:   newTable(r.Queue.Since, func(q *mergequeue.Request) string { return string(q.ID) }),
		convoys:    newTable(r.Convoys.Since, func(c *convoy.Convoy) string { return string(c.ID) }),
		dispatches: newTable(r.Dispatch.Since, func(d *dispatch.Record) string { return string(d.BeadID) }),
		ends:       newTable(r.Retire.Since, func(e *retire.Record) string { return string(e.AssignmentID) }),
		incidents:  newTable(r.Incidents.Since, func(i *incident.Incident) string { return string(i.ID) }),
		pauses:     newTable(r.Pauses.Since, func(p *pause.Pause) string { return p.Scope.File() }),
		rules:      newTable(r.Permissions.Since, func(p *permission.Rule) string { return p.ID }),
		spent:      newTable(r.Spend.Since, func(s *spend.Record) string { return string(s.AssignmentID) }),
		spend:      newSpendIndex(),
		progress:   progressFiles{follow: follow(agentcli.ProgressDir), known: map[state.SessionID]*agentcli.Progress{}},
		awaited:    follow(actor.AwaitedDir), stamps: follow(rig.StampDir),
		story: story{log: r.Events, follow: follow(event.Dir)}}
}

// modelOf makes a model of one moment, without Story and Work. outline says that the
// records hold only outlines of beads.
func modelOf(r *rig.Rig, rec *rig.Records, outline bool) *Model {
	m := NewModel(r, nil)
	m.outline, m.at, m.alive, m.unreadable = outline, rec.At, rec.Alive, rec.Unreadable
	m.agents.fill(rec.Agents)
	m.beads.fill(rec.Beads)
	m.requests.fill(rec.Queue)
	m.convoys.fill(rec.Convoys)
	m.incidents.fill(rec.Incidents)
	m.pauses.fill(rec.Pauses)
	if _, _, err := m.rules.update(); err != nil {
		m.unreadable = append(m.unreadable, err)
	}
	for id, h := range rec.Hooks {
		m.hooks.rows[string(id)] = h
	}
	m.lent = leased(r, m.hooks.rows)
	now := make(map[state.BeadID]*bead.Bead, len(rec.Beads))
	for i := range rec.Beads {
		now[rec.Beads[i].ID] = &rec.Beads[i]
	}
	m.work.convoys.put(m.convoys.rows, nil)
	m.work.put(now)
	m.followRequests(slices.Collect(maps.Keys(m.requests.rows)))
	return m
}

// glance is a model of this moment.
func glance(ctx context.Context, r *rig.Rig) (*Model, error) {
	rec, err := r.ReadOutline(ctx)
	if err != nil {
		return nil, err
	}
	return modelOf(r, rec, true), nil
}

// Changed returns a channel that gets a signal after a change that may change the view;
// it holds at most one. Call it before each wait, because a new agent adds a mailbox to
// watch. It is nil without a watcher, and may miss changes where the system refuses to
// watch.
func (m *Model) Changed() <-chan struct{} {
	if m.watcher == nil {
		return nil
	}
	if dirs := m.folders(); len(dirs) != m.watched {
		m.watched = len(dirs)
		m.changed, _ = m.watcher.Subscribe(dirs...) // callers also look now and then
	}
	return m.changed
}

// folders returns the folders whose changes may change the view.
func (m *Model) folders() []state.Path {
	dirs := []state.Path{agent.Dir, hook.Dir, bead.Dir, mergequeue.Dir, convoy.Dir, retire.Dir, incident.Dir, pause.Dir, permission.Dir, spend.Dir, event.Dir,
		agentcli.ProgressDir, actor.AwaitedDir, rig.StampDir, m.r.Mailbox(state.Human).Dir()}
	for id := range m.boxes {
		if id != state.Human {
			dirs = append(dirs, m.r.Mailbox(id).Dir())
		}
	}
	return dirs
}

// View returns the view of the last update.
func (m *Model) View() *View { v := m.view; return &v }

// Update brings the view up to date, and returns which of its parts have changed; the
// first time all of them. A file that can't be read is a warning of the view; a folder
// that can't be read is an error, and the rest of the view is still good.
func (m *Model) Update(ctx context.Context) (*View, Parts, error) {
	first := m.at.IsZero()
	m.at = m.r.Clock.Now()
	changed, err := m.follow(ctx, first)
	if !changed && !first && m.work.ready(m.at) == m.view.Ready {
		return m.View(), 0, err
	}
	status, statusErr := m.status(ctx)
	err = errors.Join(err, statusErr)
	before := m.view
	m.view = View{Status: *status, Work: before.Work, Story: m.story.last, Spend: m.spend.spend(status.Agents)}
	if len(m.work.touched) > 0 {
		m.view.Work = m.work.apply(before.Work)
	}
	if first {
		return m.View(), AllParts, err
	}
	return m.View(), m.view.parts(&before), err
}

// parts returns the parts in which two views differ.
func (v *View) parts(before *View) Parts {
	var p Parts
	differ := func(part Parts, a, b any) {
		if !reflect.DeepEqual(a, b) {
			p |= part
		}
	}
	differ(NeedsPart, v.Needs, before.Needs)
	differ(AgentsPart, v.Agents, before.Agents)
	differ(QueuePart, v.Queue, before.Queue)
	differ(ConvoysPart, v.Convoys, before.Convoys)
	differ(MailPart, v.Mail, before.Mail)
	differ(MailPart, v.Overdue, before.Overdue)
	differ(SpendPart, v.Spend, before.Spend)
	differ(SpendPart, v.Spent, before.Spent)
	differ(HealthPart, v.head(), before.head())
	// A change of an item makes a new Work.
	if v.Ready != before.Ready || len(v.Work) != len(before.Work) || len(v.Work) > 0 && &v.Work[0] != &before.Work[0] {
		p |= WorkPart
	}
	if len(v.Story) != len(before.Story) || len(v.Story) > 0 && v.Story[len(v.Story)-1].Time != before.Story[len(v.Story)-1].Time {
		p |= StoryPart
	}
	return p
}

// head returns what HealthPart covers.
func (s *Status) head() any {
	return []any{s.Rig, s.Target, s.Tip, s.Test, s.Sandbox, s.Incidents, s.Pauses, s.Warnings}
}

// follow reads what has changed, and reports whether anything has.
func (m *Model) follow(ctx context.Context, first bool) (bool, error) {
	var failed []error
	changed := false
	note := func(is bool, err error) bool {
		changed = changed || is
		failed = append(failed, err)
		return is
	}
	beads, anyBead, err := m.beads.update()
	note(anyBead, err)
	requests, anyRequest, err := m.requests.update()
	note(anyRequest, err)
	m.followRequests(requests)
	_, anyEnd, err := m.ends.update()
	note(anyEnd, err)
	_, anyAgent, err := m.agents.update()
	note(anyAgent, err)
	_, anyConvoy, err := m.convoys.update()
	note(anyConvoy, err)
	for _, update := range []func() ([]string, bool, error){m.dispatches.update, m.incidents.update, m.pauses.update, m.rules.update} {
		_, any, err := update()
		note(any, err)
	}
	spent, anySpent, err := m.spent.update()
	note(anySpent, err)
	for _, name := range spent {
		m.spend.put(name, m.spent.rows[name])
	}
	_, anyHook, err := m.hooks.update()
	note(anyHook, err)
	if anyConvoy {
		m.work.convoys.put(m.convoys.rows, m.work.beads)
	}
	m.followBeads(beads)
	m.unreadable = slices.Concat(m.beads.bad, m.requests.bad, m.ends.bad, m.agents.bad, m.convoys.bad, m.dispatches.bad, m.incidents.bad, m.pauses.bad, m.rules.bad, m.spent.bad, m.hooks.bad)
	note(m.probe(first || anyAgent || anyHook))
	mails := note(m.followMail())
	note(m.progress.update(m.r.Tree, m.hooks.rows))
	awaited, err := stirred(&m.awaited)
	note(awaited, err)
	if first || mails || awaited || anyHook || anyEnd {
		m.ask()
	}
	note(m.story.update())
	now := time.Now() //nolint:forbidigo // paces looks, decides nothing
	if first || anyRequest || now.Sub(m.looked) >= surroundingsInterval {
		m.looked = now
		m.around = look(ctx, m.r)
		note(true, nil) // tasks become overdue without a change
	}
	return changed, errors.Join(failed...)
}

func (m *Model) followBeads(changed []string) {
	if len(changed) == 0 {
		return
	}
	now := make(map[state.BeadID]*bead.Bead, len(changed))
	for _, name := range changed {
		now[state.BeadID(name)] = m.beads.rows[name]
	}
	m.work.put(now)
}

// leased returns the agents whose session a person has taken over.
func leased(r *rig.Rig, hooks map[string]*hook.Hook) map[state.AgentID]bool {
	lent := map[state.AgentID]bool{}
	for _, h := range hooks {
		if h.WorkItem != nil && h.WorkItem.Lease != nil && r.IsLent(h.AgentID) {
			lent[h.AgentID] = true
		}
	}
	return lent
}

// stirred reports whether a folder may have changed.
func stirred(f *state.Follower) (bool, error) {
	c, err := f.Next()
	return c.Rescan || len(c.Names) > 0, err
}

// probe finds the agents that are alive, if it must or it is time.
func (m *Model) probe(must bool) (bool, error) {
	come, err := stirred(&m.stamps)
	now := time.Now() //nolint:forbidigo // paces looks, decides nothing
	if !must && !come && now.Sub(m.probed) < probeInterval {
		return false, err
	}
	m.probed = now
	alive := map[state.AgentID]rig.Stamp{}
	for name := range m.agents.rows {
		if stamp, yes := m.r.Alive(state.AgentID(name)); yes {
			alive[state.AgentID(name)] = stamp
		}
	}
	lent := leased(m.r, m.hooks.rows)
	same := reflect.DeepEqual(alive, m.alive) && maps.Equal(lent, m.lent)
	m.alive, m.lent = alive, lent
	return !same, err
}

// ask finds the open questions again.
func (m *Model) ask() {
	hooks := make(map[state.AgentID]*hook.Hook, len(m.hooks.rows))
	for name, h := range m.hooks.rows {
		hooks[state.AgentID(name)] = h
	}
	m.questions, m.questionErr = actor.AllOpenQuestions(m.r, hooks)
}

func (m *Model) followRequests(changed []string) {
	for _, name := range changed {
		delete(m.live, state.MergeID(name))
		if q := m.requests.rows[name]; q != nil && q.Status.Live() {
			m.live[q.ID] = q
		}
	}
}

// queue returns the merge requests that have not ended, in their order.
func (m *Model) queue() []mergequeue.Request {
	live := make([]mergequeue.Request, 0, len(m.live))
	for _, q := range m.live {
		live = append(live, *q)
	}
	mergequeue.InOrder(live)
	return live
}

// inForce returns the pauses in force, by scope.
func (m *Model) inForce() []pause.Pause {
	return slices.DeleteFunc(m.pauses.sorted(), func(p pause.Pause) bool { return !p.InForce() })
}
