package handoff

import (
	"errors"
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Two hand-offs with the same clock both stay.
func TestCrashWrite(t *testing.T) {
	write := func(r *model.Run) error {
		for range 2 {
			h, err := NewStore(r.Tree, nil).Write(Handoff{AgentID: "polecat-alpha", Summary: "summary", Timestamp: now})
			if err != nil {
				return err
			}
			r.Ack(h.Timestamp.Stamp() + ".json")
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name: "hand-offs", Do: write, Heal: write,
		Check: func(c *model.Crash) error {
			return c.Promised(func(name string) error {
				if _, there := c.Files[string(Dir.Join("polecat-alpha", name))]; !there {
					return errors.New("it is lost")
				}
				return nil
			})
		},
	})
}
