package audit

import (
	"bytes"
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/gastown-chipset/chipset/state"
)

// Typed returns a CheckChange that decodes the versions and calls moved with them. check
// returns an error for a value that is invalid or contradicts its file's name (without
// .json). before is nil for a new file. Two versions with equal values are always legal.
func Typed[T any](check func(name string, v *T) error, moved func(before, after *T) error) func(p string, before, after []byte) error {
	decode := func(p string, data []byte) (*T, error) {
		v := new(T)
		if err := state.Decode(p, data, v); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		if err := check(strings.TrimSuffix(path.Base(p), ".json"), v); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		return v, nil
	}
	return func(p string, before, after []byte) error {
		var old *T
		if before != nil {
			var err error
			if old, err = decode(p, before); err != nil {
				return nil //nolint:nilerr // its damage was reported earlier
			}
		}
		v, err := decode(p, after)
		if err != nil {
			return err
		}
		if old != nil && reflect.DeepEqual(old, v) {
			return nil
		}
		return moved(old, v)
	}
}

// Fixed returns an error that names the first field that differs. fields come in
// triples: name, before, after.
func Fixed(fields ...any) error {
	for i := 0; i+2 < len(fields); i += 3 {
		if !reflect.DeepEqual(fields[i+1], fields[i+2]) {
			return fmt.Errorf("%v changed from %v to %v", fields[i], show(fields[i+1]), show(fields[i+2]))
		}
	}
	return nil
}

// show formats a value, shortened for a message.
func show(v any) string {
	s := fmt.Sprintf("%q", fmt.Sprint(v))
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// AppendOnly is the CheckChange of a file to which lines are only appended.
func AppendOnly(_ string, before, after []byte) error {
	switch {
	case bytes.HasPrefix(after, before):
		return nil
	case len(after) < len(before) && bytes.HasPrefix(before, after):
		return fmt.Errorf("its last %d bytes were removed", len(before)-len(after))
	}
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	return fmt.Errorf("line %d was changed, but lines may only be appended", 1+bytes.Count(before[:same], []byte{'\n'}))
}

// WriteOnce is the CheckChange of a file that never changes.
func WriteOnce(_ string, before, after []byte) error {
	if before != nil && !bytes.Equal(before, after) {
		return fmt.Errorf("it was changed, but files of its kind may not be")
	}
	return nil
}

// AllowRemoval is the CheckRemoval of a file that may always be removed.
func AllowRemoval(string, []byte, Snapshot) error { return nil }
