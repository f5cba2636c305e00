package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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
	if err := r.site().Furnish(ctx); err != nil {
		r.at = ""
		return cannotRun(err)
	}
	line, argv, err := TestCommand(r.Rig.Def, r.worktree)
	if err != nil || len(argv) == 0 {
		result := withoutTest(r.Rig.Def, err)
		if result.Untested && !a.Tip {
			r.warn(q, "no test command: landing untested")
			r.Say("%s: no test command: landing untested", q.BeadID)
		}
		return result, nil
	}
	return r.launch(ctx, q, a, line, argv)
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

// site is the refinery's worktree, for the commands of the definition.
func (r *Refinery) site() *Site {
	return &Site{Rig: r.Rig, ID: r.ID, Dir: r.worktree, Jobs: r.jobs, Say: r.Say}
}

// cannotRun is the result of a test for which the worktree can't be made ready. Whether that is the request's own
// fault, the bare tip tells.
func cannotRun(err error) (refinery.Result, error) {
	var failure *startFailure
	if !errors.As(err, &failure) {
		return refinery.Result{}, err
	}
	return refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: failure.Error()}, nil
}

func (r *Refinery) launch(ctx context.Context, q *mergequeue.Request, a refinery.RunTest, line string, argv []string) (refinery.Result, error) {
	session := state.NewSessionID()
	name := fmt.Sprintf("test-%s-%d.log", q.ID, q.Attempts)
	switch {
	case a.Tip:
		name = fmt.Sprintf("test-%s-%d-tip.log", q.ID, q.Attempts)
	case a.Stack.Len() > 1:
		name = fmt.Sprintf("test-%s-%d-stack.log", q.ID, q.Attempts)
	}
	run := &testRun{request: *q, tip: a.Tip, command: line, timeout: r.Rig.Def.Merge.TestTimeout, log: state.LogDir.Join(name)}
	if info, err := os.Lstat(r.Rig.Tree.Abs(run.log)); err == nil {
		run.from = info.Size()
	}
	spec, err := r.site().spec(command{session: session, argv: argv, log: run.log, record: testRecords.Join(string(session) + ".json"), timeout: run.timeout})
	if err != nil {
		return refinery.Result{}, err
	}
	r.at = "" // tests leave files
	job, err := r.jobs.Start(ctx, spec)
	if err != nil {
		if ctx.Err() != nil {
			return refinery.Result{}, err
		}
		return refinery.Result{Kind: refinery.Red, Failure: mergequeue.FailCouldNotRun, Text: fmt.Sprintf("%s: %v", line, err)}, nil
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
	r.result = verdict(run.job.Exit(), run.command, outputTail(r.Rig.Tree.Abs(run.log), run.from), run.timeout)
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
			r.Rig.Events.Tell(event.RequestTested(r.ID, q.Told(), text+", together: "+wording.Join(first.Stack, ", ")))
		}
	}
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
		r.Say("%s: the test of %s did not stop", r.ID, run.request.ID)
	}
}
