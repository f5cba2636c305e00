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

// ToldPath is the file of the needs that the person was notified of. Its name is kept for
// compatibility.
const ToldPath = state.RunDir + "/told.json"

// Current are the current needs.
type Current struct {
	Keys []Key
	// Partial is true if there may be other needs, because a source could not be read.
	Partial bool
	// Quiet is true while the person must not be notified.
	Quiet bool
}

// told is the content of the file.
type told struct {
	Keys []Key `json:"keys"`
}

// TakeNew returns the needs that the person was not notified of yet, and records them, so
// that each is returned once and the caller can notify the person. A need that has ended
// is forgotten, and is new if it comes back. If there are more than a thousand needs, only
// the first thousand count. Durable when it returns nil.
func (s Store) TakeNew(ctx context.Context, now Current) ([]Key, error) {
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

// after returns the set of needs that the person knows after a notification of now, and
// whether it differs from before.
func (now *Current) after(before map[Key]bool) (map[Key]bool, bool) {
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

// readTold returns the needs that the person was notified of. An invalid file counts as
// missing.
func (s Store) readTold() (map[Key]bool, error) {
	known := map[Key]bool{}
	data, err := s.tree.Read(ToldPath, state.MaxFile)
	if errors.Is(err, state.ErrNotFound) {
		return known, nil
	}
	if err != nil {
		return nil, fmt.Errorf("needs that the person was notified of: %w", err)
	}
	var stored told
	if json.Unmarshal(data, &stored) == nil {
		for _, k := range stored.Keys {
			known[k] = true
		}
	}
	return known, nil
}
