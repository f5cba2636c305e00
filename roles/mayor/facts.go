package mayor

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/convoy"
	"github.com/gastown-chipset/chipset/state/dispatch"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
)

// Policy is what the definition says.
type Policy struct {
	Mayor state.AgentID
	// Witness is the one whose escalations count, beside the person's.
	Witness        state.AgentID
	MaxParallel    int
	BatchThreshold int
	// AutoClaim is pull mode: idle polecats claim work themselves.
	AutoClaim       bool
	MaxAttempts     int
	MaxConflicts    int
	MaxRestarts     int
	RestartCooldown time.Duration
	// ReworkConflicts is on_conflict: rework; otherwise a person decides.
	ReworkConflicts bool
}

// Polecat is one worker agent as the mayor sees it.
type Polecat struct {
	ID   state.AgentID
	Hook hook.Hook
	// Corrupt is true when the hook can't be read: nothing is slung there.
	Corrupt bool
	// Live is true when a process speaks for it; Retired when the definition no
	// longer names it; Stalled while the witness holds an incident open for it.
	Live, Retired, Stalled bool
}

func (p *Polecat) free() bool { return !p.Corrupt && !p.Retired && p.Hook.Status == hook.Empty }

// Escalation is what a health_escalation of the witness says.
type Escalation struct {
	Kind      string `json:"kind"`
	Severity  string `json:"severity"`
	Recommend string `json:"recommend"`
}

// Letter is one unread message to the mayor.
type Letter struct {
	mail.Entry
	// Escalation is set for a health_escalation.
	Escalation *Escalation
}

// Facts is what one tick fetched.
type Facts struct {
	Now     state.Time
	Policy  Policy
	Session state.SessionID
	// Starting is true for the first moments of the mayor's process: polecats
	// that are started together with it may not speak for themselves yet.
	Starting bool
	Beads    []bead.Bead
	Polecats []Polecat
	// Unconfirmed are dispatches that somebody began and did not finish.
	Unconfirmed []dispatch.Record
	Queue       []mergequeue.Request
	// Retired are the ends of the assignments that beads and hooks name.
	Retired map[state.AssignmentID]retire.Record
	Convoys []convoy.Convoy
	// Mail is unread, in processing order. Nudges are unseen, oldest first.
	Mail   []Letter
	Nudges []nudge.Nudge
}

// AnyLive tells whether some polecat that gets work has a process.
func (f *Facts) AnyLive() bool {
	return slices.ContainsFunc(f.Polecats, func(p Polecat) bool { return p.Live && !p.Retired })
}

// census is the rig in one line, for who asks the mayor how it goes.
func (f *Facts) census() string {
	count := map[bead.Status]int{}
	for i := range f.Beads {
		count[f.Beads[i].Status]++
	}
	return fmt.Sprintf("%d open, %d out, %d to land, %d wait for a person", count[bead.Open]+count[bead.Failed],
		count[bead.Hooked]+count[bead.InProgress], count[bead.Done], count[bead.Blocked])
}

// AgeStep is how much older a bead must be to go before one of the next
// higher priority: priority counts, and age beats it in the end, so that
// nothing starves.
const AgeStep = time.Hour

// Ready lists the beads that can be slung now, first first: open, every
// blocker landed, not cooling down.
func Ready(beads []bead.Bead, now state.Time) []*bead.Bead {
	byID := bead.Index(beads)
	var ready []*bead.Bead
	for i := range beads {
		b := &beads[i]
		if b.Status != bead.Open || b.ReadyAt != nil && b.ReadyAt.After(now.Time) || len(bead.Blockers(b, byID)) > 0 {
			continue
		}
		ready = append(ready, b)
	}
	due := func(b *bead.Bead) time.Time {
		return b.CreatedAt.Add(time.Duration(b.Priority.Rank()) * AgeStep)
	}
	sort.SliceStable(ready, func(i, j int) bool {
		a, b := due(ready[i]), due(ready[j])
		if !a.Equal(b) {
			return a.Before(b)
		}
		return ready[i].ID < ready[j].ID
	})
	return ready
}

// NextReady is when the first bead that only cools down may be slung, or zero.
func NextReady(beads []bead.Bead, now state.Time) state.Time {
	var first state.Time
	for i := range beads {
		b := &beads[i]
		if b.Status == bead.Open && b.ReadyAt != nil && b.ReadyAt.After(now.Time) && (first.IsZero() || b.ReadyAt.Before(first.Time)) {
			first = *b.ReadyAt
		}
	}
	return first
}
