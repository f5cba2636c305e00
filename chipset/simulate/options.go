package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/definition"
)

// Options describe a rig, its work and what goes wrong.
type Options struct {
	Polecats int    `json:"polecats"`
	Beads    int    `json:"beads"`
	Seed     uint64 `json:"seed"`
	// For ends the run after that much virtual time; 0 lets it run until nothing is
	// left to do.
	For time.Duration `json:"for_ns"`

	// Work and Test are the medians of the time that a worker takes for a bead, and
	// the test command for a run; both are log-normal with the shape Spread.
	Work   time.Duration `json:"work_ns"`
	Test   time.Duration `json:"test_ns"`
	Spread float64       `json:"spread"`
	// Progress is the median time between two signs of life of a worker.
	Progress time.Duration `json:"progress_ns"`
	// PerHour is how many beads arrive in an hour, at random times; 0 is all at once.
	PerHour float64 `json:"per_hour"`
	// Needs is the share of beads that wait for one to three earlier ones, Chain
	// how far back those lie at most.
	Needs float64 `json:"needs"`
	Chain int     `json:"chain"`
	// Fail is the probability that an attempt fails by itself, Red that finished
	// work breaks the tests, Flaky that a test of good work is red all the same.
	Fail  float64 `json:"fail"`
	Red   float64 `json:"red"`
	Flaky float64 `json:"flaky"`
	// Conflict is the probability that a merge request conflicts with the target,
	// Overlap that of two changes conflicting when one lands while the other is
	// being made or waits.
	Conflict float64 `json:"conflict"`
	Overlap  float64 `json:"overlap"`
	// Batch is merge.batch, MaxParallel dispatch.max_parallel (0: all polecats).
	Batch       int `json:"batch"`
	MaxParallel int `json:"max_parallel"`
	// Patrol is the witness's, Step what one durable step of a role takes.
	Patrol time.Duration `json:"patrol_ns"`
	Step   time.Duration `json:"step_ns"`
	// Person is how long a person takes, in the median, to reopen a bead that waits
	// for one; with 0 nobody does.
	Person time.Duration `json:"person_ns"`
	Faults Faults        `json:"faults"`
}

// Defaults are a rig of coding agents: ten minutes a bead, half a minute a test.
func Defaults() Options {
	return Options{Polecats: 10, Beads: 1000, Seed: 1, Work: 10 * time.Minute, Test: 30 * time.Second, Spread: 0.6,
		Progress: 30 * time.Second, Needs: 0.2, Chain: 50, Fail: 0.03, Red: 0.02, Conflict: 0.02, Batch: 1,
		Patrol: 10 * time.Second, Step: 2 * time.Millisecond}
}

// minimal decides nothing: every threshold and limit has its default.
const minimal = "agents: {topology: mayor-witness-polecat, agents: [{name: mayor, role: mayor}, {name: witness, role: witness}, {name: polecat, role: polecat}]}\n"

// definition is that of a rig that decides nothing but what the options say.
func (o *Options) definition() *definition.Definition {
	d, _ := definition.Parse("simulate", []byte(minimal))
	d.Dispatch.MaxParallel, d.Merge.Batch, d.Rig.Patrol = o.MaxParallel, o.Batch, o.Patrol
	if o.MaxParallel == 0 {
		d.Dispatch.MaxParallel = o.Polecats
	}
	return d
}

// Limits of what can be simulated.
const (
	maxPolecats = 100_000
	maxBeads    = 10_000_000
)

// Check returns everything that is wrong with the options.
func (o *Options) Check() error {
	var all []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	need(o.Polecats >= 1 && o.Polecats <= maxPolecats, "polecats: %d is not in 1..%d", o.Polecats, maxPolecats)
	need(o.Beads >= 0 && o.Beads <= maxBeads, "beads: %d is not in 0..%d", o.Beads, maxBeads)
	need(o.Batch >= 1, "batch: %d is below 1", o.Batch)
	need(o.Chain >= 1, "chain: %d is below 1", o.Chain)
	need(o.MaxParallel >= 0, "max-parallel: %d is negative", o.MaxParallel)
	need(o.Spread >= 0 && o.Spread <= 3, "spread: %g is not in 0..3", o.Spread)
	need(o.PerHour >= 0, "per-hour: %g is negative", o.PerHour)
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{{"for", o.For, 0}, {"work", o.Work, time.Millisecond}, {"test", o.Test, time.Millisecond}, {"progress", o.Progress, time.Second},
		{"patrol", o.Patrol, 100 * time.Millisecond}, {"step", o.Step, 0}, {"person", o.Person, 0}} {
		need(d.value >= d.least && d.value <= 100*365*day, "%s: %s is not in %s..100y", d.name, d.value, d.least)
	}
	for name, p := range map[string]float64{"needs": o.Needs, "fail": o.Fail, "red": o.Red, "flaky": o.Flaky, "conflict": o.Conflict, "overlap": o.Overlap} {
		need(p >= 0 && p < 1, "%s: %g is not a probability below 1", name, p)
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

const day = 24 * time.Hour

// Faults say what goes wrong. Probabilities are per attempt, nudge or wake-up,
// durations the mean time between two of a kind; 0 is never.
type Faults struct {
	// Crash: a worker is ended from outside. Hang: a worker stops to make progress
	// and never ends by itself.
	Crash float64 `json:"crash,omitempty"`
	Hang  float64 `json:"hang,omitempty"`
	// Kill: the process of one agent, any role, is killed and started again.
	Kill time.Duration `json:"kill_ns,omitempty"`
	// Power: all processes at once.
	Power time.Duration `json:"power_ns,omitempty"`
	// Nudge: a nudge is lost. Notify: a file notification is lost, and the agent
	// sees the change with its next tick. Late: one comes late.
	Nudge  float64 `json:"nudge,omitempty"`
	Notify float64 `json:"notify,omitempty"`
	Late   float64 `json:"late,omitempty"`
	// Jump: the clock is set, forward or back. Sleep: the machine sleeps for hours.
	Jump  time.Duration `json:"jump_ns,omitempty"`
	Sleep time.Duration `json:"sleep_ns,omitempty"`
	// Full: the disk is full for a while. Outage: the refinery has no process for a
	// while. Tests: no test can be run for a while.
	Full   time.Duration `json:"full_ns,omitempty"`
	Outage time.Duration `json:"outage_ns,omitempty"`
	Tests  time.Duration `json:"tests_ns,omitempty"`
	// Service: the service that workers need is down for a while, and ends them.
	Service time.Duration `json:"service_ns,omitempty"`
	// Pushes: somebody else advances the target.
	Pushes time.Duration `json:"pushes_ns,omitempty"`
}

// knob is one kind of fault by name: a probability, or a mean time between two.
type knob struct {
	name        string
	probability *float64
	every       *time.Duration
	usual       string
	what        string
}

func (f *Faults) knobs() []knob {
	p := func(name string, to *float64, usual, what string) knob { return knob{name, to, nil, usual, what} }
	d := func(name string, to *time.Duration, usual, what string) knob {
		return knob{name, nil, to, usual, what}
	}
	return []knob{
		p("crash", &f.Crash, "0.01", "a worker is ended from outside; per attempt"),
		p("hang", &f.Hang, "0.01", "a worker stalls and never ends; per attempt"),
		d("kill", &f.Kill, "12h", "an agent's process is killed, and started again; between two"),
		d("power", &f.Power, "7d", "all processes at once"),
		p("nudge", &f.Nudge, "0.3", "a nudge is lost"),
		p("notify", &f.Notify, "0.1", "a file notification is lost"),
		p("late", &f.Late, "0.1", "a file notification is late"),
		d("jump", &f.Jump, "10d", "the clock is set by up to two hours, forward or back"),
		d("sleep", &f.Sleep, "5d", "the machine sleeps for up to half a day"),
		d("full", &f.Full, "20d", "the disk is full for up to an hour"),
		d("outage", &f.Outage, "15d", "the refinery has no process for up to four hours"),
		d("tests", &f.Tests, "15d", "no test can be run for up to two hours"),
		d("service", &f.Service, "10d", "the workers' service is down for up to four hours"),
		d("pushes", &f.Pushes, "6h", "somebody else advances the target"),
	}
}

// FaultKinds describes every kind of fault in one line each: name, usual value
// and what it is.
func FaultKinds() []string {
	var f Faults
	var lines []string
	for _, k := range f.knobs() {
		lines = append(lines, fmt.Sprintf("%-7s %-5s %s", k.name, k.usual, k.what))
	}
	return lines
}

// ParseFaults reads "none", "all", or kinds separated by commas, each alone or
// with a value: "hang,kill=2d,nudge=1". "all" may stand among them; the later
// word wins.
func ParseFaults(s string) (Faults, error) {
	var f Faults
	knobs := f.knobs()
	for word := range strings.SplitSeq(s, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(word), "=")
		switch {
		case name == "" || name == "none":
			continue
		case name == "all" && !given:
			for i := range knobs {
				if err := knobs[i].set(knobs[i].usual); err != nil {
					return f, err
				}
			}
			continue
		}
		i := slices.IndexFunc(knobs, func(k knob) bool { return k.name == name })
		if i < 0 {
			var names []string
			for _, k := range knobs {
				names = append(names, k.name)
			}
			return f, fmt.Errorf("no fault is called %q (all, none, %s)", name, strings.Join(names, ", "))
		}
		if !given {
			value = knobs[i].usual
		}
		if err := knobs[i].set(value); err != nil {
			return f, fmt.Errorf("fault %s: %w", name, err)
		}
	}
	return f, nil
}

func (k *knob) set(value string) error {
	if k.every != nil {
		d, err := ParseDuration(value)
		if err == nil && d != 0 && d < time.Minute {
			err = fmt.Errorf("%s is below a minute", value)
		}
		*k.every = d
		return err
	}
	p, err := strconv.ParseFloat(value, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return fmt.Errorf("%q is not a probability", value)
	}
	*k.probability = p
	return nil
}

// ParseDuration is time.ParseDuration with days ("d") and years of 365 of them
// ("y"), alone or in front: "90m", "7d", "1y", "1d12h".
func ParseDuration(s string) (time.Duration, error) {
	total, rest := time.Duration(0), s
	for _, unit := range []struct {
		letter string
		length time.Duration
	}{{"y", 365 * day}, {"d", day}} {
		head, tail, found := strings.Cut(rest, unit.letter)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(head, 64)
		if err != nil || !(n >= 0 && n <= 100_000) {
			return 0, fmt.Errorf("%q is not a duration", s)
		}
		total, rest = total+time.Duration(n*float64(unit.length)), tail
	}
	if rest == "" && s != "" {
		return total, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration", s)
	}
	return total + d, nil
}
