// Package policy holds the numbers that the roles' processes go by: what a
// definition means for each role's decisions, and how a process paces its ticks. The
// processes of a rig and those of chipset/simulate ask it alike.
package policy

import (
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/agentcli/command"
	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/mayor"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/pause"
)

const (
	// Pacing is the least time between the starts of two ticks. The first change after
	// a pause is handled at once; changes that follow closely, mostly the steps of one
	// sequence, are handled together.
	Pacing = 10 * time.Millisecond
	// mostPacing is the limit to which it grows while each tick ends in a conflict:
	// each may cause a write, which causes the next tick.
	mostPacing = 250 * time.Millisecond
	// firstRetry and mostRetry bound the time after failures in a row.
	firstRetry, mostRetry = 200 * time.Millisecond, 15 * time.Second
	// StartGrace is how long a mayor that has just begun waits for a polecat to
	// come alive before it puts work on the hook of one that is not.
	StartGrace = 2 * time.Second
	// FinishAgain is how long the mayor leaves an agent alone whose attempt could not
	// be finished.
	FinishAgain = time.Minute
	// firstProbe and mostProbe bound the time to the next probe of what is paused, and
	// longestReset what a service may name instead.
	firstProbe, mostProbe = 5 * time.Second, 5 * time.Minute
	// firstProbeOfPerson and mostProbeOfPerson are those where only the person can mend it: each probe is a session that
	// fails, most likely.
	firstProbeOfPerson, mostProbeOfPerson = 5 * time.Minute, time.Hour
	longestReset                          = 8 * 24 * time.Hour
	// maxStopDelay bounds how long a worker that has reported its end may go on, however
	// long the rig's grace is: it only has to print its last lines.
	maxStopDelay = 2 * time.Second
)

// AfterFailures is the time to the next tick after a number of failed ones in a row.
func AfterFailures(n int) time.Duration { return roles.Backoff(firstRetry, mostRetry, n) }

// AfterConflicts is the least time between two ticks after a number of ticks in a row
// that met a conflict.
func AfterConflicts(n int) time.Duration {
	if n == 0 {
		return Pacing
	}
	return roles.Backoff(2*Pacing, mostPacing, n)
}

// Mayor is what a definition means for the mayor.
func Mayor(d *definition.Definition, id, witness state.AgentID) mayor.Policy {
	l := d.GUPP.Limits
	return mayor.Policy{Mayor: id, Witness: witness, MaxParallel: d.Dispatch.MaxParallel, BatchThreshold: d.Dispatch.BatchThreshold,
		AutoClaim: d.Dispatch.Strategy == definition.StrategyAutoClaim, MaxAttempts: l.MaxAttempts, MaxConflicts: l.MaxConflicts,
		MaxRestarts: l.MaxRestarts, RestartCooldown: l.RestartCooldown, ReworkConflicts: d.Merge.OnConflict != definition.OnConflictBlock,
		Client: func(worker string) pause.Scope { return Client(d, worker) }}
}

// Pauses is what a definition means for pauses.
func Pauses(d *definition.Definition) pause.Rules {
	wait := func(k fault.Kind, tries int) time.Duration {
		if k.NeedsPerson() {
			return roles.Backoff(firstProbeOfPerson, mostProbeOfPerson, tries)
		}
		return roles.Backoff(firstProbe, mostProbe, tries)
	}
	return pause.Rules{Wait: wait, Longest: longestReset, Most: d.Dispatch.MaxParallel}
}

// Client is the scope of the client that a bead's worker means in a definition.
func Client(d *definition.Definition, worker string) pause.Scope {
	if worker == "" {
		worker = d.Worker.Default
	}
	preset, err := agentcli.ResolveWorker(worker, clients.PresetsOf(d))
	if err != nil {
		return pause.Client(worker)
	}
	if name := clients.Of(preset).Preset.Name; name != command.Name {
		return pause.Client(name)
	}
	return pause.Client(preset.Command[0])
}

// Clients returns Client of one definition for the many beads of one look: it finds the client of each worker once.
// The function must not be called by several goroutines at once.
func Clients(d *definition.Definition) func(worker string) pause.Scope {
	known := map[string]pause.Scope{}
	return func(worker string) pause.Scope {
		scope, ok := known[worker]
		if !ok {
			scope = Client(d, worker)
			known[worker] = scope
		}
		return scope
	}
}

// Polecat is what a definition means for a polecat. stall is the threshold of its
// worker, 0 for that of the definition.
func Polecat(d *definition.Definition, stall time.Duration) polecat.Policy {
	if stall == 0 {
		stall = d.GUPP.Thresholds.StallDetection
	}
	return polecat.Policy{Touch: polecat.TouchInterval(stall), StopDelay: min(d.Worker.Grace, maxStopDelay), Patience: polecat.Patience(stall),
		Silence: polecat.Silence(stall)}
}

// Refinery is what a definition means for the refinery.
func Refinery(d *definition.Definition, mayor state.AgentID) refinery.Policy {
	m := d.Merge
	return refinery.Policy{MaxWaiting: m.MaxWaiting, Mayor: mayor, Remote: m.Remote != "", Block: m.OnConflict == definition.OnConflictBlock, Batch: m.Batch}
}

// Witness is what a definition means for the witness.
func Witness(d *definition.Definition) witness.Policy {
	t := d.GUPP.Thresholds
	return witness.Policy{Patrol: d.Rig.Patrol, Stall: t.StallDetection, Nudge: t.NudgeInterval, Restart: t.RestartThreshold,
		SlowStart: t.SlowStart, TestTimeout: d.Merge.TestTimeout, MaxRestarts: d.GUPP.Limits.MaxRestarts,
		MaxParallel: d.Dispatch.MaxParallel, MaxWaiting: d.Merge.MaxWaiting}
}
