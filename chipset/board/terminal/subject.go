package terminal

import (
	"github.com/gastown-chipset/chipset/chipset/board/act"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/mail"
	"github.com/gastown-chipset/chipset/state"
)

// subject is the selection. Fields that don't apply are nil or "".
type subject struct {
	act.Subject
	// convoy is set if nothing else is.
	convoy *view.ConvoyStatus
	// session is the session of the present worker, "" if there is none.
	session state.SessionID
	letter  *mail.Entry
}

// about makes the row the subject.
func (r *workRow) about(s *subject, b *Board) {
	s.Item, s.convoy, s.Agent, s.letter = r.item, r.convoy, r.agent, r.letter
	if r.agent != nil {
		s.Item = b.view.Work.Find(r.agent.BeadID)
	}
	if r.event != nil {
		if s.Item = b.view.Work.Find(r.event.Bead); s.Item == nil {
			s.Agent = b.agent(r.event.Agent)
		}
	}
}

// same reports whether two subjects are about the same thing.
func (s subject) same(o subject) bool { return s.name() == o.name() && s.session == o.session }

// name is the title of the detail.
func (s subject) name() string {
	switch {
	case s.letter != nil:
		return string(s.letter.Name)
	case s.Item != nil:
		return string(s.Item.Bead.ID)
	case s.Agent != nil:
		return string(s.Agent.ID)
	case s.Need != nil:
		return string(s.Need.Key)
	case s.convoy != nil:
		return string(s.convoy.ID)
	}
	return ""
}
