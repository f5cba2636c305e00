// Package audit checks that a state tree changed only in legal ways from one snapshot
// to the next. It is pure: it compares versions of files. The rule for each kind of
// file belongs to the package of that kind; this package checks what all have in common:
//
//   - A file changes as its rule allows.
//   - A file that is gone was moved to where its rule says (a message: to the
//     archive), or to the quarantine, where a reason names it. Some kinds
//     may also be removed; their rule says when.
//   - A file that could be read can still be read.
//
// Many legal steps may lie between two snapshots, so a rule asks whether the
// later version can be reached from the earlier one, in any number of steps.
package audit

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/gastown-chipset/chipset/state"
)

// File is one version of a file.
type File struct {
	// ID is the same for the same content, and "" for a file that is not there.
	ID   string
	Data []byte
}

// Exists reports whether there is a file.
func (f File) Exists() bool { return f.ID != "" }

// Change is a file of which two snapshots hold different versions. Path is
// relative to state/.
type Change struct {
	Path          string
	Before, After File
}

// Snapshot returns the file at a path of one snapshot.
type Snapshot func(path string) (File, error)

// Rule says how files of one kind may change.
type Rule struct {
	// Patterns are those of path.Match for the files of the kind, below state/.
	Patterns []string
	// CheckChange returns why the later version can't follow the earlier one. A nil
	// before is a file that appears; it is asked for only where CheckNew is set.
	CheckChange func(p string, before, after []byte) error
	// CheckNew makes the checker call CheckChange for new files too.
	CheckNew bool
	// MovesTo is where a file may go under the same name, or nil.
	MovesTo func(p string) string
	// CheckRepair judges a file instead of CheckChange when a damaged version of it was
	// put into the quarantine in the same step; nil means that no such file is
	// ever rebuilt.
	CheckRepair func(p string, before, after []byte) error
	// CheckRemoval returns why a file may not be gone that stands nowhere else; nil
	// means that it never may.
	CheckRemoval func(p string, before []byte, later Snapshot) error
}

// Violation is one file that changed in a way that its rule does not allow.
type Violation struct {
	// Path is relative to state/.
	Path string `json:"path"`
	// Reason is one sentence for a person.
	Reason string `json:"reason"`
}

// ErrUnreadable is returned by CheckChange, wrapped, for a version that is damaged.
var ErrUnreadable = errors.New("can't be read")

// Checker checks snapshots by rules.
type Checker struct{ rules []Rule }

// NewChecker returns a checker. For each file the first rule whose pattern matches
// counts; a file that matches none is not checked.
func NewChecker(rules ...Rule) *Checker { return &Checker{rules} }

// Rule returns the rule for a path, or nil.
func (j *Checker) Rule(p string) *Rule {
	for i := range j.rules {
		for _, pattern := range j.rules[i].Patterns {
			if ok, err := path.Match(pattern, p); ok && err == nil {
				return &j.rules[i]
			}
		}
	}
	return nil
}

// NeedsContent reports whether the content of files at a path is checked.
func (j *Checker) NeedsContent(p string) bool {
	return strings.HasPrefix(p, quarantine) || j.Rule(p) != nil
}

// Destination returns where a file at p may have been moved to, or "".
func (j *Checker) Destination(p string) string {
	if r := j.Rule(p); r != nil && r.MovesTo != nil {
		return r.MovesTo(p)
	}
	return ""
}

// Check checks everything that changed between two snapshots. later is the second
// one; an error of later ends the check and is returned.
func (j *Checker) Check(changes []Change, later Snapshot) ([]Violation, error) {
	s := step{judge: j, later: later, kept: quarantined(changes), after: map[string]File{}}
	for _, c := range changes {
		s.after[c.Path] = c.After
	}
	var found []Violation
	for _, c := range changes {
		if err := s.change(c); err != nil {
			var broken *lookupError
			if errors.As(err, &broken) {
				return found, broken.err
			}
			found = append(found, Violation{c.Path, err.Error()})
		}
	}
	slices.SortFunc(found, func(a, b Violation) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// step is the judgement of one step.
type step struct {
	judge *Checker
	later Snapshot
	kept  map[string][]kept
	after map[string]File
}

// lookupError tells a failure to look from a judgement.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }

// lookup is what stands at a path afterwards.
func (s *step) lookup(p string) (File, error) {
	if f, changed := s.after[p]; changed {
		return f, nil
	}
	f, err := s.later(p)
	if err != nil {
		return f, &lookupError{err}
	}
	return f, nil
}

func (s *step) change(c Change) error {
	if strings.HasPrefix(c.Path, quarantine) {
		return judgeQuarantine(c)
	}
	r := s.judge.Rule(c.Path)
	switch {
	case r == nil:
		return nil
	case !c.Before.Exists():
		return s.appeared(r, c)
	case !c.After.Exists():
		return s.vanished(r, c)
	}
	err := r.CheckChange(c.Path, c.Before.Data, c.After.Data)
	if err == nil {
		return nil
	}
	// A file that was repaired: the damage that stood there is kept, with its reason.
	for _, k := range s.kept[c.Path] {
		if r.CheckRepair != nil && errors.Is(r.CheckChange(c.Path, nil, k.data), ErrUnreadable) {
			return r.CheckRepair(c.Path, c.Before.Data, c.After.Data)
		}
	}
	return err
}

// appeared judges a file that was not there before, under a name that may not
// have been used for anything else.
func (s *step) appeared(r *Rule, c Change) error {
	if r.CheckNew {
		if err := r.CheckChange(c.Path, nil, c.After.Data); err != nil && !errors.Is(err, ErrUnreadable) {
			return err // what never could be read was never a file of its kind
		}
	}
	if r.MovesTo == nil {
		return nil
	}
	twin, err := s.lookup(r.MovesTo(c.Path))
	if err != nil || !twin.Exists() || twin.ID == c.After.ID {
		return err
	}
	if r.CheckChange(c.Path, c.After.Data, twin.Data) != nil {
		return fmt.Errorf("another file of this name stands in %s", path.Dir(r.MovesTo(c.Path)))
	}
	return nil
}

func (s *step) vanished(r *Rule, c Change) error {
	if r.MovesTo != nil {
		moved, err := s.lookup(r.MovesTo(c.Path))
		if err != nil {
			return err
		}
		if moved.Exists() {
			if err := r.CheckChange(c.Path, c.Before.Data, moved.Data); err != nil {
				return fmt.Errorf("moved to %s, but %w", r.MovesTo(c.Path), err)
			}
			return nil
		}
	}
	var changed error
	for _, k := range s.kept[c.Path] {
		if k.copied {
			continue
		}
		if k.id == c.Before.ID || r.CheckChange(c.Path, c.Before.Data, k.data) == nil {
			return nil
		}
		changed = errors.New("it is in the quarantine, but not as it was")
	}
	if changed != nil {
		return changed
	}
	if errors.Is(r.CheckChange(c.Path, nil, c.Before.Data), ErrUnreadable) {
		return nil // it never was a file of its kind, or was reported when it ceased to be
	}
	if r.CheckRemoval == nil {
		return errors.New("it is gone")
	}
	return r.CheckRemoval(c.Path, c.Before.Data, s.lookup)
}

const quarantine = "quarantine/"

// kept is one file that was put into the quarantine in this step.
type kept struct {
	id     string
	data   []byte
	copied bool // what stood there was left in its place
}

// quarantined are the files that a step put into the quarantine, by the path
// that their reason names.
func quarantined(changes []Change) map[string][]kept {
	files := map[string]File{}
	for _, c := range changes {
		if strings.HasPrefix(c.Path, quarantine) && c.After.Exists() && !c.Before.Exists() {
			files[strings.TrimPrefix(c.Path, quarantine)] = c.After
		}
	}
	all := map[string][]kept{}
	for name, f := range files {
		if !strings.HasSuffix(name, reasonSuffix) {
			continue
		}
		var q state.Quarantined
		if state.Decode(name, f.Data, &q) != nil {
			continue
		}
		file, there := files[q.File]
		from, inside := strings.CutPrefix(q.Path, string(state.StateDir)+"/")
		if there && inside {
			all[from] = append(all[from], kept{file.ID, file.Data, q.Copied})
		}
	}
	return all
}

const reasonSuffix = ".reason.json"

// judgeQuarantine: what is in the quarantine never changes. It ends when a
// person has dealt with it.
func judgeQuarantine(c Change) error {
	if c.Before.Exists() && c.After.Exists() {
		return errors.New("what is in the quarantine was changed")
	}
	return nil
}
