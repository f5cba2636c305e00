package actor

import (
	"context"
	"fmt"
	"time"

	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

// The limits of what one worker may use (definition.Allowance). Commands that run at the same time may exceed a limit by
// their number.

// placeFound records in a new bead which bead's worker adds it. Errors: ErrConflict over limits.beads or limits.depth, and
// for a worker whose work is over.
func (a *Actor) placeFound(ctx context.Context, b *bead.Bead) error {
	if a.Session == "" {
		return nil
	}
	p, err := a.Present()
	if err != nil {
		return err
	}
	if p.Bead == "" {
		return state.Conflictf("work add", "the work of this session is over")
	}
	b.FoundIn = p.Bead
	all, _, err := a.Beads.All()
	if err != nil {
		return err
	}
	limits, byID := a.Def.Limits, bead.Index(all)
	depth := 0
	for at := b.FoundIn; at != "" && depth <= limits.Depth; depth++ {
		parent := byID[at]
		if at = ""; parent != nil {
			at = parent.FoundIn
		}
	}
	if depth > limits.Depth {
		return a.overLimit(ctx, "depth:"+string(p.Bead), fmt.Sprintf("%s is at the end of a chain of %d beads that were each added by the work on the one before (limits.depth)", p.Bead, depth))
	}
	added := 0
	for i := range all {
		if all[i].FoundIn == p.Bead {
			added++
		}
	}
	if added >= limits.Beads {
		return a.overLimit(ctx, "beads:"+string(p.Bead), fmt.Sprintf("the work on %s has added %d beads (limits.beads)", p.Bead, added))
	}
	return nil
}

// maySend returns an ErrConflict if a worker would exceed limits.mail by sending more messages.
func (a *Actor) maySend(ctx context.Context, more int) error {
	if a.Session == "" || a.Def == nil {
		return nil
	}
	agents, _, err := a.Agents.All()
	if err != nil {
		return err
	}
	boxes := map[state.AgentID]bool{state.Human: true}
	for i := range agents {
		boxes[agents[i].ID] = true
	}
	now := a.Clock.Now()
	begin, sent := now.Add(-time.Hour), 0
	for owner := range boxes {
		// The names say enough: nothing is opened.
		_, err := a.Mailbox(owner).Select(false, func(at state.Time, sender state.AgentID) bool {
			if sender == a.ID && !at.Before(begin) {
				sent++
			}
			return false
		})
		if err != nil {
			return err
		}
	}
	if sent+more <= a.Def.Limits.Mail {
		return nil
	}
	return a.overLimit(ctx, fmt.Sprintf("mail:%s:%s", a.ID, now.UTC().Format("2006-01-02T15")), fmt.Sprintf("%s has sent %d messages within an hour (limits.mail)", a.ID, sent))
}

// overLimit returns an ErrConflict, and mails the person about it once for each key.
func (a *Actor) overLimit(ctx context.Context, key, what string) error {
	_, err := a.Sender.Send(ctx, mail.Message{From: a.Witness(), To: state.Human, Type: mail.Coordination, Priority: mail.Normal, ID: "limit:" + key,
		Subject: "A worker is at its limit: " + what, Body: "What goes beyond it is refused, and the rig goes on. The limits stand in chipset.yaml.\n"})
	if err != nil {
		return err
	}
	return WithHint(state.Conflictf("limit", "%s", what), "chipset block --reason ends the assignment with a question to the person")
}
