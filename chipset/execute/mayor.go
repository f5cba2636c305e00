package execute

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/spend"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Mayor runs the mayor.
type Mayor struct {
	base
	state mayor.State
	// backlog is what this process knows of beads and convoys.
	backlog *backlog.Backlog
	// seen is how far the backlog follows the beads.
	seen state.Cursor
	// person archives the mail that the person has read.
	person *inbox
	// started is when this process began.
	started state.Time
	// anyLive is whether some polecat that gets work had a process.
	anyLive bool
	// unfinished are the agents whose pipelines could not be finished, and when that
	// was tried last.
	unfinished map[state.AgentID]state.Time
	// causes are the pauses whose cause was seen, with their tries at that time.
	causes  map[pause.Scope]int
	budgets budgets
	// due is when the next probe of a pause is due, zero when none is awaited.
	due state.Time
}

// NewMayor makes the mayor's runner.
func NewMayor(a Agent) *Mayor {
	return &Mayor{base: newBase(a), person: newInbox(a), state: mayor.Idle, started: a.Now(), backlog: backlog.New(), unfinished: map[state.AgentID]state.Time{},
		causes: map[pause.Scope]int{}}
}

// Folders are those whose changes wake the mayor. The records of pipelines are
// not among them: what matters of their steps shows on beads, hooks and queue.
func (m *Mayor) Folders() []state.Path {
	folders := []state.Path{bead.Dir, hook.Dir, mergequeue.Dir, pause.Dir,
		m.Rig.Mailbox(m.ID).Dir(), m.Rig.Slot(m.ID).Dir().Join("from"), rig.StampDir}
	if !m.Rig.Def.Budget.IsZero() {
		folders = append(folders, spend.Dir)
	}
	return folders
}

// Recover finishes or undoes the dispatches that an earlier process began. One
// that can't be healed keeps the mayor from nothing else: each tick tries again.
func (m *Mayor) Recover(ctx context.Context) error {
	n, err := carry.HealDispatches(ctx, m.Rig)
	if n > 0 {
		m.Say("mayor: healed %d unfinished dispatches", n)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, state.ErrNoTree) {
		m.Say("mayor: %v", err)
		return nil
	}
	return err
}

// Tick runs the one loop.
func (m *Mayor) Tick(ctx context.Context) (Next, error) { return tick(ctx, &m.base, m) }

func (m *Mayor) decide(f mayor.Facts) roles.Decision[mayor.State] { return mayor.Decide(m.state, f) }

func (m *Mayor) adopt(next mayor.State) { m.state = next }

// grace is what is left of it, or 0. A clock that was set back ends it.
func (m *Mayor) grace(now state.Time) time.Duration {
	if since := now.Sub(m.started.Time); since >= 0 {
		return max(0, policy.StartGrace-since)
	}
	return 0
}

// after is when the mayor must look again without news: when a bead has cooled
// down, or its own grace is over.
func (m *Mayor) after() time.Duration {
	now := m.Now()
	var after time.Duration
	if at := m.backlog.NextReady(now); !at.IsZero() {
		after = max(time.Millisecond, at.Sub(now.Time))
	}
	if probe := m.due.Sub(now.Time); probe > 0 && (after == 0 || probe < after) {
		after = probe
	}
	if grace := m.grace(now); grace > 0 && !m.anyLive && (after == 0 || grace < after) {
		after = grace
	}
	return after
}

// fetch reads nudges, hooks, mail, then the rest. Hooks come before beads: a
// bead is always swapped before the hook, so a hook that is read first can only
// be older than the bead, and what looks stale is stale.
func (m *Mayor) fetch(ctx context.Context) (mayor.Facts, error) {
	now := m.Now()
	f := mayor.Facts{Now: now, Policy: policy.Mayor(m.Rig.Def, m.ID, m.Rig.Witness()), Session: m.Session, Starting: m.grace(now) > 0, Backlog: m.backlog}
	var err error
	if f.Nudges, err = m.inbox.nudges(); err != nil {
		return f, err
	}
	if f.Polecats, err = m.polecats(); err != nil {
		return f, err
	}
	m.anyLive = f.AnyLive()
	letters, err := m.inbox.mail(ctx, m.ID)
	if err != nil {
		return f, err
	}
	for _, e := range letters {
		f.Mail = append(f.Mail, mayor.Message{Entry: e, Escalation: escalation(&e.Message)})
	}
	if err := m.person.archive(ctx, m.Rig.Mailbox(state.Human)); err != nil {
		m.Say("%s: can't archive old mail of the person: %v", m.ID, err)
	}
	if f.Unconfirmed, err = m.unconfirmed(); err != nil {
		return f, err
	}
	var damaged []error
	if f.Queue, damaged, err = m.Rig.Queue.Unfinished(); err != nil {
		return f, err
	}
	f.Queue = slices.DeleteFunc(f.Queue, func(r mergequeue.Request) bool { return r.Status != mergequeue.Conflicted })
	m.tellDamage(ctx, damaged)
	beads, err := m.Rig.Beads.Since(m.seen)
	if err != nil {
		return f, err
	}
	m.tellDamage(ctx, beads.Bad)
	m.backlog.Follow(beads)
	m.seen = beads.Next
	convoys, _, err := m.Rig.Convoys.All()
	if err != nil {
		return f, err
	}
	m.backlog.SyncConvoys(convoys)
	if f.Retired, err = m.retired(&f); err != nil {
		return f, err
	}
	err = m.pauses(ctx, &f) // after the ends, which may have begun them
	m.due = f.NextProbe()
	return f, err
}

// tellDamage tells a person once of every bead and merge request that can't be
// read: nothing happens to it until somebody looks.
func (m *Mayor) tellDamage(ctx context.Context, damaged []error) {
	for _, err := range damaged {
		var c *state.Corruption
		if !errors.As(err, &c) || !m.inbox.damaged(c) {
			continue
		}
		err := m.send(ctx, mail.Message{To: state.Human, Type: mail.Coordination, Priority: mail.Urgent,
			Subject: "can't read " + c.Path, ID: wording.Clip("damage-"+c.Path, 150),
			Body: c.Reason + "\n\nNothing happens to it until you look: chipset doctor says more, chipset doctor --fix moves it to quarantine.\n"})
		if err != nil {
			delete(m.inbox.said, c.Path) // tried again by the next tick
		}
	}
}

func (m *Mayor) polecats() ([]mayor.Polecat, error) {
	agents, _, err := m.Rig.Agents.All()
	if err != nil {
		return nil, err
	}
	hooks, _, err := m.Rig.Hooks.All()
	if err != nil {
		return nil, err
	}
	byID := make(map[state.AgentID]hook.Hook, len(hooks))
	for _, h := range hooks {
		byID[h.AgentID] = h
	}
	var polecats []mayor.Polecat
	for _, a := range agents {
		if a.Role != agent.Polecat && !a.IsSession() {
			continue
		}
		h, ok := byID[a.ID]
		polecats = append(polecats, mayor.Polecat{ID: a.ID, Hook: h, Corrupt: !ok,
			Live:    m.Rig.Tree.IsLocked(state.LockAgent, string(a.ID)),
			Retired: a.Status == agent.Retired, Stalled: a.Status == agent.Stalled, Session: a.IsSession()})
	}
	return polecats, nil
}

func (m *Mayor) unconfirmed() ([]dispatch.Record, error) {
	open, _, err := m.Rig.Dispatch.Select(func(r *dispatch.Record) bool { return r.Stage != dispatch.Confirmed })
	return open, err
}

// retired reads the retire records of the assignments that matter now.
func (m *Mayor) retired(f *mayor.Facts) (map[state.AssignmentID]retire.Record, error) {
	want := f.Matters()
	found := make(map[state.AssignmentID]retire.Record, len(want))
	for a := range want {
		rec, err := m.Rig.Retire.GetCached(string(a))
		switch {
		case err == nil:
			found[a] = rec
		case errors.Is(err, state.ErrNotFound), errors.Is(err, state.ErrCorrupt): // doctor names it
		default:
			return nil, err
		}
	}
	return found, nil
}

func escalation(msg *mail.Message) *mayor.Escalation {
	if msg.Type != mail.HealthEscalation || len(msg.Metadata) == 0 {
		return nil
	}
	var e mayor.Escalation
	if json.Unmarshal(msg.Metadata, &e) != nil {
		return nil // a letter of somebody else; the next patrol tells again
	}
	return &e
}
