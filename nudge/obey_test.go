package nudge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Each verb of a slot changes files under their locks, and says what it could not do.
func TestVerbsObey(t *testing.T) {
	slot := func(r *model.Run) Slot { return NewSlot(r.Tree, "polecat-alpha", nil) }
	lock := func(p state.Path) (state.LockKind, string) {
		if p.Base() == "seen.json" {
			return state.LockRecord, "seen-polecat-alpha"
		}
		return state.LockRecord, "nudge-polecat-alpha"
	}
	old := Nudge{From: "mayor", Type: Abort, Message: "old", Timestamp: now}
	dir := "state/nudge/polecat-alpha/"
	model.Obey(t, func(r *model.Run) error {
		var err error
		for _, from := range []state.AgentID{"mayor", "witness"} {
			_, sendErr := slot(r).Send(r, Nudge{From: from, Type: Abort, Message: "old"}, now)
			err = errors.Join(err, sendErr)
		}
		data, encodeErr := state.Encode(Seen{Seen: map[state.AgentID]state.Time{"witness": state.At(now.Add(time.Hour))}})
		return errors.Join(err, encodeErr, r.Tree.Replace(Dir.Join("polecat-alpha", "seen.json"), data))
	}, map[string]model.Verb{
		"send": {Lock: lock, Spares: []string{dir + "from/mayor.json"}, Do: func(r *model.Run) (any, error) {
			n, err := slot(r).Send(r, Nudge{From: "mayor", Type: HealthCheck}, state.At(now.Add(time.Second)))
			return n.Timestamp, err
		}},
		"mark": {Lock: lock, Spares: []string{dir + "seen.json"}, Do: func(r *model.Run) (any, error) { return nil, slot(r).MarkSeen(r, old) }},
		"unseen": {Lock: lock, Spares: []string{dir + "seen.json"}, Do: func(r *model.Run) (any, error) {
			all, bad, err := slot(r).Unseen()
			return all, errors.Join(append(bad, err)...)
		}},
	})

	bad := Dir.Join("polecat-alpha", "from", "bad.json")
	model.Obey(t, func(r *model.Run) error {
		_, err := slot(r).Send(r, old, now)
		data, encodeErr := state.Encode(Seen{Seen: map[state.AgentID]state.Time{"mayor": state.At(now.Add(time.Hour))}}) // it is taken back
		return errors.Join(err, encodeErr, r.Tree.Replace(Dir.Join("polecat-alpha", "seen.json"), data), r.Tree.Remove(Dir.Join("polecat-alpha", "latest.json")))
	}, map[string]model.Verb{
		"reconcile": {Lock: lock, Do: func(r *model.Run) (any, error) { return nil, slot(r).Reconcile(r, now) }},
	})
	model.Obey(t, func(r *model.Run) error { return r.Tree.Replace(bad, []byte("{")) }, map[string]model.Verb{
		"set aside": {Spares: []string{dir}, Do: func(r *model.Run) (any, error) { return nil, slot(r).Quarantine(r, bad, now) }, Lock: func(p state.Path) (state.LockKind, string) {
			if strings.HasPrefix(string(p), dir) {
				return lock(p)
			}
			return "", ""
		}},
	})
}
