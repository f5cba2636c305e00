// Package team is the protocol that agents keep among themselves over mail:
// what a request asks, what an answer decides, and whether a plan must be
// approved first. The mail is the record; there is no other.
package team

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// Ask is the metadata of a request.
type Ask struct {
	// Rule is what a permission_request asks for, word by word.
	Rule string `json:"rule,omitempty"`
}

// AskOf is what a request asks for.
func AskOf(m *mail.Message) Ask {
	var a Ask
	if len(m.Metadata) > 0 {
		_ = json.Unmarshal(m.Metadata, &a) // metadata of another writer asks nothing that is known here
	}
	return a
}

// Answer is the metadata of a response.
type Answer struct {
	// Approved is nil for a response that decides nothing.
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Remembered is the rule that keeps the decision, or "".
	Remembered string `json:"remembered,omitempty"`
}

// AnswerOf is what a response decides, and whether it decides anything: it must
// say so, and come from somebody who may. The person decides everything, the
// mayor plans, and who was asked to end decides that.
func AnswerOf(r *rig.Rig, m *mail.Message) (Answer, bool) {
	var a Answer
	if len(m.Metadata) == 0 || json.Unmarshal(m.Metadata, &a) != nil || a.Approved == nil {
		return a, false
	}
	switch m.Type {
	case mail.PermissionResponse:
		return a, m.From == state.Human
	case mail.PlanResponse:
		return a, m.From == state.Human || m.From == r.Mayor()
	case mail.ShutdownResponse:
		return a, true
	default:
		return a, false
	}
}

// Asker is who waits for the answer to a request, and the name of its message:
// the sender, or behind a request that the mayor has passed on who asked the
// mayor.
func Asker(r *rig.Rig, e *mail.Entry) (state.AgentID, mail.Name) {
	if e.From != r.Mayor() || e.Thread == "" || e.Thread != e.InReplyTo {
		return e.From, e.Name
	}
	name, err := mail.ParseName(e.Thread)
	if err != nil {
		return e.From, e.Name
	}
	first, err := r.Mailbox(r.Mayor()).Get(name)
	if err != nil || first.Type != e.Type {
		return e.From, e.Name
	}
	return first.From, name
}

// ErrNoPlan is returned when work is to be finished whose plan was not approved.
var ErrNoPlan = errors.New("its plan is not approved")

// MustPlan tells whether the worker of a bead must have its plan approved
// before it changes anything.
func MustPlan(r *rig.Rig, b *bead.Bead) bool {
	if r.Def == nil {
		return false
	}
	name := b.Worker
	if name == "" {
		name = r.Def.Worker.Default
	}
	preset, ok := r.Def.Worker.Preset(name)
	return ok && preset.Plan
}

// CheckPlan returns an ErrNoPlan while the assignment on an agent's hook must
// not change anything yet: its worker must plan first, and no answer of the
// mayor or the person has approved a plan for this assignment, or the latest
// answer sent it back.
func CheckPlan(r *rig.Rig, id state.AgentID, a state.AssignmentID) error {
	h, err := r.Hooks.Get(string(id))
	if err != nil || h.WorkItem == nil || h.Assignment() != a {
		return err
	}
	b, err := r.Beads.Get(string(h.WorkItem.BeadID))
	if err != nil || !MustPlan(r, &b) {
		return err
	}
	latest, err := lastPlanAnswer(r, id, h.WorkItem)
	switch {
	case err != nil:
		return err
	case latest == nil:
		return fmt.Errorf("assignment %s: %w", a, ErrNoPlan)
	case !*latest.Approved:
		return fmt.Errorf("assignment %s: %w: it was sent back: %s", a, ErrNoPlan, latest.Reason)
	}
	return nil
}

func lastPlanAnswer(r *rig.Rig, id state.AgentID, item *hook.WorkItem) (*Answer, error) {
	var latest *Answer
	err := since(r.Mailbox(id), item.AssignedAt, []state.AgentID{state.Human, r.Mayor()}, func(e *mail.Entry) {
		if e.Type != mail.PlanResponse || e.Ref == nil || e.Ref.AssignmentID != item.AssignmentID {
			return
		}
		if answer, decides := AnswerOf(r, &e.Message); decides {
			latest = &answer
		}
	})
	return latest, err
}
