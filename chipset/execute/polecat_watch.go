package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/wording"
)

const (
	// maxLook bounds the time between two looks at a running worker.
	maxLook = time.Second
	minLook = 20 * time.Millisecond
	// busyShare is the share of one processor above which a worker counts as
	// busy: an idle client that polls stays below it.
	busyShare = 20
	// longestGap is the longest time between two looks in which a worker counts as silent that was silent at both.
	longestGap = time.Minute
	// cpuTick is the resolution of the kernel's account.
	cpuTick = 10 * time.Millisecond
)

func (p *Polecat) lookInterval() time.Duration { return max(min(maxLook, p.stall()/4), minLook) }

// lookAtWorker tells how the worker stands and whether it got on since the
// last look.
func (p *Polecat) lookAtWorker(ctx context.Context, now state.Time) (polecat.Worker, bool) {
	w := p.worker
	if w == nil {
		return p.lookBeside(), false
	}
	facts := polecat.Worker{Status: polecat.WorkerRunning, Assignment: w.assignment, Bead: w.bead, Session: w.session, StartedAt: w.startedAt,
		Resumes: w.preset.MaxResumes() - w.talk.resumed, Inherited: w.job == nil}
	if loadable := clients.Of(w.preset).Loadable; loadable != nil {
		facts.Loadable = state.At(loadable(w.startedAt.Time))
	}
	progress := false
	if w.ended() {
		if w.exit == nil {
			p.describeExit(ctx, w, w.job.Exit())
			p.tellExit(w)
		}
		facts.Status, facts.Exit = polecat.WorkerExited, *w.exit
	} else {
		if progress = w.look(now, p.lookInterval()); progress {
			w.talk.readMore(w.log, math.MaxInt64)
			p.show(w, now, false)
			p.account(ctx, w, now, false)
		}
	}
	if facts.Trying = w.talk.reader.Trying(); facts.Trying.IsZero() {
		w.tryingSince = state.Time{}
	} else if w.tryingSince.IsZero() {
		w.tryingSince = now
	}
	facts.Turns, facts.Quiet = w.talk.reader.Figures().Turns, w.quiet
	facts.LastProgress, facts.CPU, facts.TryingSince = w.lastProgress, w.cpu, w.tryingSince
	return facts, progress
}

// look compares output and processor time with the last look; between two
// looks too close to each other nothing can be told.
func (w *worker) look(now state.Time, interval time.Duration) bool {
	elapsed := now.Sub(w.lookedAt.Time)
	if elapsed >= 0 && elapsed < interval {
		return false
	}
	bytes, cpu, err := w.job.Activity()
	if err != nil {
		return false
	}
	progress := bytes > w.bytes || isBusy(cpu-w.cpu, elapsed)
	w.lookedAt, w.bytes, w.cpu = now, bytes, cpu
	if progress {
		w.lastProgress = now
	}
	w.countQuiet(progress, elapsed)
	return progress
}

// isBusy reports whether a worker that has used so much processor time since the last look does more than wait. On a busy
// machine there are seconds between two looks, in which a client that only polls uses more than in one.
func isBusy(used, elapsed time.Duration) bool {
	return used >= max(min(elapsed, longestGap)/busyShare, cpuTick)
}

// countQuiet counts for how long the client has waited for its service without a sign of life.
func (w *worker) countQuiet(progress bool, elapsed time.Duration) {
	switch {
	case progress, !w.talk.reader.Waits():
		w.quiet = 0
	case elapsed >= 0 && elapsed < longestGap: // else nobody looked: the machine slept, or its clock was set back
		w.quiet += elapsed
	}
}

// describeExit says how the worker ended.
func (p *Polecat) describeExit(ctx context.Context, w *worker, x process.Exit) {
	exit := exitOf(x, w.log)
	exit.Script = w.preset.Prompt == agentcli.PromptScript
	w.talk.readAll(w.log)
	p.show(w, p.Now(), true)
	p.account(ctx, w, x.EndedAt, true)
	p.judge(ctx, &exit, w.talk.reader.End(exit.Code, x.EndedAt.Local()), w.talk.clientSession())
	if outcome, reason := exit.Outcome(); outcome == retire.Fail && exit.Fault.IsZero() && slices.ContainsFunc(p.writtenTo(), full) {
		// Whatever the worker says about it: it could not have worked.
		exit.Fault = fault.New(fault.DiskFull, fault.DiskFull.Phrase()+": "+wording.FirstLine(reason))
	}
	if x.Attended {
		exit = polecat.Exit{Lost: true, Attended: true, Resumable: exit.Resumable, Changed: exit.Changed}
	}
	w.exit, w.endedAt = &exit, x.EndedAt
	if refused, err := askForHosts(ctx, p.Rig, p.ID, "the worker of "+string(w.bead), x); err != nil {
		p.Say("%s: can't record the refused hosts: %v", p.ID, err)
	} else if len(refused) > 0 {
		p.tell(event.Warning(p.ID, w.work(), string(p.ID), "network.allow does not name "+strings.Join(refused, ", ")))
	}
	p.noteRepository(ctx)
}

// tellExit tells the story of the worker's end.
func (p *Polecat) tellExit(w *worker) {
	outcome, reason := w.exit.Outcome()
	switch {
	case w.exit.EndedOutside():
		reason = "ended from outside"
	case outcome == retire.Done:
		reason = "exit code 0"
	}
	p.tell(event.WorkerExited(p.ID, w.work(), reason))
	if n := w.job.Exit().Refused; n > 0 {
		p.tell(event.Warning(p.ID, w.work(), string(p.ID), fmt.Sprintf("%d commands of the worker were refused: it had run as many as limits.commands allows", n)))
	}
}

// exitOf translates an exit record for the role.
func exitOf(x process.Exit, log string) polecat.Exit {
	exit := polecat.Exit{Code: x.Code, Signal: x.Signal, TimedOut: x.TimedOut, Lost: x.Stopped || x.Orphaned || x.Code < 0,
		Ran: x.EndedAt.Sub(x.StartedAt.Time), Tail: logTail(log), Fault: x.Fault}
	if exit.Exceeded = exceeded(x); exit.Exceeded != "" {
		exit.TimedOut = true
	}
	if x.PID == 0 && (x.NotFound || x.NotExecutable) {
		exit.NotStarted = x.Error
	}
	return exit
}

// Limits of what a reason quotes of a transcript.
const (
	maxTailBytes = 2 << 10
	maxTailLines = 20
)

// logTail is the end of a transcript, or "" when it can't be read.
func logTail(path string) string {
	f, info, err := openLog(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, min(info.Size(), maxTailBytes))
	n, err := f.ReadAt(data, info.Size()-int64(len(data)))
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(data[:n]), "\uFFFD")), "\n")
	if len(lines) > maxTailLines {
		lines = lines[len(lines)-maxTailLines:]
	}
	return strings.Join(lines, "\n")
}
