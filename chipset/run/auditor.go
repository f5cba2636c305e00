package run

import (
	"context"
	"errors"
	"time"

	"github.com/gastown-chipset/chipset/chipset/history"
	"github.com/gastown-chipset/chipset/state"
)

// lastSnapshot bounds the snapshot that is taken when the rig ends.
const lastSnapshot = 5 * time.Second

// takeSnapshots commits snapshots of the state tree every audit.every, and also at the start and at the end if the
// definition gives the interval. Of all processes of a rig, the one that holds the lock does it; when it ends,
// another takes over.
func (p *Process) takeSnapshots(ctx context.Context) error {
	a := &auditor{Process: p}
	defer a.end()
	if p.Rig.Def.AuditAtEnds() {
		a.snapshot(ctx)
	}
	ticker := time.NewTicker(p.Rig.Def.Audit.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			a.snapshot(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// auditor takes the snapshots of this process.
type auditor struct {
	*Process
	lock     *state.Lock
	recorder *history.Recorder
	failed   string
}

// mine reports whether this process is the one that commits.
func (a *auditor) mine() (bool, error) {
	if a.lock != nil && !a.lock.Lost(a.Rig.Tree) {
		return true, nil
	}
	a.lock.Unlock()
	var err error
	a.lock, err = a.Rig.Tree.TryLock(state.LockRecord, "auditor")
	if errors.Is(err, state.ErrLockTimeout) {
		return false, nil
	}
	return err == nil, err
}

// snapshot tries to take a snapshot, and reports the same failure only once.
func (a *auditor) snapshot(ctx context.Context) {
	yes, err := a.mine()
	if err == nil && yes {
		if a.recorder == nil {
			a.recorder, err = history.NewRecorder(a.Rig)
		}
		if err == nil {
			_, err = a.recorder.Commit(ctx, "")
		}
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		a.failed = ""
	case err.Error() != a.failed:
		a.failed = err.Error()
		a.Say("warning: no snapshot of the state tree: %s", flat(err))
	}
}

// end takes the last snapshot, if this process holds the lock.
func (a *auditor) end() {
	if a.lock == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastSnapshot)
	defer cancel()
	a.snapshot(ctx)
	a.lock.Unlock()
}
