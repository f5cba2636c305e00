// Package agent keeps who belongs to a rig: state/agents/{agent}.json.
package agent

import (
	"context"

	"fmt"

	"github.com/gastown-chipset/chipset/state"
)

// Role is what an agent is for.
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
	// Active: it works; ends when the work is retired.
	Active Status = "active"
	// Stalled: the witness holds an incident open for it; ends with progress or a restart.
	Stalled Status = "stalled"
	// Terminated: its session is over; ends with the next session.
	Terminated Status = "terminated"
	// Retired: taken out of the definition, gets no work and no mail; ends when it is named again.
	Retired Status = "retired"
)

// Agent is the identity of one agent.
type Agent struct {
	ID     state.AgentID `json:"id"`
	Role   Role          `json:"role"`
	Rig    string        `json:"rig"`
	Status Status        `json:"status"`
	// Session is the latest role process that spoke for this agent; a
	// shutdown_request names it.
	Session   state.SessionID `json:"session,omitempty"`
	Skills    []string        `json:"skills,omitempty"`
	CreatedAt state.Time      `json:"created_at"`
	UpdatedAt state.Time      `json:"updated_at"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (a *Agent) UnmarshalJSON(b []byte) error {
	type plain Agent
	return state.UnmarshalKeeping(b, (*plain)(a), &a.Extra)
}

// MarshalJSON writes unknown fields back.
func (a Agent) MarshalJSON() ([]byte, error) {
	type plain Agent
	return state.MarshalKeeping(plain(a), a.Extra)
}

// Dir is the folder of the identities.
const Dir = state.StateDir + "/agents"

// Store is state/agents/.
type Store struct{ *state.Store[Agent] }

// NewStore opens the identities of a tree.
func NewStore(t *state.Tree) Store {
	return Store{state.NewStore(t, Dir, "agent", state.LockAgentRecord, check)}
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
	return nil
}

// Register makes an identity, or revives a retired one; what exists otherwise
// stays. It reports whether anything changed. Durable when it returns nil.
func (s Store) Register(ctx context.Context, id state.AgentID, role Role, rig string, skills []string, now state.Time) (bool, error) {
	changed := false
	_, err := s.Upsert(ctx, string(id), func(a *Agent, found bool) error {
		if found && a.Status != Retired && a.Role == role {
			return state.ErrUnchanged
		}
		if !found {
			*a = Agent{ID: id, CreatedAt: now}
		}
		a.Role, a.Rig, a.Skills, a.Status, a.UpdatedAt = role, rig, skills, Idle, now
		changed = true
		return nil
	})
	return changed, err
}

// SetStatus records a life-cycle step; no write when nothing changes.
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

// Begin records that a new role process speaks for the agent.
func (s Store) Begin(ctx context.Context, id state.AgentID, session state.SessionID, now state.Time) error {
	_, err := s.Update(ctx, string(id), func(a *Agent) error {
		a.Session, a.Status, a.UpdatedAt = session, Idle, now
		return nil
	})
	return err
}
