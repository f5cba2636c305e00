package need

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gastown-chipset/chipset/state"
)

// ToldPath is the file of the needs that the person was notified of.
const ToldPath = state.RunDir + "/told.json"

// Standing are the needs of a moment.
type Standing struct {
	Keys []Key
	// Partial says that there may be others.
	Partial bool
	// Quiet says that nothing new may be told.
	Quiet bool
}

// told is the content of the file.
type told struct {
	Keys []Key `json:"keys"`
}

// Tell returns the needs that the caller shall notify the person of: those that nobody was
// told to notify of while they stood. Whoever asks next doesn't get them again; that is durable
// when it returns. A need that no longer stands is forgotten, and counts as a new one when
// it comes back. Of many needs the first thousand count.
func (s Store) Tell(ctx context.Context, now Standing) ([]Key, error) {
	now.Keys = now.Keys[:min(maxOpen, len(now.Keys))]
	before, err := s.readTold()
	if _, changed := now.after(before); err != nil || !changed {
		return nil, err
	}
	lock, err := s.tree.Lock(ctx, state.LockRecord, "told")
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if before, err = s.readTold(); err != nil {
		return nil, err
	}
	after, changed := now.after(before)
	if !changed {
		return nil, nil
	}
	if err := s.tree.ReplaceJSON(ToldPath, told{slices.Sorted(maps.Keys(after))}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(now.Keys), func(k Key) bool { return before[k] || !after[k] }), nil
}

// after returns which needs have been told once those of now are, and whether that is
// another set than before.
func (now *Standing) after(before map[Key]bool) (map[Key]bool, bool) {
	after := map[Key]bool{}
	if now.Partial {
		maps.Copy(after, before)
	}
	for _, k := range now.Keys {
		if before[k] || !now.Quiet {
			after[k] = true
		}
	}
	return after, !maps.Equal(after, before)
}

// readTold returns what was told. A file that can't be used counts as none.
func (s Store) readTold() (map[Key]bool, error) {
	known := map[Key]bool{}
	data, err := s.tree.Read(ToldPath, state.MaxFile)
	if errors.Is(err, state.ErrNotFound) {
		return known, nil
	}
	if err != nil {
		return nil, fmt.Errorf("needs that were told: %w", err)
	}
	var stored told
	if json.Unmarshal(data, &stored) == nil {
		for _, k := range stored.Keys {
			known[k] = true
		}
	}
	return known, nil
}
