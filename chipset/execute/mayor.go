package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Mayor runs the mayor.
type Mayor struct {
	Agent
	state mayor.State
	inbox *inbox
	// backlog is what this process knows of beads and convoys.
	backlog *backlog.Backlog
	// seen is how far the backlog follows the beads.
	seen state.Cursor
	// started is when this process began.
	started state.Time
	// told are the damages that were spoken of, so that each is told once.
	told map[string]bool
	// finished is when the pipelines of an agent were last tried to be finished.
	finished map[state.AgentID]state.Time
}

// NewMayor makes the mayor's runner.
func NewMayor(a Agent) *Mayor {
	return &Mayor{Agent: a, state: mayor.Idle, started: a.Now(), inbox: newInbox(a), backlog: backlog.New(), told: map[string]bool{}, finished: map[state.AgentID]state.Time{}}
}

// Folders are those whose changes wake the mayor. The records of pipelines are
// not among them: what matters of their steps shows on beads, hooks and queue.
func (m *Mayor) Folders() []state.Path {
	return []state.Path{bead.Dir, hook.Dir, mergequeue.Dir,
		m.Rig.Mailbox(m.ID).Dir(), m.Rig.Slot(m.ID).Dir().Join("from"), rig.StampDir}
}

// News is nil: the mayor runs nothing.
func (m *Mayor) News() <-chan struct{} { return nil }

// Close has nothing to end.
func (m *Mayor) Close() {}

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

// Tick does fetch, decode, execute, retire once.
func (m *Mayor) Tick(ctx context.Context) (Next, error) {
	f, err := m.fetch(ctx)
	if err != nil {
		return Next{}, err
	}
	next, actions := mayor.Decide(m.state, f)
	m.state = next
	var failed *multierror.Error
	finished := false
	undone := make([]bool, len(actions))
	for i, a := range actions {
		switch a := a.(type) {
		case mayor.Finish:
			finished = true
			continue
		case mayor.MarkRead:
			if slices.Contains(undone[i-a.Effects:i], true) {
				continue // what the message asks for is not durable yet
			}
		}
		err := m.execute(ctx, a)
		switch {
		case err == nil, errors.Is(err, state.ErrConflict):
			// A conflict means that the world moved on after it was fetched: the
			// next tick decides on what it is now.
		case ctx.Err() != nil:
			return Next{}, ctx.Err()
		case errors.Is(err, state.ErrCorrupt):
			// One damaged file must not slow the mayor down for all others.
			undone[i] = true
			m.sayOnce(err)
		default:
			undone[i] = true
			failed = multierror.Append(failed, fmt.Errorf("%T: %w", a, err))
		}
	}
	return Next{After: m.cooldown(f), Finished: finished}, failed.ErrorOrNil()
}

func (m *Mayor) sayOnce(err error) {
	key := err.Error()
	var c *state.Corruption
	if errors.As(err, &c) {
		key = c.Path
	}
	if text := err.Error(); !m.told[key] {
		m.told[key] = true
		m.Say("mayor: %s (chipset doctor tells more)", text)
	}
}

// startGrace is how long a mayor that has just begun waits for a polecat to
// come alive before it hangs work on the hook of one that is not.
const startGrace = 2 * time.Second

// grace is what is left of it, or 0. A clock that was set back ends it.
func (m *Mayor) grace(now state.Time) time.Duration {
	if since := now.Sub(m.started.Time); since >= 0 {
		return max(0, startGrace-since)
	}
	return 0
}

// cooldown is when the mayor must look again without news: when a bead has
// cooled down, or its own grace is over.
func (m *Mayor) cooldown(f mayor.Facts) time.Duration {
	var after time.Duration
	if at := f.Backlog.NextReady(f.Now); !at.IsZero() {
		after = max(time.Millisecond, at.Sub(f.Now.Time))
	}
	if grace := m.grace(f.Now); grace > 0 && !f.AnyLive() && (after == 0 || grace < after) {
		after = grace
	}
	return after
}

// fetch reads nudges, hooks, mail, then the rest. Hooks come before beads: a
// bead is always swapped before the hook, so a hook that is read first can only
// be older than the bead, and what looks stale is stale.
func (m *Mayor) fetch(ctx context.Context) (mayor.Facts, error) {
	now := m.Now()
	f := mayor.Facts{Now: now, Policy: m.policy(), Session: m.Session, Starting: m.grace(now) > 0, Backlog: m.backlog}
	var err error
	if f.Nudges, err = m.inbox.nudges(); err != nil {
		return f, err
	}
	if f.Polecats, err = m.polecats(); err != nil {
		return f, err
	}
	letters, err := m.inbox.mail(ctx, m.ID)
	if err != nil {
		return f, err
	}
	for _, e := range letters {
		f.Mail = append(f.Mail, mayor.Letter{Entry: e, Escalation: escalation(&e.Message)})
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
	f.Retired, err = m.retired(&f)
	return f, err
}

// tellDamage tells a person once of every bead and merge request that can't be
// read: nothing happens to it until somebody looks.
func (m *Mayor) tellDamage(ctx context.Context, damaged []error) {
	for _, err := range damaged {
		var c *state.Corruption
		if !errors.As(err, &c) || m.told[c.Path] {
			continue
		}
		m.told[c.Path] = true
		m.Say("mayor: can't read %s: %s", c.Path, c.Reason)
		m.Rig.Emit(event.Event{Type: "warning", Agent: m.ID, Subject: c.Path, Text: c.Reason})
		_, err := m.Rig.Send(ctx, mail.Message{From: m.ID, To: state.Human, Type: mail.Coordination, Priority: mail.Urgent,
			Subject: clipText(firstLine("can't read "+c.Path), 300), ID: clipText("damage-"+c.Path, 150),
			Body: c.Reason + "\n\nNothing happens to it until you look: chipset doctor says more, chipset doctor --fix moves it to quarantine.\n"})
		if err != nil {
			m.told[c.Path] = false // tried again by the next tick
		}
	}
}

func (m *Mayor) policy() mayor.Policy {
	d := m.Rig.Def
	return mayor.Policy{Mayor: m.ID, Witness: m.Rig.Witness(), MaxParallel: d.Dispatch.MaxParallel, BatchThreshold: d.Dispatch.BatchThreshold,
		AutoClaim: d.Dispatch.Strategy == definition.StrategyAutoClaim, MaxAttempts: d.GUPP.Limits.MaxAttempts,
		MaxConflicts: d.GUPP.Limits.MaxConflicts, MaxRestarts: d.GUPP.Limits.MaxRestarts,
		RestartCooldown: d.GUPP.Limits.RestartCooldown, ReworkConflicts: d.Merge.OnConflict != definition.OnConflictBlock}
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
		if a.Role != agent.Polecat {
			continue
		}
		h, ok := byID[a.ID]
		polecats = append(polecats, mayor.Polecat{ID: a.ID, Hook: h, Corrupt: !ok,
			Live:    m.Rig.Tree.IsLocked(state.LockAgent, string(a.ID)),
			Retired: a.Status == agent.Retired, Stalled: a.Status == agent.Stalled})
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
