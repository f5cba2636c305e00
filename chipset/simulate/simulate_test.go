package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gastown-chipset/chipset/hook"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/incident"
	"github.com/gastown-chipset/chipset/state/mergequeue"
	"github.com/gastown-chipset/chipset/state/retire"
	"github.com/gastown-chipset/chipset/state/statetest"
)

func faults(t testing.TB, s string) Faults {
	t.Helper()
	f, err := ParseFaults(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func run(t testing.TB, o Options) *Report {
	t.Helper()
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The same options give the same bytes; another seed gives another run.
func TestDeterministic(t *testing.T) {
	o := Defaults()
	o.Beads, o.Batch, o.Flaky, o.Faults = 300, 4, 0.02, faults(t, "all,kill=1h,full=12h,jump=6h,tests=1d")
	text := func(o Options) string {
		data, err := json.Marshal(run(t, o))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := text(o)
	if again := text(o); again != first {
		t.Errorf("the same options gave\n%s\nand\n%s", first, again)
	}
	o.Seed = 2
	if text(o) == first {
		t.Error("another seed gave the same run")
	}
}

// A year (a season where CHIPSET_FULL is not 1) of a rig that people give work to and in which everything goes wrong
// again and again: no rule is violated, and the work gets done.
func TestYearWithFaults(t *testing.T) {
	o := Defaults()
	o.Polecats, o.Beads, o.PerHour, o.For, o.Person, o.Patrol = 6, 1_000_000, 2, 365*day, 8*time.Hour, 30*time.Second
	o.Batch, o.Flaky, o.Faults = 3, 0.01, faults(t, "all")
	if os.Getenv("CHIPSET_FULL") != "1" {
		o.For = 90 * day
	}
	r := run(t, o)
	if r.Hours < o.For.Hours() {
		t.Errorf("ended after %.0f hours", r.Hours)
	}
	if r.Landed < r.Arrived*99/100 || r.Arrived < int(o.For.Hours()) {
		t.Errorf("%d of %d beads landed", r.Landed, r.Arrived)
	}
	if r.Stalls.Injected == 0 || r.Stalls.Found < r.Stalls.Injected*8/10 {
		t.Errorf("of %d hung workers %d were found", r.Stalls.Injected, r.Stalls.Found)
	}
	for _, kind := range []string{"kill", "power", "jump", "sleep", "full", "outage", "tests", "service", "pushes"} {
		if r.Faults[kind] == 0 {
			t.Errorf("there was no %s", kind)
		}
	}
}

// Every kind of fault by itself, far more often than usual: the rig shows it, and
// all work gets done nevertheless.
func TestEveryFault(t *testing.T) {
	wasted := func(why string) func(r *Report) bool {
		return func(r *Report) bool { return r.WastedHours[why] > 0 }
	}
	for name, shows := range map[string]func(r *Report) bool{
		"crash=0.3": wasted("worker crashed"),
		"hang=0.1": func(r *Report) bool {
			return r.Stalls.Injected > 5 && r.Stalls.Found >= r.Stalls.Injected-2 && r.Stalls.FoundAfter.P50 > 240 && r.Stalls.FoundAfter.P50 < 420 && r.WastedHours["stalled"] > 0
		},
		"kill=10m":  wasted("process killed"),
		"power=30m": func(r *Report) bool { return r.Faults["power"] > 2 && r.WastedHours["process killed"] > 0 },
		// Health checks and answers are all lost: mail and hooks are the truth.
		"hang=0.1,nudge=1": func(r *Report) bool {
			return r.Lost > 0 && r.Lost == sum(r.Nudges) && r.Stalls.Restarts > 0
		},
		"notify=1": func(r *Report) bool { return r.Start.P50 > 1 && r.Start.Max < 10 },
		"late=1":   func(r *Report) bool { return r.Start.P50 > 0.2 },
		// Neither a set clock nor sleep is held against a worker.
		"jump=30m":  func(r *Report) bool { return r.Faults["jump"] > 2 && r.Stalls.FalseRestarts == 0 },
		"sleep=30m": func(r *Report) bool { return r.Faults["sleep"] > 2 && r.Stalls.FalseRestarts == 0 },
		// A worker whose progress nobody could write down is not stalled.
		"full=40m": func(r *Report) bool { return r.Incidents["disk_low"] > 0 && r.Stalls.FalseRestarts == 0 },
		"outage=40m": func(r *Report) bool {
			return r.Incidents["refinery_missing"] > 0 && r.Landing.Max > 1800
		},
		// Nobody is blamed for tests that can't be run.
		"tests=40m": func(r *Report) bool { return r.Faults["tests"] > 0 && r.Tests.Tip > 0 && r.Landing.Max > 600 },
		// Nobody is charged for a service that is down, and no worker is replaced.
		"service=40m": func(r *Report) bool {
			return r.Faults["service"] > 0 && r.Landing.Max > 0 && r.Stalls.FalseRestarts == 0
		},
		"pushes=10m": func(r *Report) bool { return r.Tests.Green > r.Landed },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Defaults()
			o.Beads, o.Fail, o.Person, o.Faults = 150, 0, time.Hour, faults(t, name)
			r := run(t, o)
			if !r.Ended || r.Landed != o.Beads {
				t.Errorf("%d of %d landed (ended: %v)", r.Landed, o.Beads, r.Ended)
			}
			if !shows(r) {
				var text bytes.Buffer
				_ = r.WriteText(&text)
				t.Errorf("the fault does not show:\n%s", &text)
			}
		})
	}
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// Any small rig under any mixture of faults comes to its end without a violation. CHIPSET_SEED draws others.
func TestAnyRig(t *testing.T) {
	checks := 20
	if os.Getenv("CHIPSET_FULL") == "1" {
		checks = 100
	}
	statetest.Check(t, checks, func(t *rapid.T) {
		o := Defaults()
		o.Seed = rapid.Uint64().Draw(t, "seed")
		o.Polecats, o.Beads = rapid.IntRange(1, 6).Draw(t, "polecats"), rapid.IntRange(0, 40).Draw(t, "beads")
		o.Batch, o.MaxParallel = rapid.IntRange(1, 6).Draw(t, "batch"), rapid.IntRange(0, 4).Draw(t, "max_parallel")
		p := func(name string) float64 { return rapid.SampledFrom([]float64{0, 0.02, 0.4}).Draw(t, name) }
		o.Red, o.Flaky, o.Fail, o.Conflict, o.Overlap, o.Needs = p("red"), p("flaky"), p("fail"), p("conflict"), p("overlap"), p("needs")
		o.PerHour = rapid.SampledFrom([]float64{0, 5, 100}).Draw(t, "per_hour")
		o.Person = rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "person")
		kinds := rapid.SliceOfN(rapid.SampledFrom([]string{"crash=0.2", "hang=0.1", "kill=15m", "power=3h", "nudge=0.5", "notify=0.5", "late=0.5",
			"jump=2h", "sleep=2h", "full=4h", "outage=6h", "tests=4h", "service=6h", "pushes=20m"}), 0, 5).Draw(t, "faults")
		f, err := ParseFaults(strings.Join(kinds, ","))
		if err != nil {
			t.Fatal(err)
		}
		o.Faults, o.For = f, 60*day
		r, err := Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Ended && o.Person == 0 {
			t.Fatalf("not at its end after %s: %+v", o.For, r)
		}
	})
}

// What the judge is for.
func TestJudge(t *testing.T) {
	o := Defaults()
	o.Beads = 1
	at := state.At(epoch())
	slung := bead.Bead{ID: beadName(0), Status: bead.Hooked, AssignmentID: "as-1", Assignee: "polecat-00000", Assignments: 1, Gen: 2}
	for name, c := range map[string]struct {
		does func(w *world)
		says string
	}{
		"landed twice": {func(w *world) {
			for n := range 2 {
				w.judge.lands(w, &mergequeue.Request{ID: "mr", BeadID: beadName(0), Seq: int64(n + 1)})
			}
		}, "landed 2 times"},
		"out of order": {func(w *world) {
			w.judge.lastSeq = 7
			w.judge.lands(w, &mergequeue.Request{ID: "mr", BeadID: beadName(0), Seq: 3})
		}, "landed after 7"},
		"illegal bead": {func(w *world) {
			old := *w.backlog.Get(beadName(0))
			b := old
			b.Status, b.Gen = bead.Merged, 2
			w.judge.bead(w, &old, &b)
		}, "can't become merged"},
		"illegal hook": {func(w *world) {
			old := hook.Hook{AgentID: "a", Status: hook.Empty}
			w.judge.hook(w, &old, &hook.Hook{AgentID: "a", Status: hook.Completed, Gen: 1, WorkItem: &hook.WorkItem{AssignmentID: "as", BeadID: "b"}})
		}, "can't become completed"},
		"illegal request": {func(w *world) {
			w.judge.request(w, &mergequeue.Request{ID: "mr", Status: mergequeue.Merged}, &mergequeue.Request{ID: "mr", Status: mergequeue.Pending})
		}, "can't become pending"},
		"incident that falls": {func(w *world) {
			w.judge.incident(w, &incident.Incident{ID: "in", Severity: incident.Alert}, &incident.Incident{ID: "in", Severity: incident.Warning})
		}, "severity fell"},
		"end of an attempt that changes": {func(w *world) {
			w.judge.record(w, retire.Record{Outcome: retire.Done, Stage: retire.Submitted}, retire.Record{Outcome: retire.Done, Stage: retire.Committed}, true)
		}, "changed from done (submitted)"},
		"alerted twice": {func(w *world) {
			i := &incident.Incident{ID: "in", Severity: incident.Alert}
			w.judge.alerted(w, i)
			w.judge.alerted(w, i)
		}, "was reported 2 times"},
		"two workers": {func(w *world) {
			w.polecats[0].launch(hook.WorkItem{BeadID: beadName(0), AssignmentID: "as-1"})
			w.polecats[0].launch(hook.WorkItem{BeadID: beadName(0), AssignmentID: "as-1"})
		}, "second worker"},
		"lost bead": {func(w *world) {
			w.backlog.Remove(beadName(0))
			w.judge.inspect(w)
		}, "1 beads arrived, and 0 are there"},
		"forgotten on a hook": {func(w *world) {
			w.backlog.Put(slung)
			w.now = 8 * day
			w.judge.inspect(w)
		}, "is hooked on polecat-00000"},
		"no dispatch": {func(w *world) {
			w.now = 8 * day
			w.judge.changed = w.now
			w.judge.inspect(w)
		}, "none was slung"},
		"unfinished end": {func(w *world) {
			w.backlog.Put(slung)
			w.judge.final(w)
		}, "the rig ended, but bead sim-0000000 is hooked"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(o)
			w.addBead(bead.Bead{ID: beadName(0), Title: "x", CreatedAt: at})
			c.does(w)
			var v *Violation
			if !errors.As(w.broken, &v) || !strings.Contains(v.Error(), c.says) || !strings.Contains(v.Error(), "seed 1") {
				t.Errorf("got %v, want %q", w.broken, c.says)
			}
		})
	}
}

// A violation ends the run and comes with the report up to it.
func TestViolationEndsTheRun(t *testing.T) {
	w := newWorld(Defaults())
	w.populate()
	w.after(time.Minute, func() { w.fail("made up") })
	if err := w.run(context.Background(), 0, func() bool { return w.broken != nil || w.over() }); err != nil {
		t.Fatal(err)
	}
	r := w.report(false)
	if w.now != time.Minute || !strings.Contains(r.Violation, "after 1m0s of virtual time (2026-01-01T00:01:00Z): made up") {
		t.Errorf("at %s: %q", w.now, r.Violation)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Defaults()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "90m": 90 * time.Minute, "7d": 7 * day, "1y": 365 * day, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "x", "-1h", "-3d", "1dd", "NaNd", "1e9y"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
	if f := faults(t, "all,hang=0,kill=2d"); f.Hang != 0 || f.Kill != 2*day || f.Crash != 0.01 {
		t.Errorf("%+v", f)
	}
	if f := faults(t, "none"); f != (Faults{}) {
		t.Errorf("%+v", f)
	}
	for _, text := range []string{"nothing", "hang=2", "hang=NaN", "kill=1s", "kill=soon", "all=1"} {
		if _, err := ParseFaults(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	o := Defaults()
	if err := o.Check(); err != nil {
		t.Error(err)
	}
	o.Polecats, o.Red, o.Batch, o.Work = 0, 1, 0, 0
	for _, want := range []string{"polecats", "red", "batch", "work"} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
