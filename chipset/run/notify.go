package run

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/gastown-chipset/chipset/chipset/definition"
	"github.com/gastown-chipset/chipset/chipset/notify"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/need"
)

// teller notifies the person of each need once, and of the results when the rig becomes idle.
type teller struct {
	p    *Process
	def  *definition.Notify
	send func(n notify.Notice)
	// began is when the process began.
	began state.Time
	// told is the end of the time that the last digest covered.
	told state.Time
	// busy is true if there was work since then.
	busy bool
	// idle is since when the work rests, zero while it continues.
	idle state.Time
	// owes is true if quiet hours have held a digest back.
	owes bool
}

// owedPath is the file of a digest that quiet hours have held back.
const owedPath = state.RunDir + "/digest.json"

// owed is its content.
type owed struct {
	// Since is the beginning of the time that the digest covers.
	Since state.Time `json:"since"`
}

// startTeller starts notifying the person if the definition says how. The returned function stops it.
func (p *Process) startTeller(terminal io.Writer) (end func()) {
	def := &p.Rig.Def.Notify
	if !def.Any() {
		return func() {}
	}
	n := notify.New(def, notify.Options{Dir: p.Rig.Dir, Terminal: terminal, Failed: func(channel string, err error) {
		p.Say("warning: notify: %s: %s", channel, flat(err))
		p.Rig.Events.Tell(event.Warning("", event.Work{}, "notify."+channel, flat(err)))
	}})
	p.teller = &teller{p: p, def: def, send: n.Send, began: p.Rig.Clock.Now(), told: p.Rig.Clock.Now()}
	_, p.teller.owes = p.teller.owed()
	return n.Close
}

// quiet reports whether these are quiet hours.
func (t *teller) quiet() bool { return t.def.Quiet.Contains(t.p.Rig.Clock().Local()) }

// tell notifies the person of new needs. partial means that not every need could be read. Needs that arise in quiet
// hours are reported at the first look after them.
func (t *teller) tell(ctx context.Context, needs []view.Need, partial bool) error {
	now := need.Current{Partial: partial, Quiet: t.quiet()}
	for i := range needs {
		now.Keys = append(now.Keys, needs[i].Key)
	}
	fresh, err := need.NewStore(t.p.Rig.Tree).TakeNew(ctx, now)
	for i := range needs {
		if !slices.Contains(fresh, needs[i].Key) {
			continue
		}
		notice, encodeErr := notify.OfNeed(t.p.Rig.Name(), &needs[i])
		if encodeErr != nil {
			err = errors.Join(err, encodeErr)
			continue
		}
		t.send(notice)
	}
	return err
}

// digest notifies the person of the results once the rig has been idle for a moment, or ends because it is idle. still
// says that nothing has changed since the last look.
func (t *teller) digest(ctx context.Context, still, ended bool) error {
	if !t.def.Digest {
		return nil
	}
	if t.owes && !t.quiet() {
		return t.settle(ctx)
	}
	busy, err := t.isBusy(ctx, still)
	now := t.p.Rig.Clock.Now()
	switch {
	case err != nil:
		return err
	case busy:
		if stamp, alive := t.p.Rig.Alive(t.p.Rig.Mayor()); alive && stamp.PID == os.Getpid() {
			t.busy = true // the process that runs the mayor reports it
		}
		t.idle = state.Time{}
		return nil
	case !t.busy && !ended:
		return nil
	case t.idle.IsZero():
		t.idle = now
	}
	if now.Sub(t.idle.Time) < stillness && !ended {
		return nil
	}
	summary, err := view.Summarize(ctx, t.p.Rig, t.told)
	if err != nil || !t.busy && summary.Landed+summary.Failed == 0 { // a short piece of work may not have been seen
		return err
	}
	if t.quiet() {
		return t.owe(now)
	}
	return t.sum(summary, now)
}

// sum sends a digest.
func (t *teller) sum(summary *view.Summary, now state.Time) error {
	notice, err := notify.OfDigest(t.p.Rig.Name(), summary)
	if err == nil {
		t.told, t.busy, t.idle = now, false, state.Time{}
		t.send(notice)
	}
	return err
}

// owe keeps a digest for the end of the quiet hours, even if this process ends before. Durable when it returns nil.
func (t *teller) owe(now state.Time) error {
	if _, owes := t.owed(); !owes {
		if err := t.p.Rig.Tree.ReplaceJSON(owedPath, owed{t.told}); err != nil {
			return err
		}
	}
	t.told, t.busy, t.idle, t.owes = now, false, state.Time{}, true
	return nil
}

// owed returns the beginning of the time that a held-back digest covers. An unusable file counts as none.
func (t *teller) owed() (since state.Time, owes bool) {
	var o owed
	err := t.p.Rig.Tree.ReadJSON(owedPath, &o)
	return o.Since, err == nil
}

// settle sends a held-back digest, unless another process has sent it meanwhile.
func (t *teller) settle(ctx context.Context) error {
	lock, err := t.p.Rig.Tree.Lock(ctx, state.LockRecord, "told")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	since, owes := t.owed()
	if t.owes = owes; !owes {
		return nil
	}
	summary, err := view.Summarize(ctx, t.p.Rig, since)
	if err == nil {
		err = t.p.Rig.Tree.Remove(owedPath)
	}
	if err != nil {
		return err
	}
	t.owes = false
	return t.sum(summary, t.p.Rig.Clock.Now())
}

// isBusy reports whether work continues by itself. While there is nothing to report yet, only a hook in use counts.
func (t *teller) isBusy(ctx context.Context, still bool) (bool, error) {
	if !t.busy {
		left, err := countHooks(t.p.Rig, t.began)
		return left.Busy > 0, err
	}
	left, err := countUnlessBusy(t.p.Rig, t.began, still)
	if err == nil && still {
		err = left.addTarget(ctx, t.p.Rig)
	}
	return !left.idle() && !left.stuck(), err
}
