// Package carry carries the effects of the durable sequences (chipset/flow) out on
// the stores and git of a rig, and offers the sequences as verbs: Sling, Publish and
// Finish, Move with Unsling, Cancel, Reopen and TakeBack, Retry and Drop. Each may
// be ended by a crash between any two effects; whoever comes next goes on from the
// records.
//
// It also knows what the worktrees of agents are used for, and saves what they hold.
package carry

import (
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/chipset/flow"
	"github.com/gastown-chipset/chipset/chipset/rig"
	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/wording"
)

// carrier runs sequences on one rig.
type carrier struct {
	*rig.Rig
	// step is called after each effect that is durable on its own; an error ends
	// the run there, as a crash would. nil outside of tests.
	step func(effect string) error
	// tell tells a line to whoever watches, or is nil.
	tell func(format string, args ...any)
	// more carries out the effects that ask git, or is nil.
	more func(ctx context.Context, e flow.Effect) error
}

// did marks an effect that is durable.
func (c *carrier) did(effect string) error {
	if c.step == nil {
		return nil
	}
	return c.step(effect)
}

func (c *carrier) say(format string, args ...any) {
	if c.tell != nil {
		c.tell(format, args...)
	}
}

// maxRefusals bounds one run: a sequence that is refused again and again is a defect,
// and must not keep its process from everything else.
const maxRefusals = 100

// Run carries a sequence out: read its records, carry out the next effect, and
// again, until nothing is left. Errors of read, and of effects that decide nothing,
// end it; it may be run again from the records.
func Run(ctx context.Context, s flow.Sequence, read func() error, do func(context.Context, flow.Effect) error) error {
	for refusals := 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := read(); err != nil {
			return err
		}
		e := s.Next()
		if e == (flow.Done{}) {
			return nil
		}
		err := do(ctx, e)
		if err != nil {
			refusals++
		}
		if err != nil && (!flow.Decides(e, err) || refusals > maxRefusals) {
			return err
		}
		s.Answer(e, err)
	}
}

// run is Run on the stores of the rig. An error of step ends it.
func (c *carrier) run(ctx context.Context, s flow.Sequence, read func() error) error {
	var stopped error
	return Run(ctx, s, func() error {
		if stopped != nil {
			return stopped
		}
		return read()
	}, func(ctx context.Context, e flow.Effect) error {
		err := c.do(ctx, e)
		if err == nil {
			stopped = c.did(e.Name())
		}
		return err
	})
}

// do carries one effect out. Durable when it returns nil.
func (c *carrier) do(ctx context.Context, e flow.Effect) error {
	switch e := e.(type) {
	case flow.BeadChange:
		_, err := c.changeBead(ctx, e)
		return err
	case flow.HookChange:
		return c.changeHook(ctx, e)
	case flow.RequestChange:
		_, err := c.changeRequest(ctx, e)
		return err
	case flow.PutDispatch:
		return c.Dispatch.Reach(e.Record)
	case flow.RemoveDispatch:
		return c.removeDispatch(e)
	case flow.Send:
		return c.send(ctx, e)
	case flow.PutRetire:
		return c.putRetire(e)
	}
	if c.more != nil {
		return c.more(ctx, e)
	}
	return fmt.Errorf("no way to carry out %T", e)
}

func (c *carrier) changeBead(ctx context.Context, e flow.BeadChange) (bead.Bead, error) {
	return c.changeBeadThen(ctx, e, nil)
}

// changeBeadThen carries act out under the bead's lock, between the check and the
// write.
func (c *carrier) changeBeadThen(ctx context.Context, e flow.BeadChange, act func() error) (bead.Bead, error) {
	var gen int64
	after, err := c.Beads.By(author(e)).UpdateThen(ctx, string(e.Bead()), func(b *bead.Bead) error {
		gen = b.Gen
		return e.Change(b, c.Clock.Now())
	}, act)
	if done, is := e.(flow.BeadDone); is && err == nil && after.Gen != gen {
		c.say("%s: %s is %s%s", done.Record.AgentID, after.ID, after.Status, orNothing(": ", wording.Clip(wording.FirstLine(done.Reason()), 160)))
	}
	return after, err
}

func (c *carrier) changeHook(ctx context.Context, e flow.HookChange) error {
	_, err := c.Hooks.By(author(e)).Update(ctx, string(e.Hook()), func(h *hook.Hook) error { return e.Change(h, c.Clock.Now()) })
	return err
}

func (c *carrier) changeRequest(ctx context.Context, e flow.RequestChange) (mergequeue.Request, error) {
	changed := false
	after, err := c.Queue.By(author(e)).Update(ctx, string(e.Request()), func(q *mergequeue.Request) error {
		err := e.Change(q, c.Clock.Now())
		changed = err == nil
		return err
	})
	if stop, is := e.(flow.StopWaiting); is && changed && err == nil { // it stays in its status, which is no move
		c.Events.Tell(event.RequestRetried(stop.By, after.Told(), "it waits no longer"))
	}
	return after, err
}

func (c *carrier) removeDispatch(e flow.RemoveDispatch) error {
	if e.Refusal != nil {
		return c.Dispatch.Undo(e.Record, e.Refusal.Error())
	}
	return c.Dispatch.Remove(string(e.Record.BeadID))
}

// send delivers mail. Optional mail to somebody who can't get any is dropped.
func (c *carrier) send(ctx context.Context, e flow.Send) error {
	err := c.Sender.SendAs(ctx, e.As, e.Message)
	if e.Optional && flow.Refused(err) {
		c.Events.Tell(undeliverable(e, err))
		return nil
	}
	return err
}

func (c *carrier) putRetire(e flow.PutRetire) error {
	e.Record.UpdatedAt = c.Clock.Now()
	if e.Record.Stage != e.From {
		return c.Retire.Reach(e.Record)
	}
	return c.Retire.Put(string(e.Record.AssignmentID), e.Record)
}

// settle makes what a process that died has made visible in some folders durable:
// what comes next relies on it.
func (c *carrier) settle(dirs ...state.Path) error {
	var failed []error
	for _, dir := range dirs {
		if err := c.Tree.SyncDir(dir); !errors.Is(err, state.ErrNotFound) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// hooked is the assignment that a hook names. One that can't be read names none:
// the witness reports it, and the bead is what counts.
func (c *carrier) hooked(id state.AgentID) (state.AssignmentID, error) {
	if id == "" {
		return "", nil
	}
	h, err := c.Hooks.Get(string(id))
	if errors.Is(err, state.ErrNotFound) || errors.Is(err, state.ErrCorrupt) {
		return "", nil
	}
	return h.Assignment(), err
}
