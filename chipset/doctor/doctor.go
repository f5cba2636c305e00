package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
)

// Severity is what a finding means for the rig.
type Severity string

// Severities of findings.
const (
	// Info: worth knowing, nothing is wrong.
	Info Severity = "info"
	// Warning: a person should look, or the next start repairs it.
	Warning Severity = "warning"
	// Error: a rule of the state tree is broken.
	Error Severity = "error"
)

func (s Severity) rank() int { return slices.Index([]Severity{Info, Warning, Error}, s) }

// Finding is one problem that the doctor found.
type Finding struct {
	// Rule names what was checked, for example "bead-hook".
	Rule string `json:"rule"`
	// Path is relative to .chipset, or names a ref or a folder of git.
	Path     string   `json:"path"`
	Detail   string   `json:"detail"`
	Severity Severity `json:"severity"`
	// Fixed is true when it has just been repaired.
	Fixed bool `json:"fixed"`
	// Repair is what --fix does, or did, about it.
	Repair string `json:"repair"`
	// Hint says what a person can do about it.
	Hint string `json:"hint,omitempty"`
}

// finding is a Finding with its repair.
type finding struct {
	Finding
	// settled is true if the finding can't be a passing moment of a running rig: one look is enough.
	settled bool
	// repair repairs it without loss, or is nil.
	repair func(ctx context.Context) error
	// doubtful is true if the disk failed during the repair. Even if the repair seems to
	// have worked, it may be lost with the next power cut.
	doubtful bool
}

func (f *finding) key() [3]string { return [3]string{f.Rule, f.Path, f.Detail} }

// In a running rig, two objects that change one after the other contradict each other
// for moments. A contradiction is reported if it is still there after so many more
// looks, with this pause between them.
const (
	looksAgain = 3
	lookPause  = 150 * time.Millisecond
)

// While no agent runs, only a person's command can be in the middle of something, which
// takes milliseconds.
const (
	looksAgainQuiet = 1
	lookPauseQuiet  = 50 * time.Millisecond
)

// patience is how often a check looks again, and the pause before each look.
type patience struct {
	looks int
	pause time.Duration
}

// patienceWith returns less patience for a rig in which no agent runs.
func patienceWith(r *rig.Rig, pause time.Duration) patience {
	agents, _, err := r.Agents.All()
	if err != nil || slices.ContainsFunc(agents, func(a agent.Agent) bool { _, alive := r.Alive(a.ID); return alive }) {
		return patience{looksAgain, pause}
	}
	return patience{looksAgainQuiet, min(pause, lookPauseQuiet)}
}

// check looks once at one group of rules, and returns what it finds.
type check func(ctx context.Context, r *rig.Rig) ([]finding, error)

// maxRounds bounds how often --fix looks again, because a repair can make
// another one possible: a bead in quarantine frees a hook.
const maxRounds = 6

// Doctor checks every rule of the state tree. With fix it repairs what can be
// repaired without loss, and never deletes what it does not understand. It may
// be killed at any time and run again, also while the rig runs. It returns the
// findings, worst first, and an error if it could not look at everything.
func Doctor(ctx context.Context, r *rig.Rig, fix bool) ([]Finding, error) {
	return examine(ctx, r, fix, lookPause)
}

func examine(ctx context.Context, r *rig.Rig, fix bool, pause time.Duration) ([]Finding, error) {
	if fix && r.Git != nil && r.CopyOf() != "" { // before a repair mistakes the other rig's processes for this one's
		if err := r.Settle(); err != nil {
			return nil, err
		}
	}
	var d diagnosis
	var err error
	for range maxRounds {
		var all []finding
		all, err = round(ctx, r, fix, pause)
		if progress := d.add(all); !fix || !progress || ctx.Err() != nil {
			break
		}
	}
	return d.findings(), err
}

// diagnosis collects the findings of all rounds.
type diagnosis struct {
	fixed, doubtful []Finding
	standing        []Finding // in the last round
}

// add takes the findings of a round, and reports whether anything was repaired.
func (d *diagnosis) add(all []finding) (progress bool) {
	before := len(d.fixed)
	d.standing = nil
	for i := range all {
		switch f := &all[i]; {
		case f.Fixed:
			d.fixed = append(d.fixed, f.Finding)
		case f.doubtful:
			d.doubtful = append(d.doubtful, f.Finding)
		default:
			d.standing = append(d.standing, f.Finding)
		}
	}
	return len(d.fixed) > before
}

// findings returns those of all rounds, worst first. A doubtful repair that a later round
// has repeated is no longer in doubt; one that no later round saw again still is.
func (d *diagnosis) findings() []Finding {
	found := append([]Finding{}, withoutRepeats(slices.Concat(d.fixed, d.doubtful, d.standing))...)
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(b.Severity.rank()-a.Severity.rank(), strings.Compare(a.Path, b.Path))
	})
	return found
}

// round runs every check once, and repairs what it finds.
func round(ctx context.Context, r *rig.Rig, fix bool, pause time.Duration) ([]finding, error) {
	var found []finding
	var failed []error
	for _, g := range table() {
		if ctx.Err() != nil {
			failed = append(failed, ctx.Err())
			break
		}
		seen, err := settle(ctx, r, g.run, patienceWith(r, pause))
		if err != nil {
			failed = append(failed, err)
		}
		for i := range seen {
			if slices.ContainsFunc(found, func(way finding) bool { return seen[i].beside(&way.Finding) }) {
				continue
			}
			seen[i].explain()
			if fix && err == nil { // on half a look nothing is repaired
				seen[i].runRepair(ctx)
			}
			found = append(found, seen[i])
		}
	}
	return found, once(failed)
}

// explain completes a finding with what --fix does about it, and a hint.
func (f *finding) explain() {
	rule, _ := ruleOf(f.Rule)
	f.Repair = rule.Repair
	if f.repair == nil && !strings.HasPrefix(rule.Repair, byHand) {
		f.Repair = byHand + "this one needs a person"
	}
	if advice, manual := strings.CutPrefix(rule.Repair, byHand); f.Hint == "" && manual {
		f.Hint = advice
	}
	if f.Hint == "" && f.repair != nil {
		f.Hint = "chipset doctor --fix " + rule.Repair
	}
}

// once joins errors, and names an error that several checks met only once.
func once(failed []error) error {
	known := map[string]bool{}
	return errors.Join(slices.DeleteFunc(failed, func(err error) bool {
		repeated := known[err.Error()]
		known[err.Error()] = true
		return repeated
	})...)
}

// inspection is one run of a check, with its findings.
type inspection struct {
	r     *rig.Rig
	found []finding
}

// inspecting makes a check of a method that needs no records.
func inspecting(at func(*inspection, context.Context) error) check {
	return func(ctx context.Context, r *rig.Rig) ([]finding, error) {
		l := &inspection{r: r}
		err := at(l, ctx)
		return l.found, err
	}
}

// add adds a finding. Without a hint, the repair of its rule is one.
func (l *inspection) add(rule string, p state.Path, sev Severity, hint, format string, args ...any) *finding {
	l.found = append(l.found, finding{Finding: Finding{Rule: rule, Path: string(p), Severity: sev, Hint: hint, Detail: fmt.Sprintf(format, args...)}})
	return &l.found[len(l.found)-1]
}

// addSettled is add for a finding that needs no second look.
func (l *inspection) addSettled(rule string, p state.Path, sev Severity, hint, format string, args ...any) *finding {
	f := l.add(rule, p, sev, hint, format, args...)
	f.settled = true
	return f
}

// addUnreadable adds a finding for an error of a store. It returns nil if the file has
// vanished.
func (l *inspection) addUnreadable(err error, repair func(ctx context.Context, c *state.Corruption) error) *finding {
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	l.found = append(l.found, unreadable(err, repair))
	return &l.found[len(l.found)-1]
}

// notice turns a corruption into a finding, and returns any other error.
func (l *inspection) notice(err error) error {
	if errors.Is(err, state.ErrCorrupt) {
		l.addUnreadable(err, nil)
		return nil
	}
	return err
}

// Standing counts the errors among the findings that were not repaired.
func Standing(found []Finding) int {
	n := 0
	for _, f := range found {
		if f.Severity == Error && !f.Fixed {
			n++
		}
	}
	return n
}

// Repairable reports whether --fix can repair one of the findings.
func Repairable(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return !f.Fixed && !strings.HasPrefix(f.Repair, byHand) })
}

// settle runs a check, again and again, and returns the findings that stay.
func settle(ctx context.Context, r *rig.Rig, look check, p patience) ([]finding, error) {
	seen, err := look(ctx, r)
	for range p.looks {
		if err != nil || !slices.ContainsFunc(seen, func(f finding) bool { return !f.settled }) {
			return seen, err
		}
		timer := time.NewTimer(p.pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return seen, ctx.Err()
		case <-timer.C:
		}
		again, err := look(ctx, r)
		if err != nil {
			return seen, err
		}
		still := map[[3]string]bool{}
		for i := range again {
			still[again[i].key()] = true
		}
		seen = slices.DeleteFunc(seen, func(f finding) bool { return !still[f.key()] })
	}
	return seen, err
}

func (f *finding) runRepair(ctx context.Context) {
	if f.repair == nil {
		return
	}
	if err := f.repair(ctx); err != nil {
		f.doubtful = diskFailed(err)
		f.Repair = byHand + "it could not be repaired now"
		f.Hint = strings.TrimSpace("could not be repaired: " + err.Error() + ". " + f.Hint)
		return
	}
	f.Fixed = true
}

func diskFailed(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// withoutRepeats keeps the first of the findings that two checks made about the same
// unreadable file, or two rounds about the same fault.
func withoutRepeats(found []Finding) []Finding {
	known := map[string]bool{}
	return slices.DeleteFunc(found, func(f Finding) bool {
		key := f.Path
		if f.Rule != ruleUnreadable && f.Rule != ruleSpecial {
			key += "\x00" + f.Rule + "\x00" + f.Detail
		}
		repeated := known[key]
		known[key] = true
		return repeated
	})
}

// Rules that several checks share.
const (
	ruleUnreadable = "unreadable"
	ruleSpecial    = "special-file"
	ruleCanonical  = "canonical-form"
)

const hintQuarantine = "chipset doctor --fix " + toQuarantine

// unreadable makes a finding of an error of a store.
func unreadable(err error, repair func(ctx context.Context, c *state.Corruption) error) finding {
	var c *state.Corruption
	if !errors.As(err, &c) {
		c = &state.Corruption{Path: string(state.StateDir), Reason: err.Error(), Cause: fmt.Errorf("%w: %w", state.ErrRefused, err)}
		if at := new(fs.PathError); errors.As(err, &at) {
			c.Path = at.Path
		}
	}
	f := finding{Finding: Finding{Rule: ruleUnreadable, Path: c.Path, Detail: c.Reason, Severity: Error}}
	switch {
	case errors.Is(c, state.ErrRefused) && !errors.Is(c, fs.ErrPermission):
		repair = nil
		f.Hint = "the system can't read it: check the disk (dmesg), or restore the file from a snapshot"
	case errors.Is(c, state.ErrRefused):
		repair = nil
		f.Hint = "chipset may not read it: give it back to the user who runs the rig (ls -l shows its owner)"
	case errors.Is(c, state.ErrHardLinked):
		// A backup that shares files by hard links must not cost the whole tree.
		f.Rule, repair = ruleSpecial, nil
		f.Hint = "chipset does not read it: remove its other name (in .chipset: find . -samefile " + c.Path + ")"
	case errors.Is(c, state.ErrNotRegular):
		f.Rule = ruleSpecial
		f.Hint = "chipset does not read it: move it out of the tree"
	}
	if repair != nil {
		f.Hint = hintQuarantine
		f.repair = func(ctx context.Context) error { return repair(ctx, c) }
	}
	return f
}
