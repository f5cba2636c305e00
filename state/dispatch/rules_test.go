package dispatch

import (
	"testing"

	"github.com/gastown-chipset/chipset/state"
)

// A record goes forward, keeps what it was made for, and its mail's name once that was sent.
func TestMoved(t *testing.T) {
	with := func(s Stage, change func(*Record)) *Record {
		r := &Record{BeadID: "tt-1", AgentID: "polecat-alpha", AssignmentID: "as-1", By: "mayor", Branch: "b", Stage: s, MailName: "m"}
		if change != nil {
			change(r)
		}
		return r
	}
	renamed := func(r *Record) { r.MailName = "n" }
	for what, c := range map[string]struct {
		before, after *Record
		good          bool
	}{
		"new": {nil, with(Stored, nil), true}, "forward": {with(Stored, nil), with(Launched, nil), true}, "the same": {with(Launched, nil), with(Launched, nil), true},
		"back": {with(Confirmed, nil), with(Launched, nil), false}, "another mail": {with(Launched, nil), with(Launched, renamed), true},
		"another mail, confirmed": {with(Confirmed, nil), with(Confirmed, renamed), false},
		"another agent":           {with(Stored, nil), with(Stored, func(r *Record) { r.AgentID = "polecat-bravo" }), false},
		"the next dispatch":       {with(Confirmed, nil), with(Stored, func(r *Record) { r.AssignmentID = "as-2" }), true},
	} {
		if err := moved(c.before, c.after); (err == nil) != c.good {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*Record){"agent": func(r *Record) { r.AgentID = "" }, "assignment": func(r *Record) { r.AssignmentID = "" }, "stage": func(r *Record) { r.Stage = "odd" }, "bead": func(r *Record) { r.BeadID = state.BeadID("tt-2") }} {
		if check("tt-1", with(Stored, change)) == nil {
			t.Errorf("a bad %s was taken", what)
		}
	}
}
