package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/chipset/execute/policy"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/pause"
	"github.com/gastown-chipset/chipset/state/wording"
)

// waitsFor says in one sentence where a bead stands and what it waits for.
func waitsFor(r *rig.Rig, s *rig.Records, b *bead.Bead, needs []Need) string {
	switch b.Status {
	case bead.Open:
		return openWaits(r, s, b)
	case bead.Hooked:
		return fmt.Sprintf("It is on the hook of %s, %s.", b.Assignee, running(s, b.Assignee, "which is about to start", "which is not running: chipset up starts the rig"))
	case bead.InProgress:
		return workWaits(r, s, b, needs)
	case bead.Done:
		return landingWaits(r, s, b)
	case bead.Failed:
		return fmt.Sprintf("Its last attempt failed%s. The mayor decides what happens next%s.", because(b.CloseReason),
			running(s, r.Mayor(), "", ", but it is not running: chipset up starts the rig"))
	case bead.Blocked:
		return "It waits for you" + because(b.CloseReason) + "."
	case bead.Merged:
		return mergedSentence(s, b)
	case bead.Closed:
		return "It is closed, with nothing to land" + because(b.CloseReason) + "."
	case bead.Cancelled:
		return "It was cancelled" + because(b.CloseReason) + "; chipset work reopen " + string(b.ID) + " brings it back."
	}
	return fmt.Sprintf("It is %s.", b.Status)
}

func because(reason string) string {
	reason = strings.TrimRight(wording.Reason(reason), ".")
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// running returns one of two phrases, depending on whether an agent is running.
func running(s *rig.Records, id state.AgentID, yes, no string) string {
	if _, alive := s.Alive[id]; alive {
		return yes
	}
	return no
}

func openWaits(r *rig.Rig, s *rig.Records, b *bead.Bead) string {
	if blockers := bead.Blockers(b, s.BeadByID); len(blockers) > 0 {
		return "It waits for " + strings.Join(blockers, ", ") + " to land."
	}
	if b.Cooling(s.At) {
		return fmt.Sprintf("It is ready again in %s (%s).", screen.Age(b.ReadyAt.Sub(s.At.Time)), b.FailureCounts())
	}
	if p := holding(r, s, b); p != nil {
		return fmt.Sprintf("It waits because %s. chipset resume %s tries at once.", p, p.Scope)
	}
	if _, alive := s.Alive[r.Mayor()]; !alive {
		return "It is ready, but the mayor is not running: chipset up starts the rig; chipset sling assigns it by hand."
	}
	switch free, live := freePolecats(s); {
	case free == 0:
		return "It is ready and waits for an idle polecat: all of them are busy."
	case live == 0:
		return "It is ready and waits for a polecat: none of the idle ones is running."
	}
	return "It is ready, and the mayor assigns it on its next tick."
}

func workWaits(r *rig.Rig, s *rig.Records, b *bead.Bead, needs []Need) string {
	if end := s.Retire[b.AssignmentID]; end != nil {
		return fmt.Sprintf("The attempt of %s has ended (%s) and is being finished: stage %s%s.", b.Assignee, end.Outcome, end.Stage,
			running(s, b.Assignee, "", "; that polecat is not running: chipset up starts the rig"))
	}
	h := s.Hooks[b.Assignee]
	if h == nil || h.Assignment() != b.AssignmentID {
		return fmt.Sprintf("It is in progress with %s, but not on its hook: chipset doctor says more.", b.Assignee)
	}
	if a := s.Agent(h.AgentID); a != nil && a.IsSession() {
		return fmt.Sprintf("Your session %s has held it for %s, in %s. chipset unsling %s takes it back.", h.AgentID,
			screen.Age(s.At.Sub(h.WorkItem.AssignedAt.Time)), r.Worktree(h.AgentID), b.ID)
	}
	if l := h.WorkItem.Lease; l != nil && r.IsLent(h.AgentID) {
		return fmt.Sprintf("The session of %s was %s. Its worker goes on with it afterwards.", b.Assignee, leaseText(l, s.At))
	}
	for i := range needs {
		if needs[i].Name != "" && needs[i].BeadID == b.ID {
			return fmt.Sprintf("%s waits for your answer: %s.", b.Assignee, strings.Join(needs[i].Commands, ", "))
		}
	}
	if p := holding(r, s, b); p != nil && slices.Contains(p.Waiting, b.ID) {
		return fmt.Sprintf("%s has it, but waits because %s. chipset resume %s tries at once.", b.Assignee, p, p.Scope)
	}
	if h.Status == hook.Active {
		return fmt.Sprintf("%s has been working on it for %s, with progress %s ago, %s.", b.Assignee, screen.Age(s.At.Sub(h.WorkItem.AssignedAt.Time)),
			screen.Age(s.At.Sub(h.LastActivity.Time)), running(s, b.Assignee, "and is running", "but is not running: chipset up starts the rig"))
	}
	return fmt.Sprintf("It is in progress; the hook of %s is %s.", b.Assignee, h.Status)
}

// holding returns the pause that a bead has to wait for, or nil.
func holding(r *rig.Rig, s *rig.Records, b *bead.Bead) *pause.Pause {
	if r.Def == nil || len(s.Pauses) == 0 {
		return nil
	}
	return pause.Holding(s.Pauses, policy.Client(r.Def, b.Worker), b)
}

func landingWaits(r *rig.Rig, s *rig.Records, b *bead.Bead) string {
	q := s.RequestOf(b.AssignmentID)
	if q == nil {
		return fmt.Sprintf("It is done, and %s is about to submit it%s.", b.Assignee,
			running(s, b.Assignee, "", ", but is not running: chipset up starts the rig"))
	}
	refinery := running(s, r.Refinery(), "", " The refinery is not running: chipset up starts the rig.")
	ahead := 0
	for i := range s.Queue {
		if s.Queue[i].Status.Live() && s.Queue[i].Seq < q.Seq {
			ahead++
		}
	}
	with := ""
	if ids := mergequeue.StackedWith(s.Queue)[q.ID]; len(ids) > 0 {
		with = ", together with " + wording.Join(ids, ", ")
	}
	switch q.Status {
	case mergequeue.Pending:
		if with != "" {
			return fmt.Sprintf("Its merge request %s is being tested%s.%s", q.ID, with, refinery)
		}
		if q.IsHeld() {
			return fmt.Sprintf("Its merge request %s changes %s, which needs your approval: chipset approve %s, or chipset deny %s --reason TEXT.", q.ID, q.Held.Summary(), q.ID, q.ID)
		}
		if q.Waiting != "" {
			return fmt.Sprintf("Its merge request %s is held up%s.%s", q.ID, because(q.Waiting), refinery)
		}
		if ahead > 0 {
			return fmt.Sprintf("Its merge request %s waits in the queue behind %d.%s", q.ID, ahead, refinery)
		}
		return fmt.Sprintf("Its merge request %s is next to land.%s", q.ID, refinery)
	case mergequeue.Merging:
		return fmt.Sprintf("Its merge request %s is landing: stage %s%s.%s", q.ID, q.Stage, with, refinery)
	case mergequeue.Conflicted:
		return fmt.Sprintf("Its merge request %s could not land%s. The mayor decides what happens next; chipset queue retry %s tries it again.",
			q.ID, because(string(q.Failure)+": "+q.Reason), q.ID)
	case mergequeue.Merged:
		return fmt.Sprintf("Its merge request %s has landed, and the refinery is about to record that.%s", q.ID, refinery)
	case mergequeue.Superseded, mergequeue.Dropped:
	}
	return fmt.Sprintf("Its merge request %s is %s, and the mayor decides what happens next.", q.ID, q.Status)
}

func mergedSentence(s *rig.Records, b *bead.Bead) string {
	q := s.RequestOf(b.AssignmentID)
	switch {
	case q == nil, q.MergedSHA == "" && !q.HeldBefore():
		return "It has landed."
	case q.HeldBefore():
		return "There was nothing left to land: " + q.Landed() + "."
	}
	return fmt.Sprintf("It landed on %s as %s.", q.TargetBranch, wording.ShortHash(q.MergedSHA))
}

// freePolecats counts the polecats with an empty hook, and those of them that are running.
func freePolecats(s *rig.Records) (free, live int) {
	for _, a := range s.Agents {
		h := s.Hooks[a.ID]
		if a.Role != agent.Polecat || a.Status == agent.Retired || h == nil || h.Status != hook.Empty {
			continue
		}
		free++
		if s.IsAlive(a.ID) {
			live++
		}
	}
	return free, live
}

// Now says in one sentence where a bead stands and what it waits for. Errors:
// *state.Unknown, *state.Corruption.
func Now(ctx context.Context, r *rig.Rig, id state.BeadID) (string, error) {
	b, err := r.Beads.Get(string(id))
	if err != nil {
		return "", err
	}
	snap, err := r.ReadAll(ctx)
	if err != nil {
		return "", err
	}
	text, _, err := now(ctx, r, snap, &b)
	return text, err
}

// now returns the sentence of Now, and the needs of the rig.
func now(ctx context.Context, r *rig.Rig, snap *rig.Records, b *bead.Bead) (string, []Need, error) {
	m := modelOf(r, snap, false)
	m.ask()
	needs, err := m.needs(ctx)
	return waitsFor(r, snap, b, needs), needs, err
}
