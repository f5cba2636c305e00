package witness

import (
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state/incident"
)

// Sight is everything that the evaluation of one agent depends on.
type Sight struct {
	// Hook is where its hook stands; Corrupt is true when nobody can tell.
	Hook    hook.Status
	Corrupt bool
	// Dead is true when the agent should have a process and liveness proves that
	// it has none; DeadFor is how long.
	Dead    bool
	DeadFor time.Duration
	// Quiet is how long the hook showed no progress while the witness patrolled.
	Quiet time.Duration
	// Starting is true until the session has shown its first progress.
	Starting bool
	// Stall is the threshold of the agent's worker, 0 for the rig's own.
	Stall time.Duration
	// Restarts counts the stalled workers of its bead that were replaced.
	Restarts int
	// Nudges were sent, Unanswered of them had no answer, and the newest is
	// Waiting old.
	Nudges, Unanswered int
	Waiting            time.Duration
}

// Verdict is the outcome of an evaluation.
type Verdict struct {
	Kind     incident.Kind
	Severity incident.Severity
}

// Evaluate says what is wrong with one agent, and how badly. S is the stall
// threshold of its worker, with the slow-start grace while it is starting; N
// the nudge interval; R the restart threshold, moved as S was moved.
//
//	hook                 condition                          kind           severity
//	can't be read        -                                  corrupt_hook   critical
//	empty, completed     -                                  -              none
//	active               process dead                       process_gone   alert
//	active               process dead longer than R         process_gone   critical
//	pending              quiet > S, process dead            not_picked_up  alert, critical after R
//	active               quiet > S, bead at its restarts    restart_limit  critical
//	active, pending      quiet > S                          stalled,       warning
//	                     … newest nudge older than N        not_picked_up  alert
//	                     … and two nudges unanswered                       critical
//	                     … quiet > R                                       critical
//	active, pending      quiet ≤ S                          -              none
func Evaluate(s Sight, p Policy) Verdict {
	stall, restart := p.thresholds(s)
	switch {
	case s.Corrupt:
		return Verdict{incident.CorruptHook, incident.Critical}
	case s.Hook != hook.Active && s.Hook != hook.Pending:
		return Verdict{}
	case s.Hook == hook.Active && s.Dead && s.DeadFor > restart:
		return Verdict{incident.ProcessGone, incident.Critical}
	case s.Hook == hook.Active && s.Dead:
		return Verdict{incident.ProcessGone, incident.Alert}
	case s.Quiet <= stall:
		return Verdict{}
	case s.Hook == hook.Pending && s.Dead && s.Quiet <= restart:
		return Verdict{incident.NotPickedUp, incident.Alert}
	case s.Hook == hook.Active && s.Restarts > 0 && s.Restarts >= p.MaxRestarts:
		return Verdict{incident.Restarts, incident.Critical}
	}
	return Verdict{quietKind(s.Hook), ladder(s, stall, restart, p.Nudge)}
}

// quietKind is what silence is called in each status of a hook.
func quietKind(status hook.Status) incident.Kind {
	if status == hook.Pending {
		return incident.NotPickedUp
	}
	return incident.Stalled
}

// ladder is the way from silence to a restart.
func ladder(s Sight, stall, restart, nudge time.Duration) incident.Severity {
	due := s.Nudges > 0 && s.Waiting >= nudge
	switch {
	case s.Quiet <= stall:
		return incident.None
	case s.Quiet > restart, due && s.Unanswered >= 2:
		return incident.Critical
	case due:
		return incident.Alert
	}
	return incident.Warning
}

// thresholds moves the rig's own by what the worker and a slow start need, so
// that the steps between them stay as long as they are.
func (p Policy) thresholds(s Sight) (stall, restart time.Duration) {
	stall = p.Stall
	if s.Stall > 0 {
		stall = s.Stall
	}
	if s.Starting && s.Hook == hook.Active {
		stall += p.SlowStart
	}
	return stall, p.Restart + stall - p.Stall
}
