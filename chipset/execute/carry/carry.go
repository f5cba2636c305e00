// Package carry carries out the effects of the durable sequences (chipset/flow) on
// the stores and git of a rig, and offers the sequences as verbs: Sling, Publish and
// Finish, Move with Unsling, Cancel, Reopen and TakeBack, Retry and Drop. A crash
// may come between any two effects; the next process continues from the
// records.
//
// It also records what agents' worktrees are used for, and saves their work.
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
	// step is called after each durable effect; an error ends
	// the run there, as a crash would. nil outside tests.
	step func(effect string) error
	// tell prints a line for the person, or is nil.
	tell func(format string, args ...any)
	// more carries out the effects that need git, or is nil.
	more func(ctx context.Context, e flow.Effect) error
}

// did reports a durable effect to step.
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
// and must not block its process.
const maxRefusals = 100

// Run carries a sequence out: it reads the records and carries out the next effect,
// until none is left. Errors of read, and of effects that decide nothing,
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

// run is Run on the rig's stores. An error of step ends it.
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

// do carries out one effect. It is durable when do returns nil.
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

// changeBeadThen calls act under the bead's lock, between the check and the
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
	if stop, is := e.(flow.StopWaiting); is && changed && err == nil { // its status stays, so no store logs a move
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

// send delivers mail. Optional mail to a recipient that can't get any is dropped.
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

// settle makes the entries of some folders durable. A process that died may have
// made them visible only, and the next effects rely on them.
func (c *carrier) settle(dirs ...state.Path) error {
	var failed []error
	for _, dir := range dirs {
		if err := c.Tree.SyncDir(dir); !errors.Is(err, state.ErrNotFound) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// hooked returns the assignment that a hook names, or "". A hook that can't be read
// names none: the witness reports it, and the bead decides.
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
