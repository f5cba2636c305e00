package refinery

import (
	"fmt"

	"github.com/gastown-chipset/chipset/nudge"
	"github.com/gastown-chipset/chipset/roles"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// nudges are answered from what is known here.
func (d *decision) nudges() {
	for _, n := range d.Nudges {
		seen := roles.MarkSeen{Nudge: n}
		switch {
		case n.Type == nudge.Abort && (n.From == state.Human || n.From == d.Policy.Mayor):
			d.abort(n)
			d.do(seen)
		case n.Type == nudge.HealthCheck, n.Type == nudge.SyncRequest, n.RequiresResponse && n.Type != nudge.Response:
			d.alone(roles.Answer(&n, d.describe(), n.Ref), seen)
		default:
			d.alone(seen)
		}
	}
}

func (d *decision) abort(n nudge.Nudge) {
	r := d.request(d.s.Work.ID)
	if r == nil || d.landingNow() || n.Ref != nil && n.Ref.AssignmentID != "" && n.Ref.AssignmentID != r.AssignmentID {
		return
	}
	if d.s.Work.Running {
		d.do(StopTest{})
	}
	d.putBack()
	d.change(Requeue{Request: r.ID, Waiting: fmt.Sprintf("stopped by %s: %s (go on with: chipset queue retry %s)", n.From, wording.Reason(n.Message), r.ID)})
	d.wait(Stopped, 0, 0)
	d.s.Work, d.s.Phase = Work{}, Idle
}

func (d *decision) landingNow() bool { return d.s.Phase == Merge || d.s.Phase == Push }

func (d *decision) describe() string {
	pending := 0
	for i := range d.Queue {
		if d.Queue[i].Status == mergequeue.Pending {
			pending++
		}
	}
	switch {
	case d.s.Work.ID != "":
		with := ""
		if d.s.Work.Group > 1 {
			with = fmt.Sprintf(" with the %d after it", d.s.Work.Group-1)
		}
		return fmt.Sprintf("%s is in %s%s, %d pending", d.s.Work.ID, d.s.Phase, with, pending)
	case d.s.Block != "":
		return fmt.Sprintf("blocked: %s; %d pending", d.s.Block, pending)
	}
	return fmt.Sprintf("idle, %d pending", pending)
}
