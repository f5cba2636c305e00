package event

import (
	"context"

	"github.com/gastown-chipset/chipset/state"
)

// Author is who appends to a log, and why. The zero Author tells nobody.
type Author struct {
	// Log is nil where nobody is told.
	Log *Log
	// Agent, where it is not "", takes the place of an event's own agent.
	Agent state.AgentID
	// Why, where it is not "", takes the place of an event's own text.
	Why string
}

// Tell appends events; see Log.Tell.
func (a Author) Tell(events ...Event) {
	for i := range events {
		if a.Agent != "" {
			events[i].Agent = a.Agent
		}
		if a.Why != "" {
			events[i].Text = a.Why
		}
	}
	a.Log.Tell(events...)
}

// Recorder is a store that tells the log what becomes of its objects. Put and
// Remove tell nothing: they repair, or their callers have verbs that do.
type Recorder[T any] struct {
	*state.Store[T]
	author Author
	// tell returns what a change is told as, if it is told. before is nil for an object that is new.
	tell func(before, after *T) (Event, bool)
}

// Record makes a recorder of a store. A nil log drops everything.
func Record[T any](s *state.Store[T], log *Log, tell func(before, after *T) (Event, bool)) Recorder[T] {
	return Recorder[T]{Store: s, author: Author{Log: log}, tell: tell}
}

// By returns the recorder as an agent uses it. why, where it is not "", is the text of what it tells.
func (r Recorder[T]) By(agent state.AgentID, why string) Recorder[T] {
	r.author.Agent, r.author.Why = agent, why
	return r
}

// Author is who uses the recorder, for events beside those of changes.
func (r Recorder[T]) Author() Author { return r.author }

// Create is state.Store.Create, and logs the event of the new object.
func (r Recorder[T]) Create(name string, v T) error {
	err := r.Store.Create(name, v)
	if err == nil {
		r.told(nil, &v)
	}
	return err
}

// CreateAll is state.Store.CreateAll, and logs the event of each new object.
func (r Recorder[T]) CreateAll(all []T, name func(v *T) string) []error {
	errs := r.Store.CreateAll(all, name)
	var events []Event
	for i, err := range errs {
		if e, is := r.tell(nil, &all[i]); err == nil && is {
			events = append(events, e)
		}
	}
	r.author.Tell(events...)
	return errs
}

// Update is state.Store.Update, and logs the event of the change.
func (r Recorder[T]) Update(ctx context.Context, name string, change func(v *T) error) (T, error) {
	return r.UpdateThen(ctx, name, change, nil)
}

// UpdateThen is state.Store.UpdateThen, and logs the event of the change.
func (r Recorder[T]) UpdateThen(ctx context.Context, name string, change func(v *T) error, act func() error) (T, error) {
	var before T
	changed := false
	v, err := r.Store.UpdateThen(ctx, name, func(v *T) error {
		before = *v
		err := change(v)
		changed = err == nil
		return err
	}, act)
	if err == nil && changed {
		r.told(&before, &v)
	}
	return v, err
}

// Upsert is state.Store.Upsert, and logs the event of the change.
func (r Recorder[T]) Upsert(ctx context.Context, name string, change func(v *T, found bool) error) (T, error) {
	var before *T
	changed := false
	v, err := r.Store.Upsert(ctx, name, func(v *T, found bool) error {
		if found {
			was := *v
			before = &was
		}
		err := change(v, found)
		changed = err == nil
		return err
	})
	if err == nil && changed {
		r.told(before, &v)
	}
	return v, err
}

func (r Recorder[T]) told(before, after *T) {
	if e, is := r.tell(before, after); is {
		r.author.Tell(e)
	}
}
