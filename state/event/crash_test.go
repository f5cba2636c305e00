package event

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// What was synced is there, each line by itself; what was torn is reported and
// stops no reading.
func TestCrashAppend(t *testing.T) {
	tell := func(r *model.Run) error {
		log := NewLog(r.Tree, nil)
		for i := range 3 {
			if err := log.Append(at(i, fmt.Sprintf("event.%d", i))); err != nil {
				return err
			}
			if err := log.Sync(); err != nil {
				return err
			}
			r.Ack(fmt.Sprintf("event.%d", i))
		}
		return nil
	}
	model.Sweep(t, model.Scenario{
		Name: "events", Do: tell,
		Heal: func(r *model.Run) error {
			log := NewLog(r.Tree, nil)
			if err := log.Append(at(9, "event.healed")); err != nil {
				return err
			}
			events, _, _, err := log.Read(Position{}, time.Time{})
			if err != nil || len(events) == 0 || events[len(events)-1].Type != "event.healed" {
				return fmt.Errorf("the story ends with %v: %w", events, err)
			}
			return log.Sync()
		},
		Check: func(c *model.Crash) error {
			return c.Promised(func(kind string) error {
				for _, name := range c.Names(string(Dir)) {
					for line := range bytes.Lines(c.Files[name].Data) {
						if bytes.HasPrefix(line, []byte("{")) && bytes.HasSuffix(line, []byte("}\n")) && bytes.Contains(line, []byte(`"`+kind+`"`)) {
							return nil
						}
					}
				}
				return errors.New("it is lost")
			})
		},
	})
}
