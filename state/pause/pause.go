// Package pause stores what the rig does not start for now, and why:
// state/pauses/{scope}.json. A fault that is not the work's own (package fault) pauses
// its scope: one client, all worktrees, or the whole rig. When the pause is due, one
// bead is admitted as a probe. If the probe succeeds, two beads are admitted at a time,
// and one more after each success, up to the limit of the rig. If it fails, the next
// probe waits longer.
package pause

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/spend"
)

// Scope is what a pause applies to.
type Scope string

const (
	// Rig: nothing that needs the target, its remote, the disk or git.
	Rig Scope = "rig"
	// Worktree: nothing that needs a worktree.
	Worktree Scope = "worktree"
	// Day: nothing runs before midnight, because the budget of the day is used up.
	Day Scope = "day"
	// beadPrefix and convoyPrefix, each with an ID: nothing of it runs, because its budget is used up. planPrefix and
	// the ID of a bead: its plan is not approved, and making it has used up the budget of a plan.
	beadPrefix, convoyPrefix, planPrefix = "bead:", "convoy:", "plan:"
	// clientPrefix and a name: nothing that needs that client.
	clientPrefix = "client:"
)

// maxScope bounds a scope: its file is named after it.
const maxScope = 60

// Client returns the scope of a client, by the name of its program.
func Client(program string) Scope {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(program[strings.LastIndexByte(program, '/')+1:]))
	return Scope(clientPrefix + name[:min(len(name), maxScope-len(clientPrefix))])
}

// Bead returns the scope of one bead.
func Bead(id state.BeadID) Scope { return Scope(beadPrefix + id) }

// Convoy returns the scope of the beads of one convoy.
func Convoy(id state.ConvoyID) Scope { return Scope(convoyPrefix + id) }

// Plan returns the scope of the plan of one bead.
func Plan(id state.BeadID) Scope { return Scope(planPrefix + id) }

// IsPlan reports whether the scope is that of a plan.
func (s Scope) IsPlan() bool { return strings.HasPrefix(string(s), planPrefix) }

// Convoy returns the convoy of the scope. ok is false if it is not that of a convoy.
func (s Scope) Convoy() (id state.ConvoyID, ok bool) {
	name, ok := strings.CutPrefix(string(s), convoyPrefix)
	return state.ConvoyID(name), ok
}

// Bead returns the bead of the scope, also for the scope of its plan. ok is false if it is
// neither.
func (s Scope) Bead() (id state.BeadID, ok bool) {
	name, ok := strings.CutPrefix(strings.TrimPrefix(string(s), planPrefix), beadPrefix)
	return state.BeadID(name), ok || s.IsPlan()
}

// Needs lists the scopes that must not be paused for a bead to start: those of its budgets, then
// those of Path.
func Needs(client Scope, b *bead.Bead) []Scope {
	return append([]Scope{Day, Bead(b.ID), Convoy(b.ConvoyID), Plan(b.ID)}, Path(client)...)
}

// Path lists the scopes that an attempt with a client needs, in the order in which it
// needs them.
func Path(client Scope) []Scope { return []Scope{Rig, Worktree, client} }

// Of returns the scope that a fault of a kind pauses.
func Of(k fault.Kind, client Scope) Scope {
	switch k {
	case fault.TargetGone, fault.RemoteGone, fault.DiskFull, fault.NoPermission, fault.TestCannotRun:
		return Rig
	case fault.SetupFailed, fault.WorktreeFailed:
		return Worktree
	default:
		return client
	}
}

// File is the name of a scope's record without .json.
func (s Scope) File() string { return strings.ReplaceAll(string(s), ":", ".") }

// Status is the status of a pause.
type Status string

const (
	// Suspected: a bead failed early for an unknown reason. Nothing is held back. Ends
	// when another bead fails in the same way (Paused), or with any other end (Over).
	Suspected Status = "suspected"
	// Paused: nothing starts except, from Until on, one probe at a time. Ends with a
	// successful probe, or by a person (Ramping).
	Paused Status = "paused"
	// Ramping: Width beads are admitted at a time. Ends when Width reaches the limit of
	// the rig (Over), or with a fault (Paused).
	Ramping Status = "ramping"
	// Over: nothing is held back.
	Over Status = "over"
)

// Try is one attempt that failed.
type Try struct {
	At         state.Time         `json:"at"`
	BeadID     state.BeadID       `json:"bead_id,omitempty"`
	Assignment state.AssignmentID `json:"assignment_id,omitempty"`
	Reason     string             `json:"reason"`
}

// MaxTried bounds Pause.Tried.
const MaxTried = 10

// Used is the usage that counts for a budget.
type Used struct {
	CostUSD  spend.USD     `json:"cost_usd,omitempty"`
	Tokens   int64         `json:"tokens,omitempty"`
	Attempts int           `json:"attempts,omitempty"`
	Time     time.Duration `json:"time_ns,omitempty"`
}

// Pause is the record of one scope.
type Pause struct {
	Scope  Scope       `json:"scope"`
	Status Status      `json:"status"`
	Class  fault.Class `json:"class"`
	Kind   fault.Kind  `json:"kind"`
	// Reason is that of the fault.
	Reason string     `json:"reason"`
	Since  state.Time `json:"since"`
	// Until is when the next probe is due.
	Until state.Time `json:"until"`
	// Check names the check that found the fault before anything was started, or is "" for a fault that ended an
	// attempt. Nothing is tried until the check passes, whatever Until is.
	Check string `json:"check,omitempty"`
	// Mend is a command line that removes the fault, if there is one.
	Mend string `json:"mend,omitempty"`
	// Used is the usage when a budget was used up, and Granted the part of it that the person has allowed beyond the budget.
	Used    *Used `json:"used,omitempty"`
	Granted *Used `json:"granted,omitempty"`
	// Tries counts the first failure and the probes that failed.
	Tries int `json:"tries"`
	// Tried are the last attempts that failed, oldest first.
	Tried []Try `json:"tried"`
	// Width is how many beads may be admitted at a time; 0 unless the pause is Ramping.
	Width int `json:"width,omitempty"`
	// Admitted are the beads that may start although the scope is paused.
	Admitted []state.BeadID `json:"admitted,omitempty"`
	// Waiting are the beads that are on a hook and wait to be admitted. If a session had
	// begun, it is kept.
	Waiting   []state.BeadID `json:"waiting,omitempty"`
	EndedAt   *state.Time    `json:"ended_at,omitempty"`
	UpdatedAt state.Time     `json:"updated_at"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (p *Pause) UnmarshalJSON(b []byte) error {
	type plain Pause
	return state.UnmarshalWithExtra(b, (*plain)(p), &p.Extra)
}

// MarshalJSON writes unknown fields back.
func (p Pause) MarshalJSON() ([]byte, error) {
	type plain Pause
	return state.MarshalWithExtra(plain(p), p.Extra)
}

// InForce reports whether the pause holds anything back.
func (p *Pause) InForce() bool { return p.Status == Paused || p.Status == Ramping }

// patience is how many tries in a row must meet the same fault before the person is asked, if trying again may help.
const patience = 3

// NeedsPerson reports whether probes don't help, the last of them at or after since: a person has to log
// in, install or repair something. The rig still tries again by itself, and resumes when that is done.
func (p *Pause) NeedsPerson(since state.Time) bool {
	if p.Status == Paused && p.Check != "" {
		return true
	}
	return p.Status == Paused && p.Class == fault.Environment && (p.Tries >= patience || p.Kind.NeedsPerson()) &&
		len(p.Tried) > 0 && !p.Tried[len(p.Tried)-1].At.Before(since.Time)
}

// Holds reports whether a bead of the scope must not start.
func (p *Pause) Holds(b state.BeadID) bool { return p.InForce() && !slices.Contains(p.Admitted, b) }

// Waits reports whether the next probe is not due yet. If the clock was set back since
// the last try, the probe is due.
func (p *Pause) Waits(now state.Time) bool {
	return p.Status == Paused && now.Before(p.Until.Time) &&
		!slices.ContainsFunc(p.Tried, func(t Try) bool { return t.At.After(now.Time) })
}

// Room is how many beads may be admitted at a time.
func (p *Pause) Room(now state.Time) int {
	switch {
	case p.Status == Ramping:
		return p.Width
	case p.Status == Paused && p.Check == "" && !p.Waits(now):
		return 1
	}
	return 0
}

// Head says in one line what is paused, and what comes next.
func (p *Pause) Head() string {
	if p.Status == Ramping {
		return fmt.Sprintf("%s is starting again, %d at a time", p.Scope, p.Width)
	}
	paused := fmt.Sprintf("%s has been paused since %s", p.Scope, p.Since.Local().Format(time.TimeOnly))
	switch {
	case p.Check != "":
		return paused
	case len(p.Admitted) > 0:
		return paused + ", " + string(p.Admitted[0]) + " is trying it now"
	}
	return paused + ", next try at " + p.Until.Local().Format(time.TimeOnly)
}

// String is Head with the reason.
func (p *Pause) String() string { return p.Head() + ": " + p.Reason }

// Dir is the folder of the records.
const Dir = state.StateDir + "/pauses"

// Store is state/pauses/.
type Store struct{ event.Recorder[Pause] }

// NewStore opens the pauses of a tree. It logs scopes that are paused and resumed; log
// may be nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{event.Record(state.NewStore(t, Dir, "pause", state.LockRecord, check), log, eventOf)}
}

func eventOf(before, after *Pause) (event.Event, bool) {
	was := before != nil && before.Status == Paused
	switch {
	case !was && after.Status == Paused:
		return event.ScopePaused(string(after.Scope), string(after.Kind), after.Reason), true
	case was && after.Status != Paused:
		return event.ScopeResumed(string(after.Scope), string(after.Kind)), true
	}
	return event.Event{}, false
}

func check(name string, p *Pause) error {
	f := fault.Fault{Class: p.Class, Kind: p.Kind, Reason: p.Reason}
	switch {
	case p.Scope.File() != name:
		return fmt.Errorf("scope %q contradicts the file's name", p.Scope)
	case !slices.Contains([]Status{Suspected, Paused, Ramping, Over}, p.Status):
		return fmt.Errorf("unknown status %q", p.Status)
	case (p.Width > 0) != (p.Status == Ramping) || p.Width < 0:
		return fmt.Errorf("width %d contradicts the status %s", p.Width, p.Status)
	case p.Tries < 1 || len(p.Tried) > MaxTried:
		return fmt.Errorf("%d tries, %d of them listed", p.Tries, len(p.Tried))
	case p.Class == fault.Work || f.IsZero():
		return fmt.Errorf("a fault of the work pauses nothing")
	}
	return f.Check()
}
