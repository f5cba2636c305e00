package pause

import (
	"errors"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Each verb changes a pause under its lock and says what it could not do.
func TestVerbsObey(t *testing.T) {
	store := func(r *model.Run) Store { return NewStore(r.Tree, nil) }
	lock := func(p state.Path) (state.LockKind, string) {
		if !strings.HasPrefix(string(p), "state/pauses/") {
			return "", ""
		}
		return state.LockRecord, strings.TrimSuffix(p.Base(), ".json")
	}
	claude := Client("claude")
	ended := func(b state.BeadID, failed bool, seconds int) Ended {
		e := Ended{Try: try(b, seconds), Client: claude}
		if failed {
			e.Fault = overloaded()
		}
		return e
	}
	model.Obey(t, func(r *model.Run) error {
		_, err := store(r).Note(r, ended("gt-1", true, 0), rules())
		return errors.Join(err, store(r).Change(r, claude, func(p *Pause) error { return p.Admit([]state.BeadID{"gt-2"}, at(6)) }))
	}, map[string]model.Verb{
		"a failure": {Lock: lock, Spares: []string{"state/pauses"}, Do: func(r *model.Run) (any, error) {
			began, err := store(r).Note(r, ended("gt-2", true, 7), rules())
			return began == nil, err
		}},
		"a success": {Lock: lock, Do: func(r *model.Run) (any, error) {
			_, err := store(r).Note(r, ended("gt-2", false, 7), rules())
			return nil, err
		}},
		"change": {Lock: lock, Do: func(r *model.Run) (any, error) {
			return nil, store(r).Change(r, claude, func(p *Pause) error { return p.Resume(at(9)) })
		}},
	})
}

// What needed the scopes before the one that failed proves them well, and a pause keeps fields that it does not know.
func TestWhatAFailureProves(t *testing.T) {
	tree, err := state.Create(t.TempDir())
	must(t, err)
	s := NewStore(tree, nil)
	claude := Client("claude")
	for _, scope := range Path(claude) {
		must(t, s.Change(t.Context(), scope, func(p *Pause) error { return p.Fail(try("gt-1", 0), overloaded(), rules()) }))
		must(t, s.Change(t.Context(), scope, func(p *Pause) error {
			p.Extra = state.Extra{"later": []byte("1")}
			return p.Admit([]state.BeadID{"gt-2"}, at(6))
		}))
	}
	_, err = s.Note(t.Context(), Ended{Try: try("gt-2", 7), Client: claude, Fault: overloaded()}, rules())
	must(t, err)
	failed := Of(overloaded().Kind, claude)
	for _, scope := range Path(claude) {
		p, err := s.Get(scope.File())
		must(t, err)
		want := Ramping
		if scope == failed {
			want = Paused
		}
		if p.Status != want || string(p.Extra["later"]) != "1" {
			t.Errorf("%s is %s, with %v", scope, p.Status, p.Extra)
		}
		if scope == failed {
			break
		}
	}
	over := &Pause{Scope: claude, Status: Over, Extra: state.Extra{"later": []byte("1")}}
	must(t, over.Fail(try("gt-3", 9), overloaded(), rules()))
	if string(over.Extra["later"]) != "1" {
		t.Errorf("begun again without %v", over.Extra)
	}
}
