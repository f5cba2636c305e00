package execute

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gastown-chipset/chipset/chipset/actor"
	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/agentcli/clients"
	"github.com/gastown-chipset/chipset/chipset/execute/carry"
	"github.com/gastown-chipset/chipset/chipset/process"
	"github.com/gastown-chipset/chipset/chipset/prompt"
	"github.com/gastown-chipset/chipset/chipset/prompt/quote"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/roles/polecat"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
)

// talk reads the transcript of a session's client, through all its runs.
type talk struct {
	name   string
	reader agentcli.Reader
	lines  *agentcli.Lines
	// offset is how far the transcript has been read, began where this run's
	// part of it begins.
	offset, began int64
	resumed       int
	// session is the client's name for a session of an earlier process.
	session string
	// shown is the progress that was last written down, and when.
	shown agentcli.Progress
}

func newTalk(c agentcli.Client) *talk {
	t := &talk{name: c.Preset.Name, reader: c.Reader()}
	t.lines = &agentcli.Lines{To: t.reader.Line}
	return t
}

// Limits of reading a transcript.
const (
	// maxRead bounds what is read of a transcript at once, in bytes.
	maxRead = 8 << 20
	// maxBehind bounds what is read of a transcript that has grown since the last look, in bytes. Before that it is skipped.
	maxBehind = 64 << 20
	// showInterval is the least time between two writes of the progress.
	showInterval = 2 * time.Second
)

// clientSession is the client's own name for the session, "" while it is not known.
func (t *talk) clientSession() string {
	if s := t.reader.Session(); s != "" {
		return s
	}
	return t.session
}

// takeOver reads what the earlier runs of a session have printed.
func (t *talk) takeOver(rec *agentcli.Progress, log string) {
	t.session, t.resumed = rec.ClientSession, rec.Resumes
	for t.offset < rec.Began && t.readMore(log, rec.Began) {
	}
	if t.offset > 0 {
		t.lines.Flush()
		t.reader.Resumed()
	}
	t.began = t.offset
}

// readMore reads what was added to the transcript, at most maxRead bytes and not beyond end, and
// reports whether there may be more.
func (t *talk) readMore(log string, end int64) (more bool) {
	f, info, err := openLog(log)
	if err != nil {
		return false // no progress is known, and none is claimed
	}
	defer f.Close()
	if skip := info.Size() - maxBehind; skip > t.offset {
		t.offset = skip // a hole, or a flood: the end is what counts
	}
	end = min(end, info.Size())
	n, err := io.Copy(t.lines, io.NewSectionReader(f, t.offset, min(maxRead, max(end-t.offset, 0))))
	t.offset += n
	return err == nil && t.offset < end
}

// readAll reads the transcript to its end.
func (t *talk) readAll(log string) {
	for t.readMore(log, math.MaxInt64) {
	}
	t.lines.Flush()
}

// openLog opens a transcript, but no link or pipe that a worker put in its place.
func openLog(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) //nolint:forbidigo // read only, and a link that a worker put there is not followed
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = state.ErrNotRegular
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// show writes the progress of the session down when it has changed, but not at
// every look.
func (p *Polecat) show(w *worker, now state.Time, atOnce bool) {
	t := w.talk
	rec := agentcli.Progress{Session: w.session, Client: t.name, ClientSession: t.clientSession(), Figures: t.reader.Figures(),
		Resumes: t.resumed, Began: t.began, UpdatedAt: t.shown.UpdatedAt}
	rec.CostUSD = 0
	for _, m := range p.used(w) {
		rec.CostUSD += m.CostUSD.Dollars()
	}
	since := now.Sub(t.shown.UpdatedAt.Time)
	if rec == t.shown || rec.ClientSession == "" && !rec.Known() || !atOnce && since >= 0 && since < showInterval {
		return
	}
	rec.UpdatedAt = now
	t.shown = rec
	if err := rec.Write(p.Rig.Tree); err != nil {
		p.tell(event.ProgressNotWritten(p.ID, w.work(), err.Error()))
	}
}

// tellTotals ends a session's progress with one event.
func (p *Polecat) tellTotals(w *worker) {
	rec := w.talk.shown
	if text := rec.String(); text != "" {
		figures, _ := json.Marshal(rec.Figures) // the text says the same
		p.tell(event.WorkerTotals(p.ID, w.work(), rec.Client+": "+text, figures))
	}
}

// forgetSession removes what lies in run/ for a session that is over: its prompt,
// its progress, the files of its client, and temporary ones that a killed supervisor left.
func (p *Polecat) forgetSession(s state.SessionID) {
	if s == "" {
		return
	}
	dir := promptFile(s).Dir()
	entries, err := p.Rig.Tree.List(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), string(s)+".") {
			err = errors.Join(err, p.Rig.Tree.Remove(dir.Join(e.Name())))
		}
	}
	err = errors.Join(err, agentcli.RemoveProgress(p.Rig.Tree, s), p.Rig.Tree.RemoveAll(standDir.Join(string(s))), removeTemp(string(s)))
	if err != nil {
		p.tell(event.SessionNotForgotten(p.ID, s, err.Error()))
	}
}

// judge completes an exit with what the client says about it.
func (p *Polecat) judge(ctx context.Context, exit *polecat.Exit, end agentcli.End, session string) {
	exit.Ending, exit.Why = endingOf(end.Verdict), end.Reason
	exit.Resumable = session != ""
	if exit.Fault.IsZero() { // else it has not even started
		exit.Fault = end.Fault
	}
	if end.Said != "" && exit.Ending != polecat.ByCode || exit.Resumable {
		exit.Tail = end.Said // words for people instead of lines of JSON, also none
	}
	if exit.Ending == polecat.Clean || exit.Resumable || exit.Unexplained() {
		// What can't be looked at counts as changed: the done pipeline has its own
		// eyes, and says what is wrong.
		changed, err := carry.WorktreeChanged(ctx, p.Rig, p.ID)
		exit.Changed = changed || err != nil
		exit.Untouched = !exit.Changed
	}
}

func endingOf(v agentcli.Verdict) polecat.Ending {
	switch v {
	case agentcli.Finished:
		return polecat.Clean
	case agentcli.Unfinished:
		return polecat.Early
	case agentcli.Refused:
		return polecat.Refused
	case agentcli.Broken:
		return polecat.Broken
	case agentcli.Gone:
		return polecat.Gone
	case agentcli.ByExitCode:
	}
	return polecat.ByCode
}

// continueSession starts the worker again where it stopped. The touch proves that the
// assignment is still this session's.
func (p *Polecat) continueSession(ctx context.Context, a polecat.Continue) error {
	old := p.worker
	if old == nil {
		return nil
	}
	if _, err := p.Rig.Hooks.Touch(ctx, p.ID, a.Item.AssignmentID, a.Item.Session, p.Now(), 0); err != nil {
		return err
	}
	b, err := p.Rig.Beads.Get(string(a.Item.BeadID))
	if err != nil {
		return err
	}
	target, err := p.Rig.Target(ctx)
	if err != nil {
		return err
	}
	w := &worker{assignment: old.assignment, bead: old.bead, convoy: old.convoy, session: old.session, preset: old.preset, talk: old.talk, spent: old.spent}
	w.talk.reader.Resumed()
	var text quote.Text
	switch {
	case a.Answered:
		answers, err := prompt.Answers(p.Rig, p.ID, &a.Item)
		if err != nil {
			return err
		}
		text = prompt.Resume(p.ID, &b, string(target), a.Why, answers)
	case a.Kept:
		text = prompt.Interrupted(p.ID, &b, string(target), a.Why)
	default:
		w.talk.resumed++
		text = prompt.Resume(p.ID, &b, string(target), a.Why, "")
	}
	w.talk.began = w.talk.offset
	p.show(w, p.Now(), true)
	p.tell(event.WorkerResumed(p.ID, w.work(), a.Why))
	p.Say("%s: continuing %s: %s", p.ID, w.bead, a.Why)
	err = p.run(ctx, w, a.Item, string(text), b.Description+"\n")
	var failure *startFailure
	if !errors.As(err, &failure) {
		return err
	}
	return p.publishStartFailure(ctx, a.Item, failure)
}

// equip adds what this rig hands to the client, and writes its files. who is the
// identity of the worker, in variables.
func (p *Polecat) equip(w *worker, argv []string, item hook.WorkItem, who []string) (agentcli.Equipped, error) {
	files := string(clientFile(item.Session, ""))
	kit := agentcli.Kit{Chipset: p.Self, Permission: p.Rig.Def.Worker.Permissions, Boxed: inSandbox(p.Rig), Test: clients.PassingTest(p.Rig.Def),
		Attended: w.attended, Hooks: !w.attended, MCP: true, Files: p.Rig.Tree.Abs(state.Path(files)),
		Session: uuidOf(item.Session), Resume: w.talk.clientSession(), Identity: who}
	plan := actor.CheckPlan(p.Rig, p.ID, item.AssignmentID)
	kit.Plan = errors.Is(plan, actor.ErrNoPlan) || errors.Is(plan, state.ErrRefused) // nobody can tell that it was approved
	granted, err := actor.Granted(p.Rig, p.ID, &item)
	if err != nil {
		return agentcli.Equipped{}, err
	}
	kit.Granted = clients.CommandLines(granted)
	c := clients.Of(w.preset)
	e := c.Start(argv, kit)
	if w.attended {
		e.Env = append(e.Env, agentcli.HooksHandedOver) // nor shall the person's own plugin speak for the worker
	}
	for name, text := range e.Files {
		if err := p.Rig.Tree.Replace(clientFile(item.Session, name), []byte(text)); err != nil {
			return e, err
		}
	}
	return e, nil
}

// clientFile is a file that a session's client is handed, by its name.
func clientFile(s state.SessionID, name string) state.Path {
	return promptFile(s) + "." + state.Path(name)
}

// identity is who the worker is, in the variables every chipset command reads.
func (p *Polecat) identity(item hook.WorkItem) []string {
	return []string{"CHIPSET_DIR=" + p.Rig.Dir, "CHIPSET_AGENT=" + string(p.ID), "CHIPSET_BEAD=" + string(item.BeadID),
		"CHIPSET_ASSIGNMENT=" + string(item.AssignmentID), process.EnvSession + "=" + string(item.Session)}
}

// uuidOf is the name of a session for clients that want a UUID: the same for
// the same session, so that it can be found again.
func uuidOf(s state.SessionID) string {
	h := sha256.Sum256([]byte("chipset session " + s))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8, made by rules of our own
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
