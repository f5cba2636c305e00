package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// Site is a worktree in which commands of the definition run: its setup and its test.
type Site struct {
	Rig *rig.Rig
	// ID is whose worktree it is, Dir its root.
	ID  state.AgentID
	Dir string
	// Jobs runs the commands.
	Jobs *process.Host
	// Say prints one line for whoever watches.
	Say func(format string, args ...any)
	// Wanted is called each second while a command runs; an error ends it. nil: it is wanted.
	Wanted func(ctx context.Context) error
}

// command is one command that runs in a site.
type command struct {
	session state.SessionID
	argv    []string
	// log takes the output, appended. record is the exit record.
	log, record state.Path
	// timeout ends it; 0 is never.
	timeout time.Duration
}

// spec is how a command runs: in the sandbox of tests, without keys, and without anything of the rig.
func (s *Site) spec(c command) (process.Spec, error) {
	for _, dir := range []state.Path{c.record.Dir(), c.log.Dir()} {
		if err := s.Rig.Tree.MkdirAll(dir); err != nil {
			return process.Spec{}, err
		}
	}
	box, err := s.confine(c.session)
	if err != nil {
		return process.Spec{}, err
	}
	return process.Spec{ID: string(c.session), Argv: c.argv, Dir: s.Dir, Env: s.environment(c.session), Sandbox: box,
		Log: s.Rig.Tree.Abs(c.log), Record: s.Rig.Tree.Abs(c.record), Timeout: c.timeout, Limits: s.Rig.Limits()}, nil
}

// environment is what a test may have of this process's own, without the variables of a rig or of a
// repository. It holds no keys.
func (s *Site) environment(session state.SessionID) []string {
	var env []string
	for _, entry := range variables(s.Rig, git.Environment(os.Environ()), nil) {
		if !strings.HasPrefix(entry, "CHIPSET_") {
			env = append(env, entry)
		}
	}
	return append(env, "CHIPSET_DIR="+s.Rig.Dir, "CHIPSET_AGENT="+string(s.ID), process.EnvSession+"="+string(session))
}

// wantedEvery is how often a command that runs is asked for.
const wantedEvery = time.Second

// run runs a command to its end, which it returns with the end of its output. The log is begun again.
func (s *Site) run(ctx context.Context, c command) (process.Exit, string, error) {
	if err := s.Rig.Tree.Remove(c.log); err != nil {
		return process.Exit{}, "", err
	}
	spec, err := s.spec(c)
	if err != nil {
		return process.Exit{}, "", err
	}
	job, err := s.Jobs.Start(ctx, spec)
	if err != nil {
		return process.Exit{}, "", err
	}
	ticker := time.NewTicker(wantedEvery)
	defer ticker.Stop()
	for err == nil {
		select {
		case <-job.Done():
			exit := job.Exit()
			refused, err := askForHosts(ctx, s.Rig, s.ID, "a test or setup", exit)
			output := outputTail(spec.Log, 0)
			if len(refused) > 0 {
				output += "\n(not in network.allow of chipset.yaml: " + strings.Join(refused, ", ") + ")"
			}
			if over := exceeded(exit); over != "" {
				output += "\n(ended because " + over + ")"
			}
			return exit, output, errors.Join(err, s.Rig.Tree.Remove(c.record))
		case <-ctx.Done():
			err = ctx.Err()
		case <-ticker.C:
			if s.Wanted != nil {
				err = s.Wanted(ctx)
			}
		}
	}
	job.Stop(abortGrace)
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-job.Done():
	case <-timer.C:
	}
	return job.Exit(), "", err
}

// Test runs the test of the definition to its end and returns the result, which is green and untested where there is
// nothing to run.
func (s *Site) Test(ctx context.Context) (refinery.Result, error) {
	line, argv, err := TestCommand(s.Rig.Def, s.Dir)
	if err != nil || len(argv) == 0 {
		return withoutTest(s.Rig.Def, err), nil
	}
	session := state.NewSessionID()
	c := command{session: session, argv: argv, log: state.LogDir.Join("test-" + string(s.ID) + ".log"),
		record: setupDir.Join(string(s.ID) + ".job.json"), timeout: s.Rig.Def.Merge.TestTimeout}
	exit, output, err := s.run(ctx, c)
	if err != nil {
		return refinery.Result{}, err
	}
	return verdict(exit, line, output, c.timeout), nil
}

// withoutTest is the result where no test can run: err says why, nil that there is none.
func withoutTest(d *definition.Definition, err error) refinery.Result {
	switch {
	case err != nil:
		return refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: err.Error()}
	case d.MergeDefined:
		return refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: noTestCommand}
	}
	return refinery.Result{Kind: refinery.Green, Untested: true}
}

// noTestCommand is what a definition gets that has a merge section without a
// test: untested work is landed by a decision only.
const noTestCommand = "no test command (merge.test); to land untested work, set it to: true"

// TestCommand is what tests a worktree: the command line for people, and what to execute; nothing
// where there is none. A definition that does not say it leaves it to the files of the worktree.
func TestCommand(d *definition.Definition, worktree string) (line string, argv []string, err error) {
	line, argv = d.Merge.Test.Line, d.Merge.Test.Argv
	if d.Merge.Test.IsZero() && !d.MergeDefined {
		files := treeFiles(worktree)
		line = definition.DetectTest(files.has, files.read)
	}
	if line == "" {
		return strings.Join(argv, " "), argv, nil
	}
	if len(argv) == 0 {
		if argv, err = process.ParseCommand(line); err != nil {
			return line, nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return line, argv, nil
}

// treeFiles reads no more than plain small files: the tree is a worker's.
type treeFiles string

func (t treeFiles) has(path string) bool {
	_, err := os.Lstat(filepath.Join(string(t), filepath.FromSlash(path)))
	return err == nil
}

func (t treeFiles) read(path string) []byte {
	full := filepath.Join(string(t), filepath.FromSlash(path))
	if info, err := os.Lstat(full); err != nil || !info.Mode().IsRegular() || info.Size() > maxDetect {
		return nil
	}
	data, err := os.ReadFile(full)
	if err != nil {
		return nil
	}
	return data
}

// verdict reads a test's end: green, red, could not run, or no end of its own.
func verdict(exit process.Exit, line, output string, timeout time.Duration) refinery.Result {
	red := func(f mergequeue.Failure, format string, args ...any) refinery.Result {
		text := line + ": " + fmt.Sprintf(format, args...)
		if output != "" {
			text += "\n\n" + output
		}
		return refinery.Result{Kind: refinery.Red, Failure: f, Text: wording.Clip(text, maxReason)}
	}
	switch {
	case exit.Stopped, exit.Orphaned, !exit.Done, exit.Code < 0:
		return refinery.Result{Kind: refinery.Trouble, Text: "the test did not come to its own end: " + exit.Error}
	case exit.TimedOut:
		return red(mergequeue.FailCouldNotRun, "no end within %s (merge.test_timeout)", timeout)
	case exit.NotFound:
		return red(mergequeue.FailCouldNotRun, "exit status 127: a command was not found. %s", exit.Error)
	case exit.NotExecutable:
		return red(mergequeue.FailCouldNotRun, "exit status 126: a command could not be executed. %s", exit.Error)
	case exit.Code == 0:
		return refinery.Result{Kind: refinery.Green}
	case exit.Signal == "SIGKILL":
		return red(mergequeue.FailCouldNotRun, "killed, perhaps for want of memory")
	case diskIsFull(output):
		return red(mergequeue.FailCouldNotRun, "exit status %d, the disk is full", exit.Code)
	}
	return red(mergequeue.FailTests, "exit status %d", exit.Code)
}

// diskIsFull reports whether a program's words say so.
func diskIsFull(output string) bool {
	return strings.Contains(output, "No space left on device") || strings.Contains(output, "Disk quota exceeded")
}

// outputTail is the end of what a log holds from a position on.
func outputTail(path string, from int64) string {
	const most = 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	from = max(from, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return ""
	}
	return lastLines(strings.ToValidUTF8(string(data), "?"), tailLines)
}
