package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
)

// sharedFiles looks for files of the state that have a second name in another
// folder of the rig, as a power cut leaves them where there is no journal.
func (l *inspection) sharedFiles(context.Context) error {
	var within []string
	if l.r.Git != nil {
		within = append(within, l.r.Git.CommonDir())
	}
	shared, err := l.r.Tree.HardLinkedFiles(within...)
	for _, s := range shared {
		l.addSettled(ruleSpecial, s.Path, Error, "chipset doctor --fix and chipset up give it a copy of its own",
			"it has a second name (hard link): %s", strings.Join(s.Others, ", ")).repair = func(context.Context) error { return l.r.Tree.BreakHardLinks(s) }
	}
	return err
}

// filesForFolders looks for files in the place of the rig's folders. Locks, and the archive
// of a mailbox, have rules of their own.
func (l *inspection) filesForFolders(context.Context) error {
	paths, err := l.r.InTheWay()
	for _, p := range paths {
		if p.Dir() != "." && p.Base() != "archive" && p != locksDir && p.Dir() != locksDir {
			l.addSettled(ruleSpecial, p, Error, hintQuarantine, inTheWay).repair = replaceByFolder(l.r, p)
		}
	}
	return err
}

// inTheWay is what is wrong with a file where a folder belongs.
const inTheWay = "it is a file, and not a folder"

// beside reports whether a finding repeats one about a file in the place of a folder, or is
// about something in that folder.
func (f *finding) beside(way *Finding) bool {
	if way.Rule != ruleSpecial || way.Detail != inTheWay || f.repair != nil {
		return false
	}
	return f.Path == way.Path || strings.HasPrefix(f.Path, way.Path+"/")
}

// tree walks state/ and looks at what lies there without reading it: its
// identity, special files, second names, what does not belong, leftovers.
func (l *inspection) tree(context.Context) error {
	r := l.r
	if err := r.Tree.Verify(); err != nil {
		l.add("identity", "state/rig.json", Error, "the tree was moved away or replaced: put the right one back before you start anything", "%v", err)
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
		if p := state.Path(filepath.ToSlash(rel)); p.Dir() != state.QuarantineDir { // where anything may be
			l.entry(p, e)
		} else if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err = errors.Join(append(failed, err)...); err != nil {
		return fmt.Errorf("look through state/: %w", err)
	}
	temps, err := r.Tree.TempFiles(r.Clock())
	for _, p := range temps {
		l.addSettled("leftover", p, Warning, "", "it is an unfinished file whose writer has ended").repair =
			func(context.Context) error { return r.Tree.Remove(p) }
	}
	return err
}

func (l *inspection) entry(p state.Path, e fs.DirEntry) {
	if !e.IsDir() && !e.Type().IsRegular() {
		if isObject(l.r, p) {
			return // its store reports it, and moves it away under its lock
		}
		f := l.add(ruleSpecial, p, Error, "chipset does not read or write it; move it out of the tree", "it is a link, a FIFO, a socket or a device")
		if p.Dir() != state.StateDir { // in the place of a whole folder of state/ it hides what a person must find again
			f.Hint = hintQuarantine
			f.repair = func(context.Context) error { return quarantineOdd(l.r, p) }
		}
		return
	}
	if state.IsTemp(e.Name()) {
		l.unfinished(p, e)
		return
	}
	if !rig.Belongs(p, e.IsDir()) {
		if rig.Belongs(p.Dir(), true) { // otherwise its folder is reported
			l.addSettled("foreign", p, Warning, "chipset leaves it alone; move it away", "it is not part of the tree")
		}
		return
	}
	info, err := e.Info()
	if err != nil || e.IsDir() {
		return // it vanished
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 2 && hasOtherName(l.r, p) {
		l.add(ruleSpecial, p, Error, "chipset does not read it; remove its other names", "it has %d names (hard links)", st.Nlink)
	}
}

// foreignTempAge is the age from which an unfinished file of another program is reported.
const foreignTempAge = time.Hour

// unfinished reports a temp file that another program has left behind. Those of this
// program are reported as leftovers.
func (l *inspection) unfinished(p state.Path, e fs.DirEntry) {
	info, err := e.Info()
	if err != nil || e.IsDir() || !strings.HasSuffix(e.Name(), ".tmp") {
		return // it vanished: its writer finished
	}
	if age := l.r.Clock().Sub(info.ModTime()); age > foreignTempAge {
		l.add("foreign", p, Warning, "if that program has ended, remove it", "it is an unfinished file of another program, %s old", age.Round(time.Minute))
	}
}

// replaceByFolder moves away what stands in the place of a folder. The next use makes the
// folder again.
func replaceByFolder(r *rig.Rig, p state.Path) func(context.Context) error {
	return func(ctx context.Context) error { return r.ClearWay(ctx, p) }
}

// hasOtherName reports whether a file has a second name that is not left over from its publication.
func hasOtherName(r *rig.Rig, p state.Path) bool {
	_, err := r.Tree.Read(p, state.MaxFile)
	return errors.Is(err, state.ErrHardLinked)
}

// isObject reports whether a path is that of an object in a folder of objects.
func isObject(r *rig.Rig, p state.Path) bool {
	name, ok := strings.CutSuffix(p.Base(), ".json")
	return ok && state.CheckID(name) == nil && slices.ContainsFunc(objectFolders(r), func(o objectFolder) bool { return o.dir == p.Dir() })
}

// quarantineOdd moves away what is not a regular file, unless one took its place.
func quarantineOdd(r *rig.Rig, p state.Path) error {
	var c *state.Corruption
	_, err := r.Tree.Read(p, state.MaxFile)
	if !errors.As(err, &c) || !errors.Is(c, state.ErrNotRegular) || errors.Is(c, state.ErrHardLinked) {
		return nil //nolint:nilerr // gone, or a file by now, which is another finding
	}
	_, err = r.Tree.Quarantine(p, c.Reason, r.Clock.Now())
	return err
}

// objectFolder is the folder of a store, with the check of everything in it.
type objectFolder struct {
	dir   state.Path
	check func(l *inspection) error
}

func folderOf[T any](s *state.Store[T]) objectFolder {
	return objectFolder{s.Dir(), func(l *inspection) error { return checkStore(l, s) }}
}

func objectFolders(r *rig.Rig) []objectFolder {
	return []objectFolder{
		folderOf(r.Agents.Store), folderOf(r.Beads.Store), folderOf(r.Convoys.Store), folderOf(r.Queue.Store), folderOf(r.Dispatch.Store),
		folderOf(r.Retire.Store), folderOf(r.Incidents.Store), folderOf(r.Hooks.Store), folderOf(r.Permissions.Store), folderOf(r.Pauses.Store), folderOf(r.Spend.Store),
	}
}

// objects reads every object that is a file of its own.
func (l *inspection) objects(ctx context.Context) error {
	var failed []error
	for _, o := range objectFolders(l.r) {
		failed = append(failed, l.notice(o.check(l)))
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// checkStore reads every object of a store and compares its bytes with the
// canonical form.
func checkStore[T any](l *inspection, s *state.Store[T]) error {
	entries, err := l.r.Tree.List(s.Dir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := s.Dir().Join(e.Name())
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || state.CheckID(name) != nil {
			l.misnamed(p, e)
			continue
		}
		v, err := s.Get(name)
		if err != nil {
			unreadableObject(l, s, name, err)
		} else if !l.isCanonical(p, v) {
			l.add(ruleCanonical, p, Warning, "", "it is not in canonical form: another program wrote it").repair =
				func(ctx context.Context) error {
					_, err := s.Update(ctx, name, func(*T) error { return nil })
					return err
				}
		}
	}
	return nil
}

// unreadableObject reports an object that can't be read. The hook of an agent is rebuilt,
// because an agent must have one.
func unreadableObject[T any](l *inspection, s *state.Store[T], name string, err error) {
	rebuild := s.Dir() == hook.Dir && registered(l.r, name)
	f := l.addUnreadable(err, func(ctx context.Context, _ *state.Corruption) error {
		if rebuild {
			return rebuildHook(ctx, l.r, state.AgentID(name))
		}
		return s.Quarantine(ctx, name, l.r.Clock.Now())
	})
	if f != nil && f.repair != nil && rebuild {
		f.Hint = "chipset doctor --fix keeps a copy in state/quarantine and rebuilds it from the beads"
	}
}

// registered reports whether an agent has a record, readable or not.
func registered(r *rig.Rig, id string) bool {
	_, err := r.Agents.Get(id)
	return !errors.Is(err, state.ErrNotFound)
}

// misnamed reports an entry whose name is not that of an object. A folder is moved away; a
// file may be somebody's note.
func (l *inspection) misnamed(p state.Path, e fs.DirEntry) {
	c := &state.Corruption{Path: string(p), Reason: "its name is not that of an object of this folder"}
	if e.IsDir() {
		c.Reason, c.Cause = "it is a folder, among objects that are files", state.ErrNotRegular
		l.addUnreadable(c, func(context.Context, *state.Corruption) error { return quarantineOdd(l.r, p) })
	} else if f := l.addUnreadable(c, nil); f != nil {
		f.Hint = "chipset leaves it alone; move it out of the tree"
	}
}
