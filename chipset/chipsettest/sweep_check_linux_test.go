package chipsettest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
)

// object is a state file, decoded without any knowledge of its kind.
type object map[string]any

func (o object) text(field string) string {
	s, _ := o[field].(string)
	return s
}

func (o object) sub(field string) object {
	s, _ := o[field].(map[string]any)
	return s
}

func (v view) object(name string) object {
	var o object
	if json.Unmarshal(v[name], &o) != nil {
		return nil
	}
	return o
}

// below lists the published files of a folder and of the folders in it.
func (v view) below(dir string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if strings.HasPrefix(name, dir+"/") && !strings.HasPrefix(path.Base(name), ".") {
			found = append(found, name)
		}
	}
	return found
}

// count is how many objects below dir are as wanted.
func (v view) count(dir string, wanted func(object) bool) int {
	n := 0
	for _, name := range v.below(dir) {
		if o := v.object(name); o != nil && wanted(o) {
			n++
		}
	}
	return n
}

// torn lists the published files that are no whole, canonical JSON. Temp files
// may be anything; so may the quarantine, and what was so before. Of the story
// the last line may be torn.
func (v view) torn(before view) []string {
	var bad []string
	for name, data := range v {
		if strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(name, "quarantine/") || strings.HasPrefix(name, "events/") {
			continue
		}
		if old, there := before[name]; there && bytes.Equal(old, data) {
			continue
		}
		var o any
		if err := json.Unmarshal(data, &o); err != nil {
			bad = append(bad, fmt.Sprintf("%s: %v: %.80q", name, err, data))
			continue
		}
		if same, err := state.Encode(o); err != nil || !bytes.Equal(same, data) {
			bad = append(bad, fmt.Sprintf("%s is not canonical: %.80q", name, data))
		}
	}
	return bad
}

// changed lists what an operation must have left alone and did not: every file
// that stood there before and does not lie at one of the places it touches. The
// story may only grow.
func (v view) changed(before view, touches []string) []string {
	var bad []string
	for name, data := range before {
		if slices.ContainsFunc(touches, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		now, there := v[name]
		switch {
		case !there:
			bad = append(bad, name+" is gone")
		case strings.HasPrefix(name, "events/"):
			if !bytes.HasPrefix(now, data) {
				bad = append(bad, name+" lost lines of before")
			}
		case !bytes.Equal(now, data):
			bad = append(bad, fmt.Sprintf("%s changed: it is %.200q", name, now))
		}
	}
	return bad
}
