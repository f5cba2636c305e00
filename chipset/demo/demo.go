// Package demo shows a whole rig in a throw-away repository: beads
// with dependencies, a merge conflict that is reworked, a red test that is not
// merged, a worker that hangs and is replaced.
package demo

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/doctor"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/chipset/run"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
)

//go:embed project work
var files embed.FS

// Options say how the demo runs.
type Options struct {
	Out io.Writer
	// Keep leaves the repository for a look.
	Keep  bool
	Clock state.Clock
	// Timeout bounds the demo; it takes about ten seconds.
	Timeout time.Duration
}

// step is one bead of the demo.
type step struct {
	name, title string
	after       []string
	priority    bead.Priority
	allowEmpty  bool
}

func steps() []step {
	return []step{
		{name: "sub", title: "Add subtraction", priority: bead.P1},
		{name: "mul", title: "Add multiplication (touches the same line)", priority: bead.P1},
		{name: "manual", title: "Write the manual (its first worker hangs)", priority: bead.P2},
		{name: "pow", title: "Add powers (the first attempt is wrong)", after: []string{"sub", "mul"}, priority: bead.P2},
		{name: "version", title: "Bump the version", after: []string{"pow"}, priority: bead.P2},
		{name: "notes", title: "Write the release notes", after: []string{"manual", "version"}, priority: bead.P3},
		{name: "check", title: "Check the release (nothing to land)", after: []string{"notes"}, priority: bead.P3, allowEmpty: true},
	}
}

// Run plays the demo and returns nil only when everything has landed and the
// target branch passes its tests.
func Run(ctx context.Context, opts Options) error {
	dir, err := os.MkdirTemp("", "chipset-demo-") //nolint:forbidigo // the demo's own folder in the temp directory
	if err != nil {
		return err
	}
	s := &show{Options: opts, dir: dir, began: opts.Clock()}
	defer s.cleanUp()
	s.line("A throw-away repository with a small program and its tests: %s", dir)
	r, err := s.build(ctx)
	if err != nil {
		return err
	}
	ids, err := s.plan(r)
	if err != nil {
		return err
	}
	s.line("")
	s.line("The rig starts: a mayor, three polecats, a refinery, a witness (its thresholds shortened).")
	s.line("")
	if err := s.play(ctx, r); err != nil {
		return err
	}
	return s.report(ctx, r, ids)
}

type show struct {
	Options
	dir   string
	began time.Time
	mu    sync.Mutex
	// failed keeps the repository also without Keep.
	failed bool
}

func (s *show) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.Out, format+"\n", args...)
}

// say is what the agents tell while they work.
func (s *show) say(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	s.line("%6.2fs  %s", s.Clock().Sub(s.began).Seconds(), text)
}

// build makes the repository with its first commit, and the rig in it.
func (s *show) build(ctx context.Context) (*rig.Rig, error) {
	err := fs.WalkDir(files, "project", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(s.dir, filepath.FromSlash(strings.TrimPrefix(name, "project")))
		if e.IsDir() {
			return state.MkdirOutside(to)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return state.ReplaceOutside(to, data)
	})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(filepath.Join(s.dir, "calc"), 0o755); err != nil {
		return nil, err
	}
	repo, err := git.Init(ctx, s.dir, "main")
	if err != nil {
		return nil, err
	}
	identity := []string{"GIT_AUTHOR_NAME=demo", "GIT_AUTHOR_EMAIL=demo@chipset.invalid", "GIT_COMMITTER_NAME=demo", "GIT_COMMITTER_EMAIL=demo@chipset.invalid"}
	for _, args := range [][]string{
		{"--work-tree=" + s.dir, "add", "-A"},
		{"--work-tree=" + s.dir, "commit", "-q", "-m", "A very small calculator"},
	} {
		if _, err := repo.Run(ctx, git.Command{Args: args, Env: identity}); err != nil {
			return nil, err
		}
	}
	if err := state.MkdirOutside(filepath.Join(s.dir, rig.DirName)); err != nil {
		return nil, err
	}
	if err := state.ReplaceOutside(filepath.Join(s.dir, rig.DirName, rig.DefinitionName), []byte(demoDefinition)); err != nil {
		return nil, err
	}
	return rig.Init(ctx, rig.InitOptions{Dir: s.dir, Template: definition.TemplateOptions{}, Clock: s.Clock})
}

const demoDefinition = `# The demo's definition: a real one, with thresholds shortened to seconds.
rig: {name: demo, bead_prefix: demo, tick: 500ms, patrol: 200ms}
agents:
  agents:
    - {name: mayor, role: mayor}
    - {name: witness, role: witness}
    - {name: refinery, role: refinery}
    - {name: polecat-pool, role: polecat, count: 3}
worker: {default: sh, grace: 1s}
merge: {target: main, test: "sh test.sh", test_timeout: 30s}
gupp:
  thresholds: {stall_detection: 2s, nudge_interval: 1s, restart_threshold: 4s, slow_start: 500ms}
  limits: {restart_cooldown: 0s}
`

// plan adds the beads.
func (s *show) plan(r *rig.Rig) (map[string]state.BeadID, error) {
	ids := map[string]state.BeadID{}
	s.line("Seven beads, each a shell script that edits, tests and commits:")
	s.line("")
	for _, st := range steps() {
		script, err := files.ReadFile(path.Join("work", st.name+".sh"))
		if err != nil {
			return nil, err
		}
		b := bead.Bead{Title: st.title, Description: string(script), Priority: st.priority, AllowEmpty: st.allowEmpty, CreatedBy: state.Human}
		var waits []string
		for _, name := range st.after {
			b.BlockedBy = append(b.BlockedBy, ids[name])
			waits = append(waits, string(ids[name]))
		}
		b, err = r.Beads.Add(b, r.Def.Rig.BeadPrefix, r.Clock.Now())
		if err != nil {
			return nil, err
		}
		ids[st.name] = b.ID
		behind := ""
		if len(waits) > 0 {
			behind = "   after " + strings.Join(waits, ", ")
		}
		s.line("  %s  %s  %s%s", b.ID, b.Priority, b.Title, behind)
	}
	return ids, nil
}

func (s *show) play(ctx context.Context, r *rig.Rig) error {
	p, err := run.NewProcess(r, run.Notified, s.say)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := run.Up(ctx, p, run.UpOptions{UntilIdle: true, Timeout: s.Timeout}); err != nil {
		s.failed = true
		return fmt.Errorf("demo: %w (the repository is kept: %s)", err, s.dir)
	}
	return nil
}

// report shows what came out, after testing it once more.
func (s *show) report(ctx context.Context, r *rig.Rig, ids map[string]state.BeadID) error {
	took := s.Clock().Sub(s.began)
	s.line("")
	s.line("What came out:")
	s.line("")
	landed := 0
	for _, st := range steps() {
		b, err := r.Beads.Get(string(ids[st.name]))
		if err != nil {
			return err
		}
		if b.Status.Landed() {
			landed++
		}
		s.line("  %s  %-7s %-44s %d slings, %d conflicts, %d red tests, %d restarts", b.ID, b.Status, b.Title, b.Assignments, b.Conflicts, b.Attempts, b.Restarts)
	}
	commits, err := r.Git.Run(ctx, git.Command{Args: []string{"log", "--oneline", "--format=  %h  %s", "main"}, Read: true})
	if err != nil {
		return err
	}
	s.line("\nThe target branch, one line of tested commits:\n\n%s", strings.TrimRight(string(commits), "\n"))
	test := exec.CommandContext(ctx, "sh", "test.sh")
	test.Dir = s.dir
	out, err := test.CombinedOutput()
	s.line("\nIts tests, once more, in the checkout:\n\n%s", indent(string(out)))
	if err == nil && landed != len(steps()) {
		err = fmt.Errorf("%d of %d beads landed", landed, len(steps()))
	}
	if err != nil {
		s.failed = true
		return fmt.Errorf("demo: %w (the repository is kept: %s)", err, s.dir)
	}
	findings, err := doctor.Doctor(ctx, r, false)
	if err != nil {
		return err
	}
	verdict := "everything is in order"
	for _, f := range findings {
		if f.Severity != doctor.Info {
			verdict = fmt.Sprintf("%d findings, the first: %s", len(findings), f.Detail)
			break
		}
	}
	s.line("chipset doctor: %s. %d beads in %.1f seconds.", verdict, landed, took.Seconds())
	if s.Keep {
		s.line("\nLook around:\n\n  cd %s\n  chipset status\n  chipset why %s\n  chipset mail inbox human\n  ls .chipset/state/*", s.dir, ids["manual"])
	} else {
		s.line("\nThe repository is removed; chipset demo --keep leaves it for a look.")
	}
	return nil
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ") + "\n"
}

func (s *show) cleanUp() {
	if s.Keep || s.failed {
		return
	}
	os.RemoveAll(s.dir) //nolint:forbidigo,errcheck // the demo's own folder in the temp directory
}
