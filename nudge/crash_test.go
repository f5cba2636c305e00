package nudge

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// A nudge is a hint, but one that was acknowledged is not lost, and latest wins
// per sender.
func TestCrashNudge(t *testing.T) {
	send := func(r *model.Run) error {
		slot := NewSlot(r.Tree, "polecat-alpha", nil)
		for _, n := range []Nudge{
			{From: "mayor", Type: Abort, Message: "abort"},
			{From: "witness", Type: HealthCheck, Message: "first"},
			{From: "witness", Type: StallWarning, Message: "second"},
		} {
			sent, err := slot.Send(r, n, now)
			if err != nil {
				return err
			}
			r.Ack(n.Message)
			if n.Message == "second" {
				continue
			}
			if err := slot.MarkSeen(r, sent); err != nil {
				return err
			}
			r.Ack("seen " + n.Message)
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name: "nudges", Do: send, Heal: send,
		Check: func(c *model.Crash) error {
			holds := func(file string, texts ...string) error {
				data := c.Files[string(Dir.Join("polecat-alpha", file))].Data
				for _, text := range texts {
					if bytes.Contains(data, []byte(text)) {
						return nil
					}
				}
				return fmt.Errorf("%s has none of %q: %q", file, texts, data)
			}
			return c.Promised(func(fact string) error {
				switch fact {
				case "abort":
					return holds("from/mayor.json", "abort")
				case "first":
					return holds("from/witness.json", "first", "second")
				case "second":
					return holds("from/witness.json", "first", "second") // sent again by the next start
				case "seen abort":
					return holds("seen.json", `"mayor"`)
				}
				return holds("seen.json", `"witness"`)
			})
		},
	})
}
