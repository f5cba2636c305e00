package mail

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/agent"
	"github.com/gastown-chipset/chipset/state/event"
	"github.com/gastown-chipset/chipset/state/statetest/model"
)

// Each verb of a mailbox changes messages under its lock, says what it could not do, and
// tells what it did.
func TestVerbsObey(t *testing.T) {
	log := func(r *model.Run) *event.Log { return event.NewLog(r.Tree, fixed) }
	box := func(r *model.Run) *Mailbox { return NewMailbox(r.Tree, "mayor").WithLog(log(r)) }
	sender := func(r *model.Run) *Sender {
		return NewSender(r.Tree, agent.NewStore(r.Tree, nil), fixed, 0).WithLog(log(r))
	}
	lock := func(p state.Path) (state.LockKind, string) {
		if !strings.HasPrefix(string(p), string(Dir)) {
			return "", ""
		}
		return state.LockMailbox, "mayor"
	}
	const dir = "state/mail/mayor"
	at := func(n time.Duration) state.Time { return state.At(now.Add(n * time.Hour)) }
	named := func(n time.Duration) Message {
		m := hello()
		m.Timestamp, m.ID = at(n), "id-"+at(n).Stamp()
		return m
	}
	first, second := NameAt(at(1), "polecat-alpha"), NameAt(at(2), "polecat-alpha")
	every := []string{dir}
	list := func(r *model.Run, archived bool) (any, error) {
		all, bad, err := box(r).list(archived, nil)
		for _, c := range bad {
			err = errors.Join(err, c)
		}
		return len(all), err
	}
	model.Obey(t, func(r *model.Run) error {
		agents := agent.NewStore(r.Tree, nil)
		var err error
		for id, role := range map[state.AgentID]agent.Role{"mayor": agent.Mayor, "polecat-alpha": agent.Polecat} {
			_, registerErr := agents.Register(r, id, role, "rig", nil, now)
			err = errors.Join(err, registerErr)
		}
		for n := range time.Duration(3) {
			_, sendErr := sender(r).Send(r, named(n))
			err = errors.Join(err, sendErr)
		}
		err = errors.Join(err, box(r).MarkRead(r, NameAt(at(0), "polecat-alpha")))
		_, archiveErr := box(r).ArchiveOld(r, "mayor", at(1).Time, false)
		return errors.Join(err, archiveErr, box(r).MarkRead(r, first))
	}, map[string]model.Verb{
		"send": {Tells: " mail.sent", Spares: every, Do: func(r *model.Run) (any, error) { return sender(r).Send(r, hello()) }},
		"send with an ID": {Tells: " mail.sent", Lock: lock, Spares: every, Do: func(r *model.Run) (any, error) {
			return sender(r).Send(r, named(5))
		}},
		"send again": {Lock: lock, Spares: every, Do: func(r *model.Run) (any, error) { return sender(r).Send(r, named(2)) }},
		"send under a name": {Tells: " mail.sent", Lock: lock, Spares: every, Do: func(r *model.Run) (any, error) {
			return nil, sender(r).SendAs(r, NameAt(at(6), "polecat-alpha"), named(6))
		}},
		"send all": {Tells: " mail.sent mail.sent", Spares: every, Do: func(r *model.Run) (any, error) {
			names, errs := sender(r).SendAll(r, []Message{hello(), named(7)})
			return names, errors.Join(errs...)
		}},
		"send all again": {Lock: lock, Spares: every, Do: func(r *model.Run) (any, error) {
			names, errs := sender(r).SendAll(r, []Message{named(2)})
			return names, errors.Join(errs...)
		}},
		"mark as read": {Tells: " mail.handled", Lock: lock, Do: func(r *model.Run) (any, error) { return nil, box(r).MarkRead(r, second) }, Spares: []string{dir + "/" + string(first), dir + "/archive"}},
		"archive": {Tells: " mail.archived", Lock: lock, Spares: []string{dir + "/" + string(second), dir + "/archive/"}, Do: func(r *model.Run) (any, error) {
			names, err := box(r).ArchiveOld(r, "mayor", at(9).Time, false)
			if err == nil && len(names) == 0 {
				err = errors.New("what can't be read is for the doctor")
			}
			return names, err
		}},
		"list":         {Do: func(r *model.Run) (any, error) { return list(r, false) }, Spares: []string{dir + "/archive"}},
		"list archive": {Do: func(r *model.Run) (any, error) { return list(r, true) }, Spares: []string{dir + "/" + string(first), dir + "/" + string(second)}},
	})
}
