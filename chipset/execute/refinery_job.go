package execute

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/git"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/roles/refinery"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

const (
	testRecords = rig.TestRecords
	// abortGrace and closeGrace are the time a test has between TERM and KILL.
	abortGrace = 2 * time.Second
	closeGrace = time.Second
	// closePatience bounds the wait for a test that is stopped.
	closePatience = 15 * time.Second
	// tailLines and maxReason bound what of a test's output goes into requests and mail.
	tailLines = 20
	maxReason = flow.MaxRequestText
	// maxDetect bounds a file that the test command is guessed from.
	maxDetect = 1 << 20
)

// noTestCommand is what a definition gets that has a merge section without a
// test: untested work is landed by a decision only.
const noTestCommand = "no test command (merge.test); to land untested work, set it to: true"

// testRun is a test command that runs, or has run.
type testRun struct {
	job     *process.Job
	request mergequeue.Request
	tip     bool
	command string
	timeout time.Duration
	log     state.Path
	// from is where this run's output begins: the log of a repeated try goes on.
	from int64
}

// startTest starts the test of one commit. It has a result at once only when
// there is nothing to run.
func (r *Refinery) startTest(ctx context.Context, q *mergequeue.Request, a refinery.RunTest) (refinery.Result, error) {
	r.stopTest(abortGrace) // of a decision that was not kept
	if err := r.advance(ctx, q, flow.Advance{MR: q.ID, Onto: a.Onto, Test: &a}); err != nil {
		return takenOr(err)
	}
	if err := r.stand(ctx, a); err != nil {
		return refinery.Result{}, err
	}
	command, argv, err := r.testCommand()
	if err != nil {
		return refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: err.Error()}, nil
	}
	if len(argv) == 0 {
		if r.Rig.Def.MergeDefined {
			return refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: noTestCommand}, nil
		}
		if !a.Tip {
			r.warn(q, "no test command: landing untested")
			r.Say("%s: no test command: landing untested", q.BeadID)
		}
		return refinery.Result{Kind: refinery.Green, Untested: true}, nil
	}
	return r.launch(ctx, q, a, command, argv)
}

// stand makes the worktree hold what is to be tested. After the rebase it does.
func (r *Refinery) stand(ctx context.Context, a refinery.RunTest) error {
	at := git.Hash(a.Candidate)
	if a.Tip {
		at = git.Hash(a.Onto)
	}
	if r.prepared && r.at == at {
		return nil
	}
	if err := r.prepare(ctx, at); err != nil {
		return err
	}
	r.at = ""
	err := r.Rig.Git.In(r.worktree).CheckoutDetached(ctx, at)
	if err == nil {
		r.at = at
	}
	return err
}

func (r *Refinery) launch(ctx context.Context, q *mergequeue.Request, a refinery.RunTest, command string, argv []string) (refinery.Result, error) {
	session := state.NewSessionID()
	name := fmt.Sprintf("test-%s-%d.log", q.ID, q.Attempts)
	switch {
	case a.Tip:
		name = fmt.Sprintf("test-%s-%d-tip.log", q.ID, q.Attempts)
	case a.Stack.Len() > 1:
		name = fmt.Sprintf("test-%s-%d-stack.log", q.ID, q.Attempts)
	}
	run := &testRun{request: *q, tip: a.Tip, command: command, timeout: r.Rig.Def.Merge.TestTimeout, log: state.LogDir.Join(name)}
	for _, dir := range []state.Path{testRecords, state.LogDir} {
		if err := r.Rig.Tree.MkdirAll(dir); err != nil {
			return refinery.Result{}, err
		}
	}
	if info, err := os.Lstat(r.Rig.Tree.Abs(run.log)); err == nil {
		run.from = info.Size()
	}
	box, err := confine(r.Rig, r.worktree, session, nil, nil)
	if err != nil {
		return refinery.Result{}, err
	}
	r.at = "" // tests leave files
	job, err := r.jobs.Start(ctx, process.Spec{
		Sandbox: box,
		ID:      string(session), Argv: argv, Dir: r.worktree, Env: r.cleanEnvironment(session),
		Log: r.Rig.Tree.Abs(run.log), Record: r.Rig.Tree.Abs(testRecords.Join(string(session) + ".json")),
		Timeout: run.timeout,
	})
	if err != nil {
		if ctx.Err() != nil {
			return refinery.Result{}, err
		}
		return refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: fmt.Sprintf("%s: %v", command, err)}, nil
	}
	run.job = job
	r.test = run
	go func() {
		<-job.Done()
		select {
		case r.news <- struct{}{}:
		default:
		}
	}()
	return refinery.Result{}, nil
}

// testCommand is the command line for people, and what to execute; nothing when
// there is none.
func (r *Refinery) testCommand() (string, []string, error) {
	test := r.Rig.Def.Merge.Test
	line, argv := test.Line, test.Argv
	if test.IsZero() && !r.Rig.Def.MergeDefined {
		line = definition.DetectTest(r.hasFile, r.readFile)
	}
	if line == "" {
		return strings.Join(argv, " "), argv, nil
	}
	if len(argv) == 0 {
		var err error
		if argv, err = process.ParseCommand(line); err != nil {
			return line, nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return line, argv, nil
}

func (r *Refinery) hasFile(path string) bool {
	_, err := os.Lstat(filepath.Join(r.worktree, filepath.FromSlash(path)))
	return err == nil
}

// readFile reads no more than a plain small file: the tree is a worker's.
func (r *Refinery) readFile(path string) []byte {
	full := filepath.Join(r.worktree, filepath.FromSlash(path))
	if info, err := os.Lstat(full); err != nil || !info.Mode().IsRegular() || info.Size() > maxDetect {
		return nil
	}
	data, err := os.ReadFile(full)
	if err != nil {
		return nil
	}
	return data
}

// collectTest makes the end of a test the result of its step.
func (r *Refinery) collectTest() {
	run := r.test
	if run == nil {
		return
	}
	select {
	case <-run.job.Done():
	default:
		return
	}
	r.test = nil
	r.result = r.verdict(run)
	text := string(r.result.Kind)
	if run.tip {
		text = "bare tip: " + text
	}
	if r.result.Kind == refinery.Red {
		text += ": " + string(r.result.Failure)
	}
	r.tellTested(&run.request, text)
	exit := run.job.Exit()
	if err := r.Rig.Tree.Remove(testRecords.Join(exit.ID + ".json")); err != nil {
		r.Say("%s: %v", r.ID, err)
	}
}

// tellTested tells the story of each request that was tested.
func (r *Refinery) tellTested(first *mergequeue.Request, text string) {
	if len(first.Stack) < 2 {
		r.Rig.Events.Tell(event.RequestTested(r.ID, first.Told(), text))
		return
	}
	for _, id := range first.Stack {
		if q, err := r.Rig.Queue.GetCached(string(id)); err == nil {
			r.Rig.Events.Tell(event.RequestTested(r.ID, q.Told(), text+", together: "+mergequeue.JoinIDs(first.Stack)))
		}
	}
}

// verdict reads a test's end: green, red, could not run, or no end of its own.
func (r *Refinery) verdict(run *testRun) refinery.Result {
	exit := run.job.Exit()
	output := r.tail(run)
	red := func(f mergequeue.Failure, format string, args ...any) refinery.Result {
		text := run.command + ": " + fmt.Sprintf(format, args...)
		if output != "" {
			text += "\n\n" + output
		}
		return refinery.Result{Kind: refinery.Red, Failure: f, Text: wording.Clip(text, maxReason)}
	}
	switch {
	case exit.Stopped, exit.Orphaned, !exit.Done, exit.Code < 0:
		return refinery.Result{Kind: refinery.Trouble, Text: "the test did not come to its own end: " + exit.Error}
	case exit.TimedOut:
		return red(mergequeue.FailCouldNotRun, "no end within %s (merge.test_timeout)", run.timeout)
	case exit.NotFound:
		return red(mergequeue.FailCouldNotRun, "exit status 127: a command was not found. %s", exit.Error)
	case exit.NotExecutable:
		return red(mergequeue.FailCouldNotRun, "exit status 126: a command could not be executed. %s", exit.Error)
	case exit.Code == 0:
		return refinery.Result{Kind: refinery.Green}
	case exit.Signal == "SIGKILL":
		return red(mergequeue.FailCouldNotRun, "killed, perhaps for want of memory")
	case strings.Contains(output, "No space left on device"), strings.Contains(output, "Disk quota exceeded"):
		return red(mergequeue.FailCouldNotRun, "exit status %d, the disk is full", exit.Code)
	}
	return red(mergequeue.FailTests, "exit status %d", exit.Code)
}

// tail is the end of a run's output.
func (r *Refinery) tail(run *testRun) string {
	const most = 16 << 10
	f, err := os.Open(r.Rig.Tree.Abs(run.log))
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	from := max(run.from, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return ""
	}
	return lastLines(string(bytes.ToValidUTF8(data, []byte("?"))), tailLines)
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n\r\t "), "\n")
	text := strings.Join(lines[max(0, len(lines)-n):], "\n")
	const most = 3 << 10 // a reason has a first line too
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return strings.TrimSpace(strings.Map(printable, text))
}

// printable keeps terminals from being driven by what a test prints.
func printable(c rune) rune {
	if c == '\n' || c == '\t' || c >= ' ' && c != 0x7f && (c < 0x80 || c >= 0xa0) {
		return c
	}
	return -1
}

// stopTest ends a running test and waits for it; its end is nobody's result.
func (r *Refinery) stopTest(grace time.Duration) {
	run := r.test
	if run == nil {
		return
	}
	r.test = nil
	run.job.Stop(grace)
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-run.job.Done():
	case <-timer.C:
		r.Say("%s: the test of %s does not end", r.ID, run.request.ID)
	}
}
