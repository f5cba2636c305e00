package view

import (
	"context"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/spend"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Summary is what a rig has achieved since a time.
type Summary struct {
	Since state.Time `json:"since"`
	// Landed counts beads that landed, Failed attempts whose failure was their own fault.
	Landed int `json:"landed"`
	Failed int `json:"failed"`
	// Spent is what attempts have used since the beginning of that day; its key is the day.
	Spent SpendLine `json:"spent"`
	// Needs is what waits for the person now.
	Needs []Need `json:"needs"`
	// Held are the beads that the person's own sessions hold.
	Held []state.BeadID `json:"held,omitempty"`
}

// Summarize returns what a rig has achieved since a time.
func Summarize(ctx context.Context, r *rig.Rig, since state.Time) (*Summary, error) {
	landed, _, err := r.Beads.Select(func(b *bead.Bead) bool {
		return b.Status.Landed() && b.ClosedAt != nil && !b.ClosedAt.Before(since.Time)
	})
	if err != nil {
		return nil, err
	}
	failed, _, err := r.Retire.Select(func(rec *retire.Record) bool {
		charged := rec.Fault.IsZero() || rec.Fault.Class == fault.Work
		return rec.Outcome == retire.Fail && charged && !rec.CreatedAt.Before(since.Time)
	})
	if err != nil {
		return nil, err
	}
	s := &Summary{Since: since, Landed: len(landed), Failed: len(failed)}
	rows, _, err := r.Spend.AllRows()
	if err != nil {
		return nil, err
	}
	s.Spent = ReportSpend(rows, ByDay, spend.Day(since.Time)).Total
	s.Spent.Key = spend.Day(since.Time)
	agents, _, err := r.Agents.All()
	for i := range agents {
		if h, hookErr := r.Hooks.Get(string(agents[i].ID)); agents[i].IsSession() && hookErr == nil && h.WorkItem != nil && h.Status != hook.Completed {
			s.Held = append(s.Held, h.WorkItem.BeadID)
		}
	}
	if err == nil {
		s.Needs, err = Needs(ctx, r)
	}
	return s, err
}

// String is the summary on one line.
func (s *Summary) String() string {
	text := fmt.Sprintf("%s landed, %s failed, ", wording.Count(s.Landed, "bead"), wording.Count(s.Failed, "attempt"))
	if spent := s.Spent.String(); spent != "" {
		text += spent + " spent since " + s.Spent.Key + ", "
	}
	switch len(s.Needs) {
	case 0:
		text += "nothing waits for you"
	case 1:
		text += "1 decision waits for you: chipset inbox"
	default:
		text += fmt.Sprintf("%d decisions wait for you: chipset inbox", len(s.Needs))
	}
	if len(s.Held) > 0 {
		text += "; your sessions hold " + wording.Join(s.Held, ", ")
	}
	return text
}
