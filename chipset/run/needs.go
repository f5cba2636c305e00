package run

import (
	"context"
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/chipset/view"
)

const (
	// needsPace is the least time between two looks at the needs.
	needsPace = 400 * time.Millisecond
	// needsNet is the most time between them, in case a notification is lost.
	needsNet = 30 * time.Second
)

// announce prints each new need. Only one goroutine at a time may call it.
func (p *Process) announce(ctx context.Context) error {
	needs, err := view.Needs(ctx, p.Rig)
	for i := range needs {
		if n := &needs[i]; !p.said[n.Key] {
			p.said[n.Key] = true
			p.Say("%s", n.Announcement())
		}
	}
	if p.teller != nil {
		err = errors.Join(err, p.teller.tell(ctx, needs, err != nil))
	}
	return err
}

// look announces new needs, and notifies the person of the results. still says that nothing has changed, ended that the
// rig ends because it is idle.
func (p *Process) look(ctx context.Context, still, ended bool) error {
	err := p.announce(ctx)
	if p.teller != nil {
		err = errors.Join(err, p.teller.digest(ctx, still, ended))
	}
	return err
}

// announceNeeds prints what waits for the person: at the start everything, then each new
// need once, within a second.
func (p *Process) announceNeeds(ctx context.Context) error {
	net := p.Rig.Def.Rig.Tick
	var changed <-chan struct{}
	if p.Watcher != nil {
		var err error
		if changed, err = p.Watcher.Subscribe(view.NeedDirs(p.Rig)...); err == nil {
			net = needsNet
		}
	}
	failure := ""
	for still := true; ; {
		began := time.Now() //nolint:forbidigo // paces real work, decides nothing
		err := p.look(ctx, still, false)
		if err != nil && ctx.Err() == nil && err.Error() != failure {
			failure = err.Error()
			p.Say("warning: what waits for you: %s", flat(err))
		}
		if !pace(ctx, began, min(max(needsPace, 5*time.Since(began)), 2*needsPace)) {
			return ctx.Err()
		}
		wait := net
		if p.teller != nil && p.teller.busy {
			wait = min(wait, stillness)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
			still = false
		case <-timer.C:
			still = true
		}
		timer.Stop()
	}
}
