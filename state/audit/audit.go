// Package audit checks that a state tree changed only in legal ways from one snapshot
// to the next. It is pure: it compares versions of files. The rule for each kind of
// file belongs to the package of that kind; this package checks what they have in common:
//
//   - A file changes as its rule allows.
//   - A file that is missing was moved to where its rule says (a message: to the
//     archive), or to the quarantine, where a reason names it. Files of some kinds
//     may also be removed; their rule says when.
//   - A file that was readable stays readable.
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
	// ID identifies the content. It is "" if there is no file.
	ID   string
	Data []byte
}

// Exists reports whether there is a file.
func (f File) Exists() bool { return f.ID != "" }

// Change is a file that differs between two snapshots. Path is relative to state/.
type Change struct {
	Path          string
	Before, After File
}

// Snapshot returns the file at a path of one snapshot.
type Snapshot func(path string) (File, error)

// Rule says how files of one kind may change.
type Rule struct {
	// Patterns match the files of the kind, relative to state/, as path.Match does.
	Patterns []string
	// CheckChange returns an error unless after can follow before. before is nil for a
	// new file; the checker passes that only if CheckNew is set.
	CheckChange func(p string, before, after []byte) error
	// CheckNew makes the checker call CheckChange for new files too.
	CheckNew bool
	// MovesTo returns where a file may be moved, or is nil if it may not be moved.
	MovesTo func(p string) string
	// CheckRepair replaces CheckChange if a damaged version of the file was
	// put into the quarantine in the same step. It is nil if such files are never
	// repaired.
	CheckRepair func(p string, before, after []byte) error
	// CheckRemoval returns an error unless a file may be removed. It is nil if it never
	// may.
	CheckRemoval func(p string, before []byte, later Snapshot) error
}

// Violation is a change that the rule of the file does not allow.
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

// NewChecker returns a checker. Each file is checked by the first rule that matches its
// path, if there is one.
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

// Check checks all changes between two snapshots. later is the second one; an error of
// later ends the check and is returned.
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

// step is the check of one step between snapshots.
type step struct {
	judge *Checker
	later Snapshot
	kept  map[string][]kept
	after map[string]File
}

// lookupError distinguishes an error of Snapshot from a violation.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }

// lookup returns the file at a path after the step.
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
	// A repaired file: its damaged version is in the quarantine.
	for _, k := range s.kept[c.Path] {
		if r.CheckRepair != nil && errors.Is(r.CheckChange(c.Path, nil, k.data), ErrUnreadable) {
			return r.CheckRepair(c.Path, c.Before.Data, c.After.Data)
		}
	}
	return err
}

// appeared checks a new file. Its name must not belong to another file that was moved.
func (s *step) appeared(r *Rule, c Change) error {
	if r.CheckNew {
		if err := r.CheckChange(c.Path, nil, c.After.Data); err != nil && !errors.Is(err, ErrUnreadable) {
			return err // a file that was never readable is not of this kind
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
		return fmt.Errorf("there is another file of this name in %s", path.Dir(r.MovesTo(c.Path)))
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
		changed = errors.New("it was moved to the quarantine with another content")
	}
	if changed != nil {
		return changed
	}
	if errors.Is(r.CheckChange(c.Path, nil, c.Before.Data), ErrUnreadable) {
		return nil // it was never readable, or its damage was reported earlier
	}
	if r.CheckRemoval == nil {
		return errors.New("it was removed")
	}
	return r.CheckRemoval(c.Path, c.Before.Data, s.lookup)
}

const quarantine = "quarantine/"

// kept is one file that was put into the quarantine in this step.
type kept struct {
	id     string
	data   []byte
	copied bool // the original was left in place
}

// quarantined returns the files that a step put into the quarantine, by their original
// paths.
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

// judgeQuarantine returns an error if a file in the quarantine changed. It may be
// removed, by a person.
func judgeQuarantine(c Change) error {
	if c.Before.Exists() && c.After.Exists() {
		return errors.New("a file in the quarantine was changed")
	}
	return nil
}
