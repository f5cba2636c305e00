package terminal

import (
	"github.com/gastown-chipset/chipset/chipset/board/act"
	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/state"
)

// subject is what is selected. What does not apply is nil or "".
type subject struct {
	act.Subject
	// convoy is set where nothing else is.
	convoy *view.ConvoyStatus
	// session is that of the last attempt that is known, for the transcript.
	session state.SessionID
}

// same reports whether two subjects are about the same thing.
func (s subject) same(o subject) bool { return s.name() == o.name() && s.session == o.session }

// name is what the detail is called.
func (s subject) name() string {
	switch {
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
