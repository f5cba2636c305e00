package incident

import (
	"strings"
	"testing"
	"time"

	"github.com/gastown-chipset/chipset/state"
)

// An incident only grows until it is resolved, and then stays as it was.
func TestHistory(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	made := func(change func(i *Incident)) *Incident {
		i := &Incident{ID: "in-1", Kind: Stalled, Severity: Warning, AgentID: "polecat-alpha", BeadID: "gt-1", AssignmentID: "as-1", OpenedAt: at, Nudges: 2, Answers: 1}
		change(i)
		return i
	}
	same := func(*Incident) {}
	resolved := func(i *Incident) { i.ResolvedAt = &at }
	for name, c := range map[string]struct {
		before *Incident
		after  *Incident
		legal  bool
	}{
		"new":                   {nil, made(same), true},
		"the same":              {made(same), made(same), true},
		"worse":                 {made(same), made(func(i *Incident) { i.Severity = Critical }), true},
		"better":                {made(same), made(func(i *Incident) { i.Severity = None }), false},
		"resolved":              {made(same), made(resolved), true},
		"open again":            {made(resolved), made(same), false},
		"worse once resolved":   {made(resolved), made(func(i *Incident) { resolved(i); i.Severity = Critical }), false},
		"worse when resolved":   {made(same), made(func(i *Incident) { resolved(i); i.Severity = Critical }), true},
		"resolved and the same": {made(resolved), made(resolved), true},
		"asked again":           {made(same), made(func(i *Incident) { i.Nudges++ }), true},
		"fewer nudges":          {made(same), made(func(i *Incident) { i.Nudges-- }), false},
		"fewer answers":         {made(same), made(func(i *Incident) { i.Answers-- }), false},
		"of another agent":      {made(same), made(func(i *Incident) { i.AgentID = "polecat-bravo" }), false},
	} {
		if err := CheckChange(c.before, c.after); (err == nil) != c.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
	if History().CheckChange == nil {
		t.Error("nobody asks")
	}
}

// The log is told of what is opened, worse and resolved, each once, and of nothing else.
func TestTold(t *testing.T) {
	at := state.At(time.Date(2026, 3, 5, 10, 30, 0, 0, time.UTC))
	open, worse, over := &Incident{Severity: Warning}, &Incident{Severity: Alert}, &Incident{Severity: Warning, ResolvedAt: &at}
	for _, c := range []struct {
		before, after *Incident
		want          string
	}{
		{nil, open, "opened"}, {open, worse, "raised"}, {open, over, "resolved"},
		{open, open, ""}, {over, over, ""}, {over, open, ""}, {worse, open, ""},
	} {
		if e, is := eventOf(c.before, c.after); is != (c.want != "") || !strings.HasSuffix(e.Type, c.want) {
			t.Errorf("%+v → %+v: %q", c.before, c.after, e.Type)
		}
	}
}
