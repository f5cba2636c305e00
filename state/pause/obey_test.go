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
