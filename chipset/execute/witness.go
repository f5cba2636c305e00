package execute

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/gastown-chipset/chipset/chipset/team"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles/backlog"
	"github.com/gastown-chipset/chipset/roles/witness"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

type witnessRunner struct {
	Agent
	inbox *inbox
	state witness.State
	// backlog is what this process knows of beads.
	backlog *backlog.Backlog
	// seen is how far it follows them.
	seen state.Cursor
	// tasks is what was last found in each mailbox.
	tasks map[state.AgentID]tasksOf
}

// NewWitness returns the runner of the witness.
func NewWitness(a Agent) Runner {
	return &witnessRunner{Agent: a, inbox: newInbox(a), backlog: backlog.New(), tasks: map[state.AgentID]tasksOf{}}
}

// Recover has nothing to heal: what an earlier witness left half done stands in
// the incidents, and the first patrol finishes it.
func (w *witnessRunner) Recover(context.Context) error { return nil }

// Folders are the witness's own only: hooks change with every touch, and a
// patrol that finds a dead process is never far away.
func (w *witnessRunner) Folders() []state.Path {
	return []state.Path{w.Rig.Mailbox(w.ID).Dir(), w.Rig.Slot(w.ID).Dir().Join("from")}
}

func (w *witnessRunner) News() <-chan struct{} { return nil }

func (w *witnessRunner) Close() {}

// Tick answers what came for the witness, and patrols when it is time.
func (w *witnessRunner) Tick(ctx context.Context) (Next, error) {
	now := w.Now()
	facts, err := w.fetch(ctx, now)
	if err != nil {
		return Next{After: w.Rig.Def.Rig.Patrol}, err
	}
	next, actions := witness.Decide(w.state, facts)
	w.state = next
	finished, err := w.execute(ctx, actions)
	// Never 0, which would leave it to the rig's tick.
	return Next{After: max(time.Millisecond, next.Wake.Sub(w.Now().Time)), Finished: finished}, err
}

// fetch reads the witness's own mail and nudges, and for a patrol the rig.
func (w *witnessRunner) fetch(ctx context.Context, now state.Time) (witness.Facts, error) {
	r := w.Rig
	f := witness.Facts{Now: now, Self: w.ID, Session: w.Session, Mayor: r.Mayor(), Refinery: r.Refinery(), Policy: w.policy()}
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

func (w *witnessRunner) policy() witness.Policy {
	def := w.Rig.Def
	t := def.GUPP.Thresholds
	return witness.Policy{Patrol: def.Rig.Patrol, Stall: t.StallDetection, Nudge: t.NudgeInterval, Restart: t.RestartThreshold,
		SlowStart: t.SlowStart, TestTimeout: def.Merge.TestTimeout, MaxRestarts: def.GUPP.Limits.MaxRestarts,
		MaxParallel: def.Dispatch.MaxParallel, MaxWaiting: def.Merge.MaxWaiting}
}

// execute carries the actions out in their order. One that fails does not stop
// the others, but nothing is retired after it: the next tick comes back to it.
func (w *witnessRunner) execute(ctx context.Context, actions []witness.Action) (finished bool, err error) {
	var failed *multierror.Error
	for _, action := range actions {
		var err error
		switch a := action.(type) {
		case witness.MarkRead:
			if failed == nil {
				err = w.Rig.MarkRead(ctx, w.ID, &a.Entry)
			}
		case witness.MarkSeen:
			if failed == nil {
				err = w.markSeen(ctx, a.Nudge)
			}
		case witness.Finish:
			if failed == nil {
				err = w.finish(ctx, a.Request)
				finished = err == nil
			}
		case witness.Reply:
			err = w.reply(ctx, a)
		default:
			err = w.act(ctx, action)
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			failed = multierror.Append(failed, err)
		}
	}
	return finished, failed.ErrorOrNil()
}

func (w *witnessRunner) markSeen(ctx context.Context, n nudge.Nudge) error {
	err := w.Rig.Slot(w.ID).MarkSeen(ctx, n)
	if err == nil {
		e := event.Event{Type: "nudge.seen", Agent: w.ID, Subject: string(n.From), Text: string(n.Type) + ": " + n.Message}
		if n.Ref != nil {
			e.Bead, e.Assignment, e.Session = n.Ref.BeadID, n.Ref.AssignmentID, n.Ref.Session
		}
		w.Rig.Emit(e)
	}
	return err
}

func (w *witnessRunner) finish(ctx context.Context, request mail.Entry) error {
	_, err := w.Rig.Send(ctx, mail.Message{From: w.ID, To: request.From, Type: mail.ShutdownResponse, Metadata: team.Approval(),
		Subject: string(w.ID) + " ends", ID: answerID(request), InReplyTo: string(request.Name), Ref: request.Ref})
	if err != nil && !undeliverable(err) {
		return err
	}
	return w.Rig.MarkRead(ctx, w.ID, &request)
}

func (w *witnessRunner) reply(ctx context.Context, a witness.Reply) error {
	thread := a.To.Thread
	if thread == "" {
		thread = string(a.To.Name)
	}
	_, err := w.Rig.Send(ctx, mail.Message{From: w.ID, To: a.To.From, Type: mail.Coordination, Subject: a.Subject,
		Body: a.Body, ID: answerID(a.To), Thread: thread, InReplyTo: string(a.To.Name)})
	return err
}

// answerID makes an answer that is sent again after a crash the same message.
func answerID(to mail.Entry) string { return "answer-" + string(to.Name) }

// undeliverable tells whether nobody will ever read what could not be sent.
func undeliverable(err error) bool {
	return errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrConflict)
}
