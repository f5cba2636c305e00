package mayor

import (
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/pause"
)

// The mayor's own actions.
type (
	// HealDispatch finishes or undoes a dispatch that was left half done.
	HealDispatch struct{ Bead state.BeadID }
	// Sling gives a bead to a polecat.
	Sling struct {
		Bead  state.BeadID
		Agent state.AgentID
	}
	// TakeOver takes a bare work item of another program off a hook, and slings its
	// bead there. A bead that does not exist is made.
	TakeOver struct {
		Agent state.AgentID
		Bead  state.BeadID
		Title string
	}
	// Admit lets beads start although their scope is paused, those and no others.
	Admit struct {
		Scope pause.Scope
		Beads []state.BeadID
	}
	// Lift ends a pause that nothing waits for.
	Lift struct{ Scope pause.Scope }
	// ClearHook empties a hook whose attempt is verified to be over.
	ClearHook struct {
		Agent      state.AgentID
		Assignment state.AssignmentID
		// Verify asks that a merge request of the assignment exists and its head
		// holds commits, before the hook is cleared.
		Verify bool
	}
	// Reopen makes a bead open again for a rework or a restart; the bead is
	// swapped first, then the hook it hung on is cleared, then its merge request
	// superseded.
	Reopen struct {
		Bead       state.BeadID
		Assignment state.AssignmentID
		From       bead.Status
		Note       string
		// Charge says what the bead is charged with.
		Charge Charge
		// ReadyAt keeps it from being slung before, when not zero.
		ReadyAt state.Time
		// MR is superseded, when not empty.
		MR state.MergeID
	}
	// TakeBack makes a bead open again that nobody can finish: it is assigned,
	// but the hook of its agent names other work, or none.
	TakeBack struct {
		Bead       state.BeadID
		Assignment state.AssignmentID
		Agent      state.AgentID
		// ReadyAt keeps it from being slung before, when not zero.
		ReadyAt state.Time
	}
	// FinishFor ends what an agent without a process is past the point of no
	// return with: its work is finished, but nobody would land it.
	FinishFor struct{ Agent state.AgentID }
	// Block makes a bead wait for a person, who gets the mail.
	Block struct {
		Bead          state.BeadID
		Assignment    state.AssignmentID
		From          bead.Status
		Reason        string
		Charge        Charge
		Subject, Body string
		// Unhooked makes it right only while no hook names the assignment.
		Unhooked bool
	}
	// Supersede retires a merge request whose bead has moved on.
	Supersede struct {
		MR   state.MergeID
		Bead state.BeadID
	}
	// MakeConvoy groups beads that became ready at once.
	MakeConvoy struct{ Beads []state.BeadID }
	// UpdateConvoy records progress.
	UpdateConvoy struct {
		ID       state.ConvoyID
		Progress float64
		Complete bool
	}
)

func (HealDispatch) IsAction() {}
func (Sling) IsAction()        {}
func (TakeOver) IsAction()     {}
func (Admit) IsAction()        {}
func (Lift) IsAction()         {}
func (ClearHook) IsAction()    {}
func (Reopen) IsAction()       {}
func (TakeBack) IsAction()     {}
func (FinishFor) IsAction()    {}
func (Block) IsAction()        {}
func (Supersede) IsAction()    {}
func (MakeConvoy) IsAction()   {}
func (UpdateConvoy) IsAction() {}

// Charge is what is held against a bead.
type Charge string

// Charges. A crash or restart of role processes charges nothing.
const (
	ChargeNothing  Charge = ""
	ChargeAttempt  Charge = "attempt"
	ChargeConflict Charge = "conflict"
	ChargeRestart  Charge = "restart"
)

// To counts the charge against a bead.
func (c Charge) To(b *bead.Bead) {
	switch c {
	case ChargeAttempt:
		b.Attempts++
	case ChargeConflict:
		b.Conflicts++
	case ChargeRestart:
		b.Restarts++
	case ChargeNothing:
	}
}
