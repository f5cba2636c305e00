package event

import (
	"context"

	"github.com/gastown-chipset/chipset/state"
)

// Author appends events to a log in the name of an agent. The zero Author drops them.
type Author struct {
	// Log may be nil.
	Log *Log
	// Agent, unless it is "", replaces the agent of each event.
	Agent state.AgentID
	// Why, unless it is "", replaces the text of each event.
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

// Recorder is a store that logs the changes of its objects. Put and Remove log nothing:
// they are used for repairs, or by verbs that log an event themselves.
type Recorder[T any] struct {
	*state.Store[T]
	author Author
	// eventOf returns the event of a change, and whether it is logged. before is nil for a new object.
	eventOf func(before, after *T) (Event, bool)
}

// Record returns a recorder of a store. eventOf returns the event of a change, and whether it
// is logged; before is nil for a new object. A nil log drops everything.
func Record[T any](s *state.Store[T], log *Log, eventOf func(before, after *T) (Event, bool)) Recorder[T] {
	return Recorder[T]{Store: s, author: Author{Log: log}, eventOf: eventOf}
}

// By returns the recorder with agent as the author of its events, and with why as their text, unless why is "".
func (r Recorder[T]) By(agent state.AgentID, why string) Recorder[T] {
	r.author.Agent, r.author.Why = agent, why
	return r
}

// Author returns the author of the recorder's events, for further events.
func (r Recorder[T]) Author() Author { return r.author }

// Create is state.Store.Create, and logs the event of the new object.
func (r Recorder[T]) Create(name string, v T) error {
	err := r.Store.Create(name, v)
	if err == nil {
		r.logChange(nil, &v)
	}
	return err
}

// CreateAll is state.Store.CreateAll, and logs the event of each new object.
func (r Recorder[T]) CreateAll(all []T, name func(v *T) string) []error {
	errs := r.Store.CreateAll(all, name)
	var events []Event
	for i, err := range errs {
		if e, is := r.eventOf(nil, &all[i]); err == nil && is {
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
		r.logChange(&before, &v)
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
		r.logChange(before, &v)
	}
	return v, err
}

func (r Recorder[T]) logChange(before, after *T) {
	if e, is := r.eventOf(before, after); is {
		r.author.Tell(e)
	}
}
