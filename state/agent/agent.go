// Package agent stores the agents of a rig: state/agents/{agent}.json.
package agent

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// Role is the role of an agent.
type Role string

// Roles of a rig. Crew and human have a mailbox and a hook, but no process.
const (
	Mayor    Role = "mayor"
	Polecat  Role = "polecat"
	Refinery Role = "refinery"
	Witness  Role = "witness"
	Crew     Role = "crew"
	Human    Role = "human"
)

// Status is the life-cycle status of an agent.
type Status string

const (
	// Idle: registered, nothing to do; ends with work or with the process.
	Idle Status = "idle"
	// Active: at work; ends when the work is retired.
	Active Status = "active"
	// Stalled: the witness has an open incident for it; ends with progress or a restart.
	Stalled Status = "stalled"
	// Terminated: its session is over; ends with the next session.
	Terminated Status = "terminated"
	// Retired: removed from the definition, gets no work and no mail; ends when it is added again.
	Retired Status = "retired"
)

// Agent is the identity of one agent.
type Agent struct {
	ID     state.AgentID `json:"id"`
	Role   Role          `json:"role"`
	Rig    string        `json:"rig"`
	Status Status        `json:"status"`
	// Session is that of the latest role process of the agent. A shutdown_request names
	// it.
	Session state.SessionID `json:"session,omitempty"`
	Skills  []string        `json:"skills,omitempty"`
	// Parent is the agent that spawned this one as its helper, or "".
	Parent state.AgentID `json:"parent,omitempty"`
	// Client is set if the agent stands for a person's own sessions of a client, to the
	// name of the client.
	Client string `json:"client,omitempty"`

	// The card: how other agents may use this one.

	// Description is one sentence for agents that look for help.
	Description string `json:"description,omitempty"`
	// Capabilities are words for what it can do.
	Capabilities []string `json:"capabilities,omitempty"`
	// AllowFrom are the agents that may send mail to it, besides the person and the
	// rig's own roles. If it is empty or contains "*", all agents may.
	AllowFrom []string `json:"allow_from,omitempty"`
	// MaxTasks is how many tasks it may have accepted and not finished; 0 means no limit.
	MaxTasks int `json:"max_concurrent_tasks,omitempty"`

	CreatedAt state.Time `json:"created_at"`
	UpdatedAt state.Time `json:"updated_at"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (a *Agent) UnmarshalJSON(b []byte) error {
	type plain Agent
	return state.UnmarshalWithExtra(b, (*plain)(a), &a.Extra)
}

// MarshalJSON writes unknown fields back.
func (a Agent) MarshalJSON() ([]byte, error) {
	type plain Agent
	return state.MarshalWithExtra(plain(a), a.Extra)
}

// Accepts reports whether the agent's card accepts mail from another agent. Mail from the
// person and from itself is always accepted.
func (a *Agent) Accepts(from state.AgentID) bool {
	return len(a.AllowFrom) == 0 || from == state.Human || from == a.ID ||
		slices.Contains(a.AllowFrom, "*") || slices.Contains(a.AllowFrom, string(from))
}

// IsSession reports whether the agent stands for a person's own sessions of a client: it
// may hold a bead, but the rig starts no worker for it.
func (a *Agent) IsSession() bool { return a.Client != "" }

// Limits of a card, in bytes and in entries.
const (
	MaxDescription = 500
	MaxWords       = 50
	MaxWord        = 64
)

// CheckCard returns an error unless the card may be stored.
func (a *Agent) CheckCard() error {
	if len(a.Description) > MaxDescription || len(a.Capabilities) > MaxWords || len(a.AllowFrom) > MaxWords {
		return fmt.Errorf("the card is too long: a description of %d bytes, %d capabilities, %d allow_from at most", MaxDescription, MaxWords, MaxWords)
	}
	for _, c := range a.Capabilities {
		if c == "" || len(c) > MaxWord {
			return fmt.Errorf("capability %q: 1 to %d bytes", c, MaxWord)
		}
	}
	for _, from := range a.AllowFrom {
		if from == "*" {
			continue
		}
		if _, err := state.ParseAgentID(from); err != nil {
			return fmt.Errorf("allow_from: %w", err)
		}
	}
	if a.MaxTasks < 0 {
		return fmt.Errorf("max_concurrent_tasks %d is negative", a.MaxTasks)
	}
	return nil
}

// Dir is the folder of the identities.
const Dir = state.StateDir + "/agents"

// Store is state/agents/.
type Store struct {
	*state.Store[Agent]
	log *event.Log
}

// NewStore opens the agents of a tree. It logs which agents are registered, started,
// stopped and retired, and changes of cards; log may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{state.NewStore(t, Dir, "agent", state.LockAgentRecord, check), log}
}

func check(name string, a *Agent) error {
	if string(a.ID) != name {
		return fmt.Errorf("id %q contradicts the file's name", a.ID)
	}
	switch a.Role {
	case Mayor, Polecat, Refinery, Witness, Crew, Human:
	default:
		return fmt.Errorf("unknown role %q", a.Role)
	}
	switch a.Status {
	case Idle, Active, Stalled, Terminated, Retired:
	default:
		return fmt.Errorf("unknown status %q", a.Status)
	}
	return a.CheckCard()
}

// Register adds an agent, or revives a retired one. Of any other existing agent with this
// role only the rig's name is updated. It reports whether anything changed. Durable when
// it returns nil.
func (s Store) Register(ctx context.Context, id state.AgentID, role Role, rig string, skills []string, now state.Time) (bool, error) {
	changed := false
	_, err := s.Upsert(ctx, string(id), func(a *Agent, found bool) error {
		if found && a.Status != Retired && a.Role == role {
			if a.Rig == rig {
				return state.ErrUnchanged
			}
			a.Rig, a.UpdatedAt, changed = rig, now, true
			return nil
		}
		if !found {
			*a = Agent{ID: id, CreatedAt: now}
		}
		a.Role, a.Rig, a.Skills, a.Status, a.UpdatedAt = role, rig, skills, Idle, now
		changed = true
		return nil
	})
	if err == nil && changed {
		s.log.Tell(event.AgentRegistered(id, string(role)))
	}
	return changed, err
}

// Adopt registers a helper that an agent has spawned, or revives it. Durable when it
// returns nil. Errors: ErrConflict if id is not a helper of parent.
func (s Store) Adopt(ctx context.Context, id, parent state.AgentID, rig string, now state.Time) error {
	isNew := false
	_, err := s.Upsert(ctx, string(id), func(a *Agent, found bool) error {
		if found && a.Parent != parent {
			return state.Conflictf("agent "+string(id), "is not a helper of %s", parent)
		}
		if isNew = !found; isNew {
			*a = Agent{ID: id, Role: Crew, Rig: rig, Parent: parent, CreatedAt: now}
		}
		if found && a.Status == Active {
			return state.ErrUnchanged
		}
		a.Rig, a.Status, a.UpdatedAt = rig, Active, now
		return nil
	})
	if err == nil && isNew {
		s.log.Tell(event.AgentRegistered(id, string(Crew)))
	}
	return err
}

// SetClient records that the agent stands for a person's own sessions of a client, unless it does so already. Durable
// when it returns nil.
func (s Store) SetClient(ctx context.Context, id state.AgentID, client string, now state.Time) error {
	_, err := s.Update(ctx, string(id), func(a *Agent) error {
		if a.IsSession() {
			return state.ErrUnchanged
		}
		a.Client, a.UpdatedAt = client, now
		return nil
	})
	return err
}

// SetStatus records a life-cycle step. It writes nothing if the status is the same.
// Durable when it returns nil.
func (s Store) SetStatus(ctx context.Context, id state.AgentID, st Status, now state.Time) error {
	_, err := s.Update(ctx, string(id), func(a *Agent) error {
		if a.Status == st {
			return state.ErrUnchanged
		}
		a.Status, a.UpdatedAt = st, now
		return nil
	})
	return err
}

// Begin records that this process runs the agent from now on.
func (s Store) Begin(ctx context.Context, id state.AgentID, session state.SessionID, now state.Time) error {
	_, err := s.Update(ctx, string(id), func(a *Agent) error {
		a.Session, a.Status, a.UpdatedAt = session, Idle, now
		return nil
	})
	if err == nil {
		s.log.Tell(event.AgentStarted(id, session, os.Getpid()))
	}
	return err
}

// End records that the process of a session no longer runs the agent. The end is logged
// even if the status could not be written.
func (s Store) End(ctx context.Context, id state.AgentID, session state.SessionID, now state.Time) error {
	_, err := s.Update(ctx, string(id), func(a *Agent) error {
		if a.Status == Retired || a.Status == Terminated {
			return state.ErrUnchanged
		}
		a.Status, a.UpdatedAt = Terminated, now
		return nil
	})
	s.log.Tell(event.AgentStopped(id, session))
	return err
}

// Retire removes an agent from the rig: it gets no more work and no more mail.
// Durable when it returns nil.
func (s Store) Retire(ctx context.Context, id state.AgentID, why string, now state.Time) error {
	err := s.SetStatus(ctx, id, Retired, now)
	if err == nil {
		s.log.Tell(event.AgentRetired(id, why))
	}
	return err
}

// ChangeCard changes an agent's card. Durable when it returns nil.
func (s Store) ChangeCard(ctx context.Context, by, id state.AgentID, change func(a *Agent) error) (Agent, error) {
	a, err := s.Update(ctx, string(id), change)
	if err == nil {
		s.log.Tell(event.CardChanged(by, id))
	}
	return a, err
}
