package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gastown-chipset/chipset/state"
)

// Step takes an object one version further.
type Step struct {
	Name string
	Do   func(ctx context.Context, t *state.Tree) error
	// Shows is a text that the object's file contains from this step to the next
	// and in no other version.
	Shows string
}

// Steps is the scenario of one object on its way: after a crash its file holds
// one of its versions, whole, and none that is older than what was promised.
// The next start goes on from where it stands. first is what the file shows
// when prepare is done; "" means that there is none.
func Steps(name string, p state.Path, prepare func(ctx context.Context, t *state.Tree) error, first string, steps ...Step) Scenario {
	way := path{p: p, first: first, steps: steps}
	return Scenario{
		Name: name,
		Prepare: func(r *Run) error {
			if prepare == nil {
				return nil
			}
			return prepare(r, r.Tree)
		},
		Do:    way.goOn,
		Heal:  way.goOn,
		Check: way.check,
	}
}

// path is the way of one object.
type path struct {
	p     state.Path
	first string
	steps []Step
}

// stands tells after how many steps an object is, by its content.
func (w path) stands(data []byte, there bool) (int, error) {
	if !there && w.first == "" {
		return 0, nil
	}
	if !there {
		return 0, fmt.Errorf("%s is gone", w.p)
	}
	for i := len(w.steps) - 1; i >= 0; i-- {
		if bytes.Contains(data, []byte(w.steps[i].Shows)) {
			return i + 1, nil
		}
	}
	if w.first != "" && bytes.Contains(data, []byte(w.first)) {
		return 0, nil
	}
	return 0, fmt.Errorf("%s holds none of its versions: %.200q", w.p, data)
}

func (w path) goOn(r *Run) error {
	data, err := r.Tree.Read(w.p, state.MaxFile)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	stands, err := w.stands(data, err == nil)
	if err != nil {
		return err
	}
	for _, s := range w.steps[stands:] {
		if err := s.Do(r, r.Tree); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		r.Ack(s.Name)
	}
	return nil
}

func (w path) check(c *Crash) error {
	file, there := c.Files[string(w.p)]
	stands, err := w.stands(file.Data, there)
	if err != nil {
		return err
	}
	for i := len(w.steps); i > stands; i-- {
		if c.Acked(w.steps[i-1].Name) {
			return fmt.Errorf("%s fell back behind %s", w.p, w.steps[i-1].Name)
		}
	}
	return nil
}
