package actor

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/rig/rigtest"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/retire"
)

const planning = "worker:\n  default: careful\n  presets:\n    careful: {command: [\"true\"], plan: true}\n"

// working is polecat-alpha at work on a bead.
func working(t *testing.T, r *rig.Rig) *Actor {
	t.Helper()
	rec, err := carry.Sling(t.Context(), r, add(t, r, "a task").ID, "polecat-alpha", "mayor")
	rigtest.Must(t, err)
	_, err = r.Hooks.Activate(t.Context(), "polecat-alpha", rec.AssignmentID, "ses-1", r.Clock.Now())
	rigtest.Must(t, err)
	return &Actor{Rig: r, ID: "polecat-alpha", Session: "ses-1", Assignment: rec.AssignmentID}
}

// TestPlanFirst: nothing is finished before the mayor or the person has approved
// a plan, and only they do.
func TestPlanFirst(t *testing.T) {
	r := rigtest.New(t, planning)
	alpha, mayor := working(t, r), as(r, "mayor")
	refused := func(when string) {
		t.Helper()
		if _, err := alpha.Verdict(t.Context(), retire.Done, "did it", ""); !errors.Is(err, state.ErrConflict) {
			t.Errorf("done %s: %v", when, err)
		}
	}
	refused("without a plan")
	asked, err := alpha.RequestPlan(t.Context(), "first this, then that")
	rigtest.Must(t, err)
	refused("before an answer")
	// What a peer says, and what says nothing of a decision, decides nothing.
	for _, m := range []mail.Message{{From: "polecat-bravo", Metadata: roles.Approval()}, {From: "witness", Metadata: roles.Approval()},
		{From: "mayor"}, {From: "human", Metadata: json.RawMessage(`{"approved":"yes"}`)}} {
		m.To, m.Type, m.Subject, m.InReplyTo, m.Thread = "polecat-alpha", mail.PlanResponse, "approved", string(asked), string(asked)
		m.Ref = &mail.Ref{AssignmentID: alpha.Assignment}
		_, err := r.Sender.Send(t.Context(), m)
		rigtest.Must(t, err)
		refused("after mail of " + string(m.From))
	}
	if _, err := as(r, "polecat-bravo").Decide(t.Context(), get(t, mayor, asked), Decision{Approved: true}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("a peer approved: %v", err)
	}
	_, err = mayor.Decide(t.Context(), get(t, mayor, asked), Decision{Reason: "tests first"})
	rigtest.Must(t, err)
	refused("after it was sent back")
	asked, err = alpha.RequestPlan(t.Context(), "tests, then that")
	rigtest.Must(t, err)
	_, err = mayor.Decide(t.Context(), get(t, mayor, asked), Decision{Approved: true})
	rigtest.Must(t, err)
	answer, err := alpha.WaitDecision(t.Context(), asked, 0)
	if err != nil || !*answer.Approved {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	_, err = alpha.Verdict(t.Context(), retire.Done, "did it", "")
	rigtest.Must(t, err)
}

// TestDecisionFindsBack: the person answers what the mayor has passed on, and who
// asked gets the answer from the person.
func TestDecisionFindsBack(t *testing.T) {
	r := rigtest.New(t, planning)
	alpha := working(t, r)
	asked, err := alpha.RequestPlan(t.Context(), "first this")
	rigtest.Must(t, err)
	e := get(t, as(r, "mayor"), asked)
	passed, err := r.Sender.Send(t.Context(), mail.Message{From: "mayor", To: "human", Type: e.Type, Subject: "polecat-alpha asks: " + e.Subject,
		Body: e.Body, InReplyTo: string(asked), Thread: string(asked), Ref: e.Ref})
	rigtest.Must(t, err)
	person := as(r, state.Human)
	_, err = person.Decide(t.Context(), get(t, person, passed), Decision{Approved: true})
	rigtest.Must(t, err)
	rigtest.Must(t, CheckPlan(r, alpha.ID, alpha.Assignment))
}

// TestIdleIsToldOnce: a second notification waits for the first to be read.
func TestIdleIsToldOnce(t *testing.T) {
	r := rigtest.New(t, "")
	alpha := as(r, "polecat-alpha")
	first, err := alpha.Idle(t.Context(), "available", "")
	rigtest.Must(t, err)
	again, err := alpha.Idle(t.Context(), "failed", "")
	if err != nil || again != first {
		t.Errorf("told %s and %s, %v", first, again, err)
	}
	rigtest.Must(t, as(r, "mayor").MarkOwn(t.Context(), get(t, as(r, "mayor"), first)))
	if again, err = alpha.Idle(t.Context(), "failed", ""); err != nil || again == first {
		t.Errorf("after it was read: %s, %v", again, err)
	}
}
