package polecat

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/gastown-chipset/chipset/state/fault"
	"github.com/gastown-chipset/chipset/state/retire"
)

// What an exit allows depends on every one of its facts: each of them alone takes it away.
func TestWhatAnExitAllows(t *testing.T) {
	spoil := map[string]func(e *Exit){
		"resumable":   func(e *Exit) { e.Resumable = !e.Resumable },
		"lost":        func(e *Exit) { e.Lost = true },
		"timed out":   func(e *Exit) { e.TimedOut = true },
		"not started": func(e *Exit) { e.NotStarted = "no such client" },
		"ending":      func(e *Exit) { e.Ending = Gone },
	}
	exits := map[string]struct {
		is   Exit
		asks func(e *Exit) bool
		more map[string]func(e *Exit)
	}{
		"it can wait": {Exit{Resumable: true, Ending: Clean}, (*Exit).CanWait, nil},
		"it is silent": {Exit{Ending: ByCode}, (*Exit).silent, map[string]func(e *Exit){
			"code": func(e *Exit) { e.Code = 1 }, "signal": func(e *Exit) { e.Signal = "SIGKILL" }}},
		"it was cut short": {Exit{Resumable: true, Ending: Broken, Fault: fault.New(fault.Overloaded, "overloaded")}, (*Exit).cutShort, map[string]func(e *Exit){
			"ending": func(e *Exit) { e.Ending = Clean }, "fault": func(e *Exit) { e.Fault = fault.New(fault.ClientMissing, "no client") }}},
		"it was cut short by its account": {Exit{Resumable: true, Ending: Broken, Fault: fault.New(fault.WrongKey, "no such key")}, (*Exit).cutShort, map[string]func(e *Exit){
			"ending": func(e *Exit) { e.Ending = Clean }, "fault": func(e *Exit) { e.Fault = fault.New(fault.ClientBroken, "no client") }}},
		"its client is gone": {Exit{Resumable: true, Ending: ByCode, Code: 127, NotStarted: "no such client", Fault: fault.New(fault.ClientMissing, "no client")}, (*Exit).cutShort, map[string]func(e *Exit){
			"ending": nil, "not started": func(e *Exit) { e.NotStarted = "" }, "fault": func(e *Exit) { e.Fault = fault.Fault{} }}},
		"it is unexplained": {Exit{Resumable: true, Ending: ByCode, Code: 1, Ran: shortRun - 1}, (*Exit).Unexplained, map[string]func(e *Exit){
			"script": func(e *Exit) { e.Script = true }, "long": func(e *Exit) { e.Ran = shortRun }, "no time": func(e *Exit) { e.Ran = 0 },
			"code": func(e *Exit) { e.Code = 0 }, "fault": func(e *Exit) { e.Fault = fault.New(fault.Overloaded, "overloaded") },
			"resumable": nil, "lost": nil, "not started": nil}},
	}
	for name, c := range exits {
		if !c.asks(&c.is) {
			t.Errorf("%s: not of %+v", name, c.is)
		}
		changes := maps.Clone(spoil)
		maps.Copy(changes, c.more)
		for what, change := range changes {
			if change == nil {
				continue // it depends on everything but that
			}
			e := c.is
			if change(&e); c.asks(&e) {
				t.Errorf("%s, in spite of its %s: %+v", name, what, e)
			}
		}
	}
}

// The mayor reads from an idle notification how the attempt ended, and why.
func TestIdleNotification(t *testing.T) {
	for _, c := range []struct {
		rec                     retire.Record
		reason, status, summary string
	}{
		{retire.Record{Outcome: retire.Done, Summary: "added"}, "available", "resolved", "added"},
		{retire.Record{Outcome: retire.Fail, Summary: "half", Reason: "red"}, "failed", "failed", "red"},
		{retire.Record{Outcome: retire.Block, Summary: "half", Reason: "which port?"}, "available", "blocked", "which port?"},
	} {
		m := idleNotification("polecat-alpha", "mayor", &c.rec).Message
		var got idleReport
		if err := json.Unmarshal(m.Metadata, &got); err != nil {
			t.Fatal(err)
		}
		if got.Reason != c.reason || got.Status != c.status || got.Summary != c.summary || m.Body != c.summary {
			t.Errorf("%s: %+v, %q", c.rec.Outcome, got, m.Body)
		}
	}
	m := idleNotification("polecat-alpha", "mayor", &retire.Record{Outcome: retire.Fail, Reason: strings.Repeat("long ", 5000)}).Message
	if len(m.Body) > 10_000 {
		t.Errorf("%d bytes of a reason", len(m.Body))
	}
}
