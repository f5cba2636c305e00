// Package audit judges whether a state tree moved legally from one snapshot to
// the next. It is pure: it sees versions of files and says what could not have
// happened by the rules. The rules of each kind of file belong to the package
// of that noun; this one knows what all of them share:
//
//   - A file moves by its rule, or not at all.
//   - A file that is gone has moved to where its rule says (a message: to the
//     archive), or to the quarantine, where a reason names it. Some kinds
//     may also be taken back; their rule says when.
//   - What could be read before can be read afterwards.
//
// Many legal steps may lie between two snapshots, so a rule asks whether the
// later version can be reached from the earlier one, not whether it is one step away.
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

// There tells whether there is a file at all.
func (f File) There() bool { return f.ID != "" }

// Change is a file of which two snapshots hold different versions. Path is
// relative to state/.
type Change struct {
	Path          string
	Before, After File
}

// Snapshot answers for one whole snapshot what stands at a path.
type Snapshot func(path string) (File, error)

// Rule says how files of one kind move.
type Rule struct {
	// Patterns are those of path.Match for the files of the kind, below state/.
	Patterns []string
	// Moved returns why the later version can't follow the earlier one. A nil
	// before is a file that appears; it is asked for only where Appears is set.
	Moved func(p string, before, after []byte) error
	// Appears makes the judge ask Moved for new files too.
	Appears bool
	// MovesTo is where a file may go under the same name, or nil.
	MovesTo func(p string) string
	// Repaired judges a file instead of Moved when a damaged version of it was
	// put into the quarantine in the same step; nil means that no such file is
	// ever rebuilt.
	Repaired func(p string, before, after []byte) error
	// MayGo returns why a file may not be gone that stands nowhere else; nil
	// means that it never may.
	MayGo func(p string, before []byte, later Snapshot) error
}

// Violation is one file that did not move legally.
type Violation struct {
	// Path is relative to state/.
	Path string `json:"path"`
	// Reason is one sentence for a person.
	Reason string `json:"reason"`
}

// ErrUnreadable is what Moved wraps for a version that is no whole file of its kind.
var ErrUnreadable = errors.New("can't be read")

// Judge holds snapshots against rules.
type Judge struct{ rules []Rule }

// NewJudge makes a judge of the rules. The first one whose pattern matches
// counts; what matches none is not judged.
func NewJudge(rules ...Rule) *Judge { return &Judge{rules} }

// Rule returns the rule for a path, or nil.
func (j *Judge) Rule(p string) *Rule {
	for i := range j.rules {
		for _, pattern := range j.rules[i].Patterns {
			if ok, err := path.Match(pattern, p); ok && err == nil {
				return &j.rules[i]
			}
		}
	}
	return nil
}

// NeedsContent tells whether the judge looks into files at a path.
func (j *Judge) NeedsContent(p string) bool {
	return strings.HasPrefix(p, quarantine) || j.Rule(p) != nil
}

// LooksAt is the path that the judge asks the later snapshot for when a file
// appears or is gone, or "".
func (j *Judge) LooksAt(p string) string {
	if r := j.Rule(p); r != nil && r.MovesTo != nil {
		return r.MovesTo(p)
	}
	return ""
}

// Step judges everything that changed between two snapshots. later answers for
// the second one; its errors end the judgement.
func (j *Judge) Step(changes []Change, later Snapshot) ([]Violation, error) {
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
	judge *Judge
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
	case !c.Before.There():
		return s.appeared(r, c)
	case !c.After.There():
		return s.vanished(r, c)
	}
	err := r.Moved(c.Path, c.Before.Data, c.After.Data)
	if err == nil {
		return nil
	}
	// A file that was repaired: the damage that stood there is kept, with its reason.
	for _, k := range s.kept[c.Path] {
		if r.Repaired != nil && errors.Is(r.Moved(c.Path, nil, k.data), ErrUnreadable) {
			return r.Repaired(c.Path, c.Before.Data, c.After.Data)
		}
	}
	return err
}

// appeared judges a file that was not there before, under a name that may not
// have been used for anything else.
func (s *step) appeared(r *Rule, c Change) error {
	if r.Appears {
		if err := r.Moved(c.Path, nil, c.After.Data); err != nil && !errors.Is(err, ErrUnreadable) {
			return err // what never could be read was never a file of its kind
		}
	}
	if r.MovesTo == nil {
		return nil
	}
	twin, err := s.lookup(r.MovesTo(c.Path))
	if err != nil || !twin.There() || twin.ID == c.After.ID {
		return err
	}
	if r.Moved(c.Path, c.After.Data, twin.Data) != nil {
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
		if moved.There() {
			if err := r.Moved(c.Path, c.Before.Data, moved.Data); err != nil {
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
		if k.id == c.Before.ID || r.Moved(c.Path, c.Before.Data, k.data) == nil {
			return nil
		}
		changed = errors.New("it is in the quarantine, but not as it was")
	}
	if changed != nil {
		return changed
	}
	if errors.Is(r.Moved(c.Path, nil, c.Before.Data), ErrUnreadable) {
		return nil // it never was a file of its kind, or was told of when it ceased to be
	}
	if r.MayGo == nil {
		return errors.New("it is gone")
	}
	return r.MayGo(c.Path, c.Before.Data, s.lookup)
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
		if strings.HasPrefix(c.Path, quarantine) && c.After.There() && !c.Before.There() {
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
	if c.Before.There() && c.After.There() {
		return errors.New("what is in the quarantine was changed")
	}
	return nil
}
