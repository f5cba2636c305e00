package execute

import (
	"context"
	"time"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/pause"
)

type witnessRunner struct {
	base
	state witness.State
	// backlog is what this process knows of beads.
	backlog *backlog.Backlog
	// seen is how far it follows them.
	seen state.Cursor
	// pauses are those in force.
	pauses []pause.Pause
	// tasks is what was last found in each mailbox.
	tasks map[state.AgentID]tasksOf
	// reminded are the requests of overdue tasks whose two sides were reminded.
	reminded map[mail.Name]bool
}

// NewWitness returns the runner of the witness.
func NewWitness(a Agent) Runner {
	return &witnessRunner{base: newBase(a), backlog: backlog.New(), tasks: map[state.AgentID]tasksOf{}, reminded: map[mail.Name]bool{}}
}

// Recover has nothing to heal: what an earlier witness left half done stands in
// the incidents, and the first patrol finishes it.
func (w *witnessRunner) Recover(context.Context) error { return nil }

// Folders are the witness's own only: hooks change with every touch, and a
// patrol that finds a dead process is never far away.
func (w *witnessRunner) Folders() []state.Path {
	return []state.Path{w.Rig.Mailbox(w.ID).Dir(), w.Rig.Slot(w.ID).Dir().Join("from")}
}

// Tick answers what came for the witness, and patrols when it is time.
func (w *witnessRunner) Tick(ctx context.Context) (Next, error) { return tick(ctx, &w.base, w) }

func (w *witnessRunner) decide(f witness.Facts) roles.Decision[witness.State] {
	return witness.Decide(w.state, f)
}

func (w *witnessRunner) adopt(next witness.State) { w.state = next }

// after is the time until the next patrol, and never 0, which would leave it to the
// rig's tick.
func (w *witnessRunner) after() time.Duration {
	return max(time.Millisecond, w.state.Wake.Sub(w.Now().Time))
}

// fetch reads the witness's own mail and nudges, and for a patrol the rig.
func (w *witnessRunner) fetch(ctx context.Context) (witness.Facts, error) {
	r, now := w.Rig, w.Now()
	f := witness.Facts{Now: now, Self: w.ID, Session: w.Session, Mayor: r.Mayor(), Refinery: r.Refinery(), Policy: policy.Witness(w.Rig.Def)}
	var err error
	if f.Mail, err = w.inbox.mail(ctx, r.Mayor()); err != nil {
		return f, err
	}
	if f.Nudges, err = w.inbox.nudges(); err != nil {
		return f, err
	}
	due := w.state.Due(now)
	if !due && len(f.Mail)+len(f.Nudges) == 0 {
		return f, nil // woken for nothing: look at nothing more
	}
	if f.Incidents, err = openIncidents(r); err != nil {
		return f, err
	}
	if due {
		f.Scan, err = w.scan()
	}
	return f, err
}
