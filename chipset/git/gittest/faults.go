package gittest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state/statetest"
	"github.com/gastown-chipset/chipset/state/statetest/refused"
)

// Faults puts a script before git in PATH that makes one of its runs fail.
type Faults struct {
	dir string
	// tried are the command lines that have failed, without the names of objects in them.
	tried map[string]bool
}

// killed counts its runs. The one that is to fail ends as by the kernel that is out of memory. Of those that
// answer many questions the first ends after some lines of them, and all others at once.
const killed = `#!/bin/sh
echo "$*" >>%[1]s/runs
if read -r n <%[1]s/fail && [ "$n" -gt 0 ] && [ "$(wc -l <%[1]s/runs)" -eq "$n" ]; then
	kill -KILL $$
fi
case "$*" in *"cat-file --batch-command"*|*"diff-tree --stdin"*)
	if read -r n <%[1]s/answers; then
		[ "$n" -eq 0 ] && kill -KILL $$
		echo 0 >%[1]s/answers
		sed -u "${n}q" | %[2]s "$@"
		exit
	fi ;;
esac
exec %[2]s "$@"
`

// NewFaults changes PATH, so the test can't be parallel. A repository that is opened
// afterwards runs the script.
func NewFaults(t *testing.T) *Faults {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	f := &Faults{dir: Dir(t), tried: map[string]bool{}}
	bin := filepath.Join(f.dir, "bin")
	Write(t, f.dir, "bin/git", fmt.Sprintf(killed, f.dir, git))
	if err := os.Chmod(filepath.Join(bin, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.fail(t, 0)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return f
}

// fail makes the nth run from now on fail, counted from 1; 0 is none.
func (f *Faults) fail(t *testing.T, n int) {
	t.Helper()
	Write(t, f.dir, "runs", "")
	Write(t, f.dir, "fail", strconv.Itoa(n)+"\n")
	f.answer(t, "")
}

// answer makes coprocesses end after n lines, or not at all for "".
func (f *Faults) answer(t *testing.T, n string) {
	t.Helper()
	Write(t, f.dir, "answers", n)
}

// Play is an action that is repeated with faults.
type Play struct {
	// World is the folder that Do changes.
	World string
	// Do performs the action as a new process would, and returns its result.
	Do func() (any, error)
	// Standing describes the state of the world afterwards.
	Standing func() string
	// Once is true if an action that failed is not repeated.
	Once bool
}

// Sweep plays the same again and again, always from the same beginning, and kills another
// run of git each time. If Do returns no error, all is as without a fault. If it does, it
// is done once more on what the failure has left, and then all is so. Without CHIPSET_FULL
// this and the other sweeps play a fifth of their faults to that end. Of the others this one and that of Refusals play
// those that are new, but only until there is an error.
func (f *Faults) Sweep(t *testing.T, p Play) {
	t.Helper()
	f.fail(t, 0)
	s := newSweep(t, p)
	runs, err := os.ReadFile(filepath.Join(f.dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	for n, args := range slices.Collect(strings.Lines(string(runs))) {
		args = regexp.MustCompile("[0-9a-f]{40}").ReplaceAllString(args, "HASH")
		if s.once = !s.drawn(); s.once && f.tried[args] {
			continue
		}
		f.tried[args] = true
		s.restore()
		f.fail(t, n+1)
		s.play(fmt.Sprintf("run %d of git is killed", n+1), func() { f.fail(t, 0) })
	}
	s.once = false
	s.restore()
}

// Silence is Sweep with another fault: no git answers any question after the first few, of up to most lines.
func (f *Faults) Silence(t *testing.T, p Play, most int) {
	t.Helper()
	f.fail(t, 0)
	s := newSweep(t, p)
	for n := range most + 1 {
		s.restore()
		f.answer(t, strconv.Itoa(n)+"\n")
		s.play(fmt.Sprintf("git has answered %d questions", n), func() { f.answer(t, "") })
	}
	s.restore()
}

// Spoil is Sweep with another fault: one of the files below a folder of the world, or one
// of the folders, of before or of afterwards, can be neither read nor written, for the
// other kind stands in its place. skip names those that stay as they are.
func Spoil(t *testing.T, p Play, below string, skip func(name string) bool) {
	t.Helper()
	s := newSweep(t, p)
	isFolder := map[string]bool{}
	for _, top := range []string{p.World, s.saved} {
		err := filepath.WalkDir(filepath.Join(top, below), func(path string, d fs.DirEntry, err error) error {
			if err == nil && (d.IsDir() || d.Type().IsRegular()) {
				path, err = filepath.Rel(top, path)
				isFolder[path] = d.IsDir()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(isFolder)) {
		if !skip(filepath.ToSlash(name)) && s.drawn() {
			s.restore()
			s.play(name+" is spoilt", s.spoil(filepath.Join(p.World, name), isFolder[name]))
		}
	}
	s.restore()
	_ = os.RemoveAll(p.World + ".aside")
}

// Refusals let calls of this process on files fail, not those of git.
type Refusals struct {
	// Within names the files of which the lines tell calls apart, "/execute/"; what lies below has tests of its own. Without
	// it all lines do.
	Within string
	// Depth is how many of these lines count, from the call outwards; 0 is all.
	Depth int
	// tried are the lines that made a call which has failed.
	tried map[string]bool
}

// lines are those that made a call, as far as they tell it from others.
func (f *Refusals) lines(c refused.Call) string {
	all := slices.DeleteFunc(strings.Fields(c.From), func(line string) bool { return !strings.Contains(line, f.Within) })
	if f.Depth > 0 {
		all = all[:min(f.Depth, len(all))]
	}
	return strings.Join(all, " ")
}

// Sweep is Faults.Sweep with another fault: a call on a file below a folder of the world fails. Each is refused in turn, of
// those that the same lines make the first in all sweeps. Those of other goroutines than that of Do are left alone.
func (f *Refusals) Sweep(t *testing.T, p Play, below string) {
	t.Helper()
	nth, made, do := 0, []refused.Call(nil), p.Do
	p.Do = func() (got any, err error) {
		made = refused.Calls(t, filepath.Join(p.World, below), nth, func() { got, err = do() })
		return got, err
	}
	s := newSweep(t, p)
	if f.tried == nil {
		f.tried = map[string]bool{}
	}
	for n, c := range made {
		lines := f.lines(c)
		if f.tried[lines] {
			continue
		}
		f.tried[lines] = true
		s.once = !s.drawn()
		s.restore()
		nth = n + 1
		s.play(fmt.Sprintf("call %d fails, %s", nth, c.What), func() { nth = 0 })
	}
	s.restore()
}

// spoil puts something in the place of a file or folder, and returns what takes it back.
func (s *sweep) spoil(at string, folder bool) (mend func()) {
	s.Helper()
	aside := s.World + ".aside"
	_ = os.RemoveAll(aside)
	_ = os.Rename(at, aside) // unless it is of afterwards
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		s.Fatal(err)
	}
	var err error
	if folder {
		err = os.WriteFile(at, nil, 0o600)
	} else {
		err = os.Mkdir(at, 0o700)
	}
	if err != nil {
		s.Fatal(err)
	}
	return func() {
		if os.Remove(at) == nil {
			_ = os.Rename(aside, at)
		}
	}
}

// sweep is a Play, where it begins, and what comes of it.
type sweep struct {
	*testing.T
	Play
	saved, whole string
	faults       int  // so far, those that were not drawn too
	once         bool // as in Play, for the next fault
}

// drawn reports whether the next fault is played.
func (s *sweep) drawn() bool {
	s.faults++
	return statetest.Drawn(s.T, s.faults, 5)
}

func newSweep(t *testing.T, p Play) *sweep {
	t.Helper()
	s := &sweep{T: t, Play: p, saved: filepath.Join(Dir(t), "saved")}
	s.copy(p.World, s.saved)
	got, err := p.Do()
	if err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	s.whole = fmt.Sprintf("%+v\n%s", got, p.Standing())
	return s
}

// play plays it once, and once more after mend if there was an error.
func (s *sweep) play(fault string, mend func()) {
	s.Helper()
	got, err := s.Do()
	mend()
	if err != nil && (s.Once || s.once) {
		return
	}
	if err != nil {
		if got, err = s.Do(); err != nil {
			s.Errorf("once more, after %s: %v", fault, err)
			return
		}
	}
	if now := fmt.Sprintf("%+v\n%s", got, s.Standing()); now != s.whole {
		s.Errorf("%s:\n%s\nwithout a fault:\n%s", fault, now, s.whole)
	}
}

func (s *sweep) restore() {
	s.Helper()
	if err := os.RemoveAll(s.World); err != nil {
		s.Fatal(err)
	}
	s.copy(s.saved, s.World)
}

func (s *sweep) copy(from, to string) {
	s.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

// InOrder fails unless the calls have these steps, one after the other, with any others between them. Each is a regexp of a whole call.
func InOrder(t *testing.T, calls []refused.Call, steps ...string) {
	t.Helper()
	rest := calls
	for _, step := range steps {
		is := regexp.MustCompile("^(?:" + step + ")$")
		at := slices.IndexFunc(rest, func(c refused.Call) bool { return is.MatchString(c.What) })
		if at < 0 {
			t.Errorf("%s does not come where it must in:", step)
			for _, c := range calls {
				t.Log(c.What)
			}
			return
		}
		rest = rest[at+1:]
	}
}
