package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/state"
)

// folderOf reports whether state/ has a folder of that name, and the kind of lock
// that protects a file of it ("" where a file is no object of its own).
func folderOf(name string) (lock state.LockKind, known bool) {
	switch name {
	case "agents":
		return state.LockAgentRecord, true
	case "work":
		return state.LockBead, true
	case "hooks":
		return state.LockHook, true
	case "convoys", "merge-queue", "dispatch", "retire", "incidents", "permissions":
		return state.LockRecord, true
	case "mail", "nudge", "handoff", "events", "quarantine":
		return "", true
	}
	return "", false
}

// checkShared looks for files of the state that have a second name in another
// folder of the rig, as a power cut leaves them where there is no journal.
func checkShared(_ context.Context, r *rig.Rig) ([]finding, error) {
	var within []string
	if r.Git != nil {
		within = append(within, r.Git.CommonDir())
	}
	shared, err := r.Tree.HardLinkedFiles(within...)
	var found []finding
	for _, s := range shared {
		found = append(found, finding{settled: true, Finding: Finding{Rule: ruleSpecial, Path: string(s.Path), Severity: Error,
			Detail: "it has a second name: " + strings.Join(s.Others, ", "), Hint: "chipset doctor --fix and chipset up give it a file of its own"},
			repair: func(context.Context) error { return r.Tree.BreakHardLinks(s) }})
	}
	return found, err
}

// checkWays looks for files that stand where the rig has a folder. Those of which
// other rules tell are left to them: locks, and an archive among the messages.
func checkWays(_ context.Context, r *rig.Rig) ([]finding, error) {
	ways, err := r.InTheWay()
	var found []finding
	for _, p := range ways {
		if p.Dir() == "." || p.Base() == "archive" || p == locksDir || p.Dir() == locksDir {
			continue
		}
		found = append(found, finding{settled: true, Finding: Finding{Rule: ruleSpecial, Path: string(p), Severity: Error, Detail: inTheWay,
			Hint: hintQuarantine}, repair: replaceByFolder(r, p)})
	}
	return found, err
}

// inTheWay is what is wrong with a file where a folder belongs.
const inTheWay = "it is a file, and not a folder"

// beside reports whether a finding says of what stands in the way of a folder once
// more what is told of it already, or speaks of what would lie in that folder.
func (f *finding) beside(way *Finding) bool {
	if way.Rule != ruleSpecial || way.Detail != inTheWay || f.repair != nil {
		return false
	}
	return f.Path == way.Path || strings.HasPrefix(f.Path, way.Path+"/")
}

// checkTree walks state/ and looks at what lies there without reading it: its
// identity, special files, second names, what does not belong, leftovers.
func checkTree(_ context.Context, r *rig.Rig) ([]finding, error) {
	var found []finding
	if err := r.Tree.Verify(); err != nil {
		found = append(found, finding{Finding: Finding{Rule: "identity", Path: "state/rig.json", Detail: err.Error(), Severity: Error,
			Hint: "the tree was moved away or replaced: put the right one back before anything runs"}})
	}
	var failed []error
	err := filepath.WalkDir(r.Tree.Abs(state.StateDir), func(at string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			failed = append(failed, err) // one folder less to look into
			return fs.SkipDir
		}
		rel, err := filepath.Rel(r.Tree.Root(), at)
		if err != nil {
			return err
		}
		p := state.Path(filepath.ToSlash(rel))
		if strings.HasPrefix(string(p), string(state.QuarantineDir)+"/") {
			return nil // anything may lie there
		}
		found = append(found, checkEntry(r, p, e)...)
		return nil
	})
	if err = errors.Join(append(failed, err)...); err != nil {
		return found, fmt.Errorf("look through state/: %w", err)
	}
	temps, err := r.Tree.TempFiles(r.Clock())
	for _, p := range temps {
		found = append(found, finding{settled: true, Finding: Finding{Rule: "leftover", Path: string(p), Severity: Warning,
			Detail: "an unfinished file whose writer is gone", Hint: "chipset doctor --fix removes it"},
			repair: func(context.Context) error { return r.Tree.Remove(p) }})
	}
	return found, err
}

func checkEntry(r *rig.Rig, p state.Path, e fs.DirEntry) []finding {
	special := func(what, hint string) finding {
		return finding{Finding: Finding{Rule: ruleSpecial, Path: string(p), Detail: what, Severity: Error, Hint: hint}}
	}
	parts := strings.Split(string(p), "/")[1:]
	if !e.IsDir() && !e.Type().IsRegular() {
		if isObject(parts) {
			return nil // its store reports it, and moves it away under its lock
		}
		f := special("it is a link, a FIFO, a socket or a device", "nothing of chipset reads or writes it; move it out of the tree")
		if len(parts) > 1 { // in place of a whole folder of state/ it hides what a person must find again
			f.Hint = hintQuarantine
			f.repair = func(context.Context) error { return quarantineOdd(r, p) }
		}
		return []finding{f}
	}
	if strings.HasPrefix(e.Name(), ".") {
		return nil // never listed; what is abandoned is a leftover
	}
	if !belongs(parts, e.IsDir()) {
		if len(parts) > 1 && !belongs(parts[:len(parts)-1], true) {
			return nil // its folder is told of
		}
		return []finding{{settled: true, Finding: Finding{Rule: "foreign", Path: string(p), Severity: Warning,
			Detail: "it is no part of the tree", Hint: "chipset leaves it alone; move it away"}}}
	}
	info, err := e.Info()
	if err != nil || e.IsDir() {
		return nil //nolint:nilerr // it vanished
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 2 && hasOtherName(r, p) {
		return []finding{special(fmt.Sprintf("it has %d names (hard links)", st.Nlink), "nothing of chipset reads it; take its other names away")}
	}
	return nil
}

// replaceByFolder moves away what stands where a folder belongs. The folder is
// made anew by the next use.
func replaceByFolder(r *rig.Rig, p state.Path) func(context.Context) error {
	return func(ctx context.Context) error { return r.ClearWay(ctx, p) }
}

// hasOtherName reports whether a file has a name that no publication left behind.
func hasOtherName(r *rig.Rig, p state.Path) bool {
	_, err := r.Tree.Read(p, state.MaxFile)
	return errors.Is(err, state.ErrHardLinked)
}

// isObject reports whether a path below state/ has the name of an object that is
// a file of its own.
func isObject(parts []string) bool {
	if len(parts) != 2 {
		return false
	}
	kind, _ := folderOf(parts[0])
	name, ok := strings.CutSuffix(parts[1], ".json")
	return kind != "" && ok && state.CheckID(name) == nil
}

// quarantineOdd moves away what is no regular file, unless one took its place.
func quarantineOdd(r *rig.Rig, p state.Path) error {
	var c *state.Corruption
	_, err := r.Tree.Read(p, state.MaxFile)
	if !errors.As(err, &c) || !errors.Is(c, state.ErrNotRegular) || errors.Is(c, state.ErrHardLinked) {
		return nil //nolint:nilerr // gone, or a file by now, which is another finding
	}
	_, err = r.Tree.Quarantine(p, c.Reason, r.Clock.Now())
	return err
}

// belongs reports whether the tree has a place for a path below state/.
func belongs(parts []string, dir bool) bool {
	if len(parts) == 0 || parts[0] == "state" || parts[0] == "" {
		return true
	}
	kind, known := folderOf(parts[0])
	name := parts[len(parts)-1]
	switch {
	case len(parts) == 1:
		return known && dir || parts[0] == "rig.json"
	case !known || len(parts) > 4:
		return false
	case kind != "" || parts[0] == "events":
		return len(parts) == 2 // what is no JSON file there, its store reports
	case len(parts) == 2:
		return dir && state.CheckID(name) == nil
	case parts[0] == "handoff":
		return len(parts) == 3
	case parts[0] == "mail":
		return len(parts) == 3 || parts[2] == "archive"
	}
	if len(parts) == 4 {
		return parts[2] == "from"
	}
	return dir && name == "from" || slices.Contains([]string{"latest.json", "seen.json"}, name)
}

// checkObjects reads every object that is a file of its own.
func checkObjects(ctx context.Context, r *rig.Rig) ([]finding, error) {
	var found []finding
	var failed []error
	collect := func(f []finding, err error) {
		if found, err = noticed(append(found, f...), err); err != nil {
			failed = append(failed, err)
		}
	}
	collect(checkStore(r, r.Agents.Store))
	collect(checkStore(r, r.Beads.Store))
	collect(checkStore(r, r.Convoys.Store))
	collect(checkStore(r, r.Queue.Store))
	collect(checkStore(r, r.Dispatch.Store))
	collect(checkStore(r, r.Retire.Store))
	collect(checkStore(r, r.Incidents.Store))
	collect(checkStore(r, r.Hooks.Store))
	collect(checkStore(r, r.Permissions.Store))
	return found, errors.Join(append(failed, ctx.Err())...)
}

// checkStore reads every object of a store and compares its bytes with the
// canonical form.
func checkStore[T any](r *rig.Rig, s *state.Store[T]) ([]finding, error) {
	entries, err := r.Tree.List(s.Dir())
	if err != nil {
		return nil, err
	}
	kind, _ := folderOf(s.Dir().Base())
	var found []finding
	for _, e := range entries {
		p := s.Dir().Join(e.Name())
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || state.CheckID(name) != nil {
			found = append(found, misnamed(r, p, e)...)
			continue
		}
		v, err := s.Get(name)
		if err != nil {
			bad := unreadable(err, func(ctx context.Context, _ *state.Corruption) error {
				return quarantineObject(ctx, r, s, kind, name)
			})
			for i := range bad {
				if kind == state.LockHook && bad[i].repair != nil && registered(r, name) {
					bad[i].Hint = "chipset doctor --fix keeps a copy in state/quarantine and makes it anew from what the beads say"
				}
			}
			found = append(found, bad...)
			continue
		}
		data, err := r.Tree.Read(p, state.MaxFile)
		if err != nil {
			continue // it vanished, or the next look says more
		}
		if want, err := state.Encode(v); err == nil && !bytes.Equal(want, data) {
			found = append(found, finding{Finding: Finding{Rule: ruleCanonical, Path: string(p), Severity: Warning,
				Detail: "another program wrote it: its bytes are not in the canonical form", Hint: "chipset doctor --fix rewrites it"},
				repair: func(ctx context.Context) error {
					_, err := s.Update(ctx, name, func(*T) error { return nil })
					return err
				}})
		}
	}
	return found, nil
}

// registered reports whether an agent has a record, be it one that can't be read.
func registered(r *rig.Rig, id string) bool {
	_, err := r.Agents.Get(id)
	return !errors.Is(err, state.ErrNotFound)
}

// misnamed reports what has no name of an object of its folder. A folder that
// was made there is moved away; a file may be somebody's note.
func misnamed(r *rig.Rig, p state.Path, e fs.DirEntry) []finding {
	c := &state.Corruption{Path: string(p), Reason: "not a name of this folder"}
	if !e.IsDir() {
		found := unreadable(c, nil)
		found[0].Hint = "chipset leaves it alone; move it out of the tree"
		return found
	}
	c.Reason, c.Cause = "it is a folder, and not a name of this folder", state.ErrNotRegular
	return unreadable(c, func(context.Context, *state.Corruption) error { return quarantineOdd(r, p) })
}

// quarantineObject moves an object away that still can't be read under its
// lock. The hook of an agent is rebuilt instead: its absence would be taken for
// corrupt.
func quarantineObject[T any](ctx context.Context, r *rig.Rig, s *state.Store[T], kind state.LockKind, name string) error {
	if kind == state.LockHook && registered(r, name) {
		return rebuildHook(ctx, r, state.AgentID(name))
	}
	l, err := r.Tree.Lock(ctx, kind, name, s.Dir())
	if err != nil {
		return err
	}
	defer l.Unlock()
	_, err = s.Get(name)
	var c *state.Corruption
	if !errors.As(err, &c) || errors.Is(c, state.ErrHardLinked) {
		return nil // whole or gone by now, or a backup shares it
	}
	_, err = r.Tree.Quarantine(s.Path(name), c.Reason, r.Clock.Now())
	return err
}
