package model

import (
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/disk"
	"github.com/gastown-chipset/chipset/state/statetest/refused"
)

// Verb is one operation of a store.
type Verb struct {
	// Do returns what the caller goes by.
	Do func(r *Run) (any, error)
	// Lock is the lock under which a file may change; without a kind it needs none.
	Lock func(p state.Path) (kind state.LockKind, name string)
	// Spares names the files and folders that Do does without if others stand in their place, and, if it overlooks these as
	// well, those that the system refuses.
	Spares    []string
	Overlooks bool
	// Tells are the types of the events that it appends to the log, each after a space.
	Tells string
}

// Obey checks what each verb owes its callers, always from what prepare has made. It
// changes files under their locks alone. If a call of the disk fails, or another call of the
// system on a file of the tree, or a file or folder can't be read, it returns an error, or all is
// as it would be without that.
func Obey(t *testing.T, prepare func(r *Run) error, verbs map[string]Verb) {
	t.Helper()
	ObeyOn(t, disk.Features{}, prepare, verbs)
}

// ObeyOn is Obey on a file system with some features.
func ObeyOn(t *testing.T, features disk.Features, prepare func(r *Run) error, verbs map[string]Verb) {
	t.Helper()
	for name, v := range verbs {
		t.Run(name, func(t *testing.T) {
			x := &explorer{scenario: Scenario{Prepare: prepare}, features: features, place: place(t), rnd: rand.New(rand.NewPCG(Seed(), 0)), seed: maphash.MakeSeed()}
			if err := x.prepare(); err != nil {
				t.Fatal(err)
			}
			o := &obedience{T: t, explorer: x, verb: v}
			calls := o.whole()
			for n, c := range calls {
				if isLog(c.Path) {
					continue // what can't be told is no reason to undo what was done
				}
				kind := IOError
				if !kind.fits(c.Op) {
					kind = FailedSync
				}
				o.check(fmt.Sprintf("%v of call %d, %s %s", kind, n, c.Op, c.Path), x.prepared, Fault{Call: n, Kind: kind}, "\x00")
			}
			o.refuseEach()
			for _, p := range slices.Sorted(maps.Keys(x.prepared)) {
				if strings.HasPrefix(p, "state/") && p != "state/rig.json" && !isLog(p) && !o.spares(p) {
					o.check(p+" can't be read", x.prepared.spoilt(p), Fault{Call: -1}, p)
				}
			}
		})
	}
}

func isLog(p string) bool { return strings.HasPrefix(p, "state/events") }

// told are the types of the events in a tree's log.
func told(files Files) (types string) {
	for _, p := range files.Names("state/events") {
		for line := range strings.Lines(string(files[p].Data)) {
			_, rest, _ := strings.Cut(line, `"type":"`)
			kind, _, _ := strings.Cut(rest, `"`)
			types += " " + kind
		}
	}
	return types
}

// obedience is the check of one verb.
type obedience struct {
	*testing.T
	*explorer
	verb Verb
	// names says that the verb chooses names by chance.
	names bool
	want  func(without string) string
	// refuse, if not 0, is which call of the system fails, and made are those that were made.
	refuse int
	made   []refused.Call
}

// whole plays the verb without a fault and returns its calls.
func (o *obedience) whole() []Call {
	o.Helper()
	var outcomes []func(string) string
	var calls []Call
	for range 2 {
		w := &watched{T: o.T, lock: o.verb.Lock}
		o.weaken = func(d disk.Disk) disk.Disk { w.Disk = d; return w }
		outcome, recorded, err := o.outcome(o.prepared, Fault{Call: -1}, w)
		if err != nil {
			o.Fatalf("without a fault: %v", err)
		}
		outcomes, calls = append(outcomes, outcome), recorded
	}
	o.weaken, o.want = nil, outcomes[0]
	o.names = outcomes[0]("\x00") != outcomes[1]("\x00")
	return calls
}

func (o *obedience) check(fault string, files Files, f Fault, without string) {
	o.Helper()
	got, _, err := o.outcome(files, f, nil)
	if err == nil && got(without) != o.want(without) {
		o.Errorf("%s: no error, but\n%s\nwithout it:\n%s", fault, got(without), o.want(without))
	}
}

// spares reports whether the verb does without a file or folder.
func (o *obedience) spares(p string) bool {
	return slices.ContainsFunc(o.verb.Spares, func(s string) bool { return strings.HasPrefix(p, s) })
}

// refuseEach lets the calls of the system fail that the verb makes on files of the tree, one after the other, and of those
// that the same lines make the first.
func (o *obedience) refuseEach() {
	o.Helper()
	o.refuse = -1 // none: there are fewer calls
	o.check("no call is refused", o.prepared, Fault{Call: -1}, "\x00")
	tried := map[string]bool{}
	for n, c := range o.made {
		_, file, _ := strings.Cut(c.What, " ")
		if tried[c.From] || isLog(file) || o.verb.Overlooks && o.spares(file) {
			continue
		}
		tried[c.From] = true
		o.refuse = n + 1
		o.check(fmt.Sprintf("call %d of the system fails, %s", n, c.What), o.prepared, Fault{Call: -1}, "\x00")
	}
	o.refuse = 0
}

// outcome is what the verb returns and leaves, but for one path and what is below it.
func (o *obedience) outcome(files Files, f Fault, w *watched) (func(without string) string, []Call, error) {
	o.Helper()
	var value any
	r, opErr, err := o.play(moment{files: files}, func(r *Run) (err error) {
		if w != nil {
			w.tree = r.Tree
		}
		do := func() { value, err = o.verb.Do(r) }
		if o.refuse == 0 {
			do()
		} else {
			o.made = refused.Calls(o.T, r.Tree.Root(), max(0, o.refuse), do)
		}
		return err
	}, f)
	if err != nil {
		o.Fatal(err)
	}
	left, err := r.read()
	if err != nil {
		o.Fatal(err)
	}
	o.drop(r)
	if tells := told(left)[len(told(o.prepared)):]; w != nil && tells != o.verb.Tells {
		o.Errorf("tells%s, not%s", tells, o.verb.Tells)
	}
	return func(without string) string {
		out := []string{fmt.Sprintf("%+v", value)}
		for _, p := range left.Names("state") {
			switch {
			case isLog(p) || p == without || strings.HasPrefix(p, without+"/"):
			case o.names:
				out = append(out, fmt.Sprintf("%s: %d bytes", state.Path(p).Dir(), len(left[p].Data)))
			default:
				out = append(out, fmt.Sprintf("%s: %s", p, left[p].Data))
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	}, r.calls, opErr
}

// spoilt is the tree with a folder in the place of a file, or the other way round.
func (f Files) spoilt(p string) Files {
	all := maps.Clone(f)
	maps.DeleteFunc(all, func(q string, _ File) bool { return strings.HasPrefix(q, p+"/") })
	file := File{node: -1}
	if !f[p].Mode.IsDir() {
		file.Mode = fs.ModeDir
	}
	all[p] = file
	return all
}

// watched is a disk on which files change under their locks.
type watched struct {
	*testing.T
	disk.Disk
	tree *state.Tree
	lock func(p state.Path) (state.LockKind, string)
}

func (w *watched) change(at string) {
	w.Helper()
	if w.lock == nil || w.tree == nil {
		return
	}
	rel, err := filepath.Rel(w.tree.Root(), at)
	p := state.Path(filepath.ToSlash(rel))
	if err != nil || !strings.HasPrefix(string(p), "state/") || isLog(string(p)) || strings.HasPrefix(p.Base(), ".") {
		return
	}
	if kind, name := w.lock(p); kind != "" && !w.tree.IsLocked(kind, name) {
		w.Errorf("%s changes without the lock %s %s", p, kind, name)
	}
}

// Pending implements disk.Disk.
func (w *watched) Pending(at string) (disk.Pending, error) { w.change(at); return w.Disk.Pending(at) }

// Append implements disk.Disk.
func (w *watched) Append(at string) (disk.File, error) { w.change(at); return w.Disk.Append(at) }

// RenameNew implements disk.Disk.
func (w *watched) RenameNew(from, to string) error { w.change(to); return w.Disk.RenameNew(from, to) }

// Remove implements disk.Disk.
func (w *watched) Remove(at string) error { w.change(at); return w.Disk.Remove(at) }
