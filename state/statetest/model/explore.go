package model

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/disk"
)

// explorer plays one scenario on one kind of file system.
type explorer struct {
	scenario Scenario
	features disk.Features
	weaken   func(disk.Disk) disk.Disk
	bounds   Bounds
	place    string
	figures  Figures
	rnd      *rand.Rand
	seed     maphash.Seed
	trees    int
	prepared Files
}

// moment is a state to go on from: a tree and what was promised by then.
type moment struct {
	files Files
	facts []string
}

func (x *explorer) all() error {
	if err := x.prepare(); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	r, opErr, err := x.play(moment{files: x.prepared}, x.scenario.Do, Fault{Call: -1})
	if err != nil {
		return err
	}
	defer x.drop(r)
	if opErr != nil {
		return fmt.Errorf("without any fault: %w", opErr)
	}
	found, err := x.judge(r, judging{states: x.bounds.States})
	if err != nil {
		return err
	}
	if err := x.heal(found, x.bounds.Again); err != nil {
		return err
	}
	return x.faults(r.calls)
}

// prepare makes the tree that every play begins with.
func (x *explorer) prepare() error {
	top, err := x.folder()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(top) }()
	tree, err := state.CreateOn(disk.OS{}, filepath.Join(top, ".chipset"))
	if err != nil {
		return err
	}
	if x.scenario.Prepare != nil {
		if err := x.scenario.Prepare(&Run{Context: context.Background(), Tree: tree}); err != nil {
			return err
		}
	}
	r, err := newRecorder(top, x.features)
	if err != nil {
		return err
	}
	x.prepared, err = r.read()
	return err
}

func (x *explorer) folder() (string, error) {
	x.trees++
	top := filepath.Join(x.place, strconv.Itoa(x.trees))
	return top, os.Mkdir(top, 0o755)
}

func (x *explorer) drop(r *Recorder) { _ = os.RemoveAll(r.top) }

// play puts a tree in place and records what a process does in it. opErr is
// what it returned; errKilled when it was killed.
func (x *explorer) play(from moment, do func(*Run) error, fault Fault) (r *Recorder, opErr, err error) {
	top, err := x.folder()
	if err != nil {
		return nil, nil, err
	}
	if err := from.files.write(top); err != nil {
		return nil, nil, err
	}
	if r, err = newRecorder(top, x.features); err != nil {
		return nil, nil, err
	}
	for _, fact := range from.facts {
		r.acknowledge(fact)
	}
	r.fault = fault
	return r, x.process(r, do), nil
}

// process is one process that opens the tree and does something.
func (x *explorer) process(r *Recorder, do func(*Run) error) error {
	var d disk.Disk = r
	if x.weaken != nil {
		d = x.weaken(r)
	}
	tree, err := state.OpenOn(d, filepath.Join(r.top, ".chipset"))
	if err != nil {
		return err
	}
	err = do(&Run{Context: context.Background(), Tree: tree, recorder: r})
	if r.isDead() {
		return errKilled // whatever it would have returned
	}
	return err
}

// judging says how a recording is looked at.
type judging struct {
	states int   // at most, about
	from   int   // the call to begin with: what was before is known
	opErr  error // what the recorded operation returned
	healed bool  // whether it was a recovery, which came to its end
}

// judge looks at every state that a cut at any moment of a recording could
// leave. It returns those that are different.
func (x *explorer) judge(r *Recorder, how judging) ([]moment, error) {
	moments := r.h.moments(how.from)
	share := max(4, how.states/len(moments))
	seen := map[uint64]bool{}
	var found []moment
	s, applied := newSurface(r.h), 0
	for _, end := range moments {
		for ; applied < end; applied++ {
			s.apply(applied)
		}
		last := end == len(r.h.effects)
		var broken error
		x.walk(newCrashes(s, x.seed, func(c *crashes) bool {
			x.figures.Possible++
			mark := c.print()
			if seen[mark] && !(last && how.healed) {
				return true
			}
			seen[mark] = true
			x.figures.Seen++
			crash := &Crash{Files: c.files(), facts: s.facts, Healed: how.healed && last, Cut: true}
			if last {
				crash.Err = how.opErr
			}
			if broken = x.check(r, crash); broken != nil {
				broken = fmt.Errorf("cut after %s:\n%w", r.told(end), broken)
				return false
			}
			found = append(found, moment{files: crash.Files, facts: append([]string(nil), s.facts...)})
			return true
		}), share)
		if broken != nil {
			return nil, broken
		}
	}
	return found, nil
}

// moments lists after how many effects a cut can leave something new, beginning
// with a call.
func (h *history) moments(from int) []int {
	var moments []int
	for i := range len(h.effects) {
		if i == 0 && from == 0 || i > 0 && h.effects[i-1].call >= from && !quiet(h.effects[i-1].kind) {
			moments = append(moments, i)
		}
	}
	return append(moments, len(h.effects))
}

// quiet effects only make durable what was open before.
func quiet(k effectKind) bool {
	return k == synced || k == syncedDir || k == barrier || k == flushed
}

// walk visits all states of a moment, or a part of them by chance.
func (x *explorer) walk(c *crashes, most int) {
	whole := c.visit
	n, ok := 0, true
	c.visit = func(c *crashes) bool {
		n++
		ok = whole(c)
		return ok
	}
	if c.walk(most) || !ok {
		return
	}
	x.figures.Drawn++
	for range most {
		if !c.draw(x.rnd) {
			return
		}
	}
}

// check judges one tree.
func (x *explorer) check(r *Recorder, c *Crash) error {
	err := r.h.torn(c.Files)
	if err == nil {
		err = x.scenario.Check(c)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("    %w\n    promised: %v, healed: %t, the operation's error: %v\n%s", err, c.facts, c.Healed, c.Err, c.Files) //nolint:errorlint // told, not wrapped
}

// told lists the calls before a moment, for a person.
func (r *Recorder) told(i int) string {
	text := ""
	for n, call := range r.calls {
		if i > 0 && n > r.h.effects[i-1].call || i == 0 {
			break
		}
		text += "\n      " + call.Op + " " + call.Path
	}
	return text
}

// heal lets the next start go on from a sample of what crashes left, and cuts
// some of those again in the middle.
func (x *explorer) heal(found []moment, again int) error {
	if x.scenario.Heal == nil {
		return nil
	}
	x.rnd.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	for i, m := range found[:min(len(found), x.bounds.Heals)] {
		x.figures.Healed++
		r, opErr, err := x.play(m, x.scenario.Heal, Fault{Call: -1})
		if err != nil {
			return err
		}
		if err := x.healed(r, opErr, i < again); err != nil {
			return fmt.Errorf("after a cut that left\n%s    the next start: %w", m.files, err)
		}
		x.drop(r)
	}
	return nil
}

// healed judges the tree after a recovery, and after a cut of the recovery when
// deeper is set.
func (x *explorer) healed(r *Recorder, opErr error, deeper bool) error {
	if opErr != nil {
		return opErr
	}
	if err := x.visible(r, nil, true); err != nil {
		return err
	}
	if !deeper {
		return nil
	}
	found, err := x.judge(r, judging{states: x.bounds.Fewer, healed: true})
	if err != nil {
		return err
	}
	return x.heal(found, 0)
}

// visible judges what a process leaves that dies without a cut.
func (x *explorer) visible(r *Recorder, opErr error, healed bool) error {
	files, err := r.read()
	if err != nil {
		return err
	}
	s := newSurface(r.h)
	for i := range r.h.effects {
		s.apply(i)
	}
	failed := opErr != nil && !errors.Is(opErr, errKilled) && r.stuck == nil
	if err := x.check(r, &Crash{Files: files, facts: s.facts, Healed: healed, Err: opErr, Failed: failed}); err != nil {
		return fmt.Errorf("without a cut, after %s:\n%w", r.told(len(r.h.effects)), err)
	}
	return nil
}

// faults repeats the operation with each fault at each of its calls, or with a
// part of them by chance.
func (x *explorer) faults(calls []Call) error {
	var all []Fault
	for call := range calls {
		for kind := KillBefore; kind <= ShortWrite; kind++ {
			if kind.fits(calls[call].Op) {
				all = append(all, Fault{Call: call, Kind: kind})
			}
		}
	}
	x.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, fault := range all[:min(len(all), x.bounds.Faults)] {
		if err := x.faulty(fault); err != nil {
			return fmt.Errorf("%v at call %d (%s %s): %w", fault.Kind, fault.Call, calls[fault.Call].Op, calls[fault.Call].Path, err)
		}
	}
	return nil
}

// faulty plays the operation with a fault, judges what it leaves with and
// without a cut, and lets the next process go on without one.
func (x *explorer) faulty(fault Fault) error {
	x.figures.Faults++
	if fault.Kind == KillBefore || fault.Kind == KillAfter {
		x.figures.Kills++
	}
	r, opErr, err := x.play(moment{files: x.prepared}, x.scenario.Do, fault)
	if err != nil {
		return err
	}
	defer x.drop(r)
	if errors.Is(opErr, errKilled) && fault.Kind != KillBefore && fault.Kind != KillAfter {
		return fmt.Errorf("the model's own error came back: %w", opErr)
	}
	if opErr == nil && r.spoilt {
		return errors.New("a failed close, which can be the only word of a failed write, was not reported")
	}
	if err := x.visible(r, opErr, false); err != nil {
		return err
	}
	r.revive()
	if _, err := x.judge(r, judging{states: x.bounds.Fewer, from: fault.Call, opErr: opErr}); err != nil {
		return err
	}
	if x.scenario.Heal == nil {
		return nil
	}
	x.figures.Healed++
	begin := len(r.calls)
	if err := x.process(r, x.scenario.Heal); err != nil {
		return fmt.Errorf("the next start: %w", err)
	}
	if err := x.visible(r, nil, true); err != nil {
		return err
	}
	_, err = x.judge(r, judging{states: x.bounds.Fewer, from: begin, healed: true})
	return err
}
