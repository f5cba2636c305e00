// Package convoy stores groups of beads: state/convoys/{convoy}.json.
package convoy

import (
	"fmt"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
)

// Convoy is a group of beads and how much of it has landed.
type Convoy struct {
	ID      state.ConvoyID `json:"id"`
	Name    string         `json:"name"`
	BeadIDs []state.BeadID `json:"bead_ids"`
	// Progress is landed / all, 0.0 to 1.0.
	Progress    float64     `json:"progress"`
	CreatedAt   state.Time  `json:"created_at"`
	CompletedAt *state.Time `json:"completed_at,omitempty"`

	Extra state.Extra `json:"-"`
}

// UnmarshalJSON keeps unknown fields.
func (c *Convoy) UnmarshalJSON(b []byte) error {
	type plain Convoy
	return state.UnmarshalWithExtra(b, (*plain)(c), &c.Extra)
}

// MarshalJSON writes unknown fields back.
func (c Convoy) MarshalJSON() ([]byte, error) {
	type plain Convoy
	return state.MarshalWithExtra(plain(c), c.Extra)
}

// Dir is the folder of the convoys.
const Dir = state.StateDir + "/convoys"

// Store is state/convoys/.
type Store struct{ event.Recorder[Convoy] }

// NewStore opens the convoys of a tree. It logs new and completed convoys; log may be
// nil.
func NewStore(t *state.Tree, log *event.Log) Store {
	return Store{event.Record(state.NewStore(t, Dir, "convoy", state.LockRecord, check), log, eventOf)}
}

// By returns the store with agent as the author of its events, and with why as their
// text, unless why is "".
func (s Store) By(agent state.AgentID, why string) Store {
	return Store{s.Recorder.By(agent, why)}
}

func eventOf(before, after *Convoy) (event.Event, bool) {
	switch {
	case before == nil:
		return event.ConvoyCreated("", after.ID, after.Name), true
	case before.CompletedAt == nil && after.CompletedAt != nil:
		return event.ConvoyCompleted("", after.ID, after.Name), true
	}
	return event.Event{}, false
}

func check(name string, c *Convoy) error {
	switch {
	case string(c.ID) != name:
		return fmt.Errorf("id %q contradicts the file's name", c.ID)
	case c.Progress < 0 || c.Progress > 1:
		return fmt.Errorf("progress %v is not between 0 and 1", c.Progress)
	}
	return nil
}

// Landed counts the beads of the convoy that have landed according to beads.
func (c *Convoy) Landed(beads map[state.BeadID]*bead.Bead) int {
	n := 0
	for _, id := range c.BeadIDs {
		if b := beads[id]; b != nil && b.Status.Landed() {
			n++
		}
	}
	return n
}

// NewID returns a fresh cv-… name.
func NewID() state.ConvoyID { return state.ConvoyID("cv-" + state.Random(5)) }
