package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/state"
)

// Stamp describes the process that runs an agent, for people. Only the agent's lock
// proves that the process is alive.
type Stamp struct {
	AgentID   state.AgentID   `json:"agent_id"`
	PID       int             `json:"pid"`
	BootID    string          `json:"boot_id,omitempty"`
	Session   state.SessionID `json:"session"`
	StartedAt state.Time      `json:"started_at"`
}

// ClaimedError is returned by Claim when another process runs the agent.
type ClaimedError struct{ Stamp Stamp }

func (o *ClaimedError) Error() string {
	return fmt.Sprintf("%s is already run by another process (pid %d)", o.Stamp.AgentID, o.Stamp.PID)
}

// Unwrap makes errors.Is(err, state.ErrConflict) true.
func (o *ClaimedError) Unwrap() error { return state.ErrConflict }

// Claim makes this process the one that runs an agent, until the lock is released or the
// process ends in any way. Errors: *ClaimedError.
func (r *Rig) Claim(ctx context.Context, id state.AgentID, session state.SessionID) (*state.Lock, error) {
	// Another process's probe holds the lock for an instant: try again.
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	lock, err := r.Tree.Lock(ctx, state.LockAgent, string(id))
	if errors.Is(err, state.ErrLockTimeout) {
		stamp, _ := r.stamp(id)
		stamp.AgentID = id
		return nil, &ClaimedError{stamp}
	}
	if err != nil {
		return nil, err
	}
	stamp := Stamp{AgentID: id, PID: os.Getpid(), BootID: process.BootID(), Session: session, StartedAt: r.Clock.Now()}
	if err := r.Tree.ReplaceJSON(stampPath(id), stamp); err != nil {
		lock.Unlock()
		return nil, err
	}
	return lock, nil
}

// Substitute calls do in place of an agent that no process runs. Errors: *ClaimedError.
func (r *Rig) Substitute(ctx context.Context, id state.AgentID, session state.SessionID, do func() error) error {
	lock, err := r.Claim(ctx, id, session)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	defer r.Unstamp(id)
	return do()
}

func stampPath(id state.AgentID) state.Path { return state.RunDir.Join("agents", string(id)+".json") }

// Unstamp removes the stamp of an agent whose lock the caller holds and is about to
// release. A stamp that stays behind does no harm.
func (r *Rig) Unstamp(id state.AgentID) { _ = r.Tree.Remove(stampPath(id)) }

// Stamps lists the agents that have a stamp, and foreign files in their folder.
func (r *Rig) Stamps() (agents []state.AgentID, foreign []state.Path, err error) {
	entries, err := r.Tree.List(StampDir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		id, err := state.ParseAgentID(name)
		if !ok || err != nil || !e.Type().IsRegular() {
			foreign = append(foreign, StampDir.Join(e.Name()))
			continue
		}
		agents = append(agents, id)
	}
	return agents, foreign, nil
}

// StampDir is the folder of the stamps; a change there says that a process has
// started or ended.
const StampDir = state.RunDir + "/agents"

func (r *Rig) stamp(id state.AgentID) (Stamp, error) {
	var s Stamp
	err := r.Tree.ReadJSON(stampPath(id), &s)
	return s, err
}

// Alive reports whether a process runs the agent now, and which.
func (r *Rig) Alive(id state.AgentID) (Stamp, bool) {
	if !r.Tree.IsLocked(state.LockAgent, string(id)) {
		return Stamp{AgentID: id}, false
	}
	s, _ := r.stamp(id)
	s.AgentID = id
	return s, true
}

// IsLent reports whether a person has taken over an agent's session.
func (r *Rig) IsLent(id state.AgentID) bool { return r.Tree.IsLocked(state.LockLease, string(id)) }

// WorkerDir holds the exit records of the workers' sessions.
const WorkerDir = state.RunDir + "/workers"

// ExitRecord is the file in which the supervisor of a session's worker records whether
// it runs, and how it ended.
func ExitRecord(s state.SessionID) state.Path { return WorkerDir.Join(string(s) + ".json") }

// WorkerExit reads the exit record of a session's worker with process.ReadExit.
func (r *Rig) WorkerExit(s state.SessionID) (exit process.Exit, found bool, err error) {
	return process.ReadExit(r.Tree.Abs(ExitRecord(s)))
}

// Transcript is the file with what the worker of a session prints.
func Transcript(s state.SessionID) state.Path { return state.LogDir.Join(string(s) + ".log") }
