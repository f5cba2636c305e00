package retire

import (
	"testing"

	"github.com/gastown-chipset/chipset/state"
)

// An end is published once, and its stage only advances.
func TestHistory(t *testing.T) {
	made := func(s Stage, change func(r *Record)) *Record {
		r := &Record{AssignmentID: "as-1", BeadID: "gt-1", AgentID: "polecat-alpha", Outcome: Done, Stage: s, Head: "1", Base: "2"}
		if change != nil {
			change(r)
		}
		return r
	}
	fails := func(r *Record) { r.Outcome, r.Reason = Fail, "no change" }
	for name, c := range map[string]struct {
		before, after *Record
		legal         bool
	}{
		"new":                       {nil, made(Published, nil), true},
		"on":                        {made(Published, nil), made(Committed, nil), true},
		"the same stage":            {made(Committed, nil), made(Committed, nil), true},
		"back":                      {made(Recorded, nil), made(Committed, nil), false},
		"after the end":             {made(Released, nil), made(Released, nil), false},
		"taken away":                {made(Committed, nil), made(Stale, nil), true},
		"taken away too late":       {made(Recorded, nil), made(Stale, nil), false},
		"not fit to land":           {made(Published, nil), made(Committed, fails), true},
		"unfit after it was stored": {made(Committed, nil), made(Recorded, fails), false},
		"a failure that is done":    {made(Published, fails), made(Committed, nil), false},
		"the head is found":         {made(Published, func(r *Record) { r.Head = "" }), made(Committed, nil), true},
		"another head":              {made(Committed, nil), made(Recorded, func(r *Record) { r.Head = "3" }), false},
		"another bead":              {made(Published, nil), made(Committed, func(r *Record) { r.BeadID = state.BeadID("gt-2") }), false},
	} {
		if err := moved(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if History().CheckChange == nil {
		t.Error("nobody asks")
	}
}
