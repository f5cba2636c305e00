package simulate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gastown-chipset/chipset/state/bead"
)

// waits collects times.
type waits struct{ all []time.Duration }

func (w *waits) add(d time.Duration) { w.all = append(w.all, max(0, d)) }

// Distribution is that of times, in seconds.
type Distribution struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

func (w *waits) distribution() Distribution {
	n := len(w.all)
	if n == 0 {
		return Distribution{}
	}
	slices.Sort(w.all)
	at := func(share float64) float64 { return w.all[min(n-1, int(share*float64(n)))].Seconds() }
	var sum time.Duration
	for _, d := range w.all {
		sum += d / time.Duration(n)
	}
	return Distribution{N: n, Mean: sum.Seconds(), P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: w.all[n-1].Seconds()}
}

// Report is what a run came to. Times are virtual.
type Report struct {
	Options Options `json:"options"`
	// Ended is true when nothing was left to do, Hours how long that took; Violation
	// is what ended the run otherwise.
	Ended     bool    `json:"ended"`
	Violation string  `json:"violation,omitempty"`
	Hours     float64 `json:"hours"`

	Arrived int `json:"arrived"`
	Landed  int `json:"landed"`
	Blocked int `json:"blocked"`
	Open    int `json:"open"`
	// PerHour is how many landed in an hour, Attempts how many workers were started.
	PerHour  float64 `json:"landed_per_hour"`
	Attempts int     `json:"attempts"`
	Reopened int     `json:"reopened_by_person"`

	// Waits: from ready to slung, from slung to the worker's start, from submitted to
	// landed.
	Dispatch Distribution `json:"ready_to_dispatched"`
	Start    Distribution `json:"dispatched_to_started"`
	Landing  Distribution `json:"done_to_landed"`

	Stalls    Stalls         `json:"stalls"`
	Incidents map[string]int `json:"incidents"`
	Alerts    map[string]int `json:"alerts"`
	Mails     map[string]int `json:"mails"`
	Nudges    map[string]int `json:"nudges"`
	Lost      int            `json:"nudges_lost"`
	Faults    map[string]int `json:"faults"`

	// UsefulHours of workers landed, WastedHours were thrown away, by why.
	UsefulHours float64            `json:"useful_hours"`
	WastedHours map[string]float64 `json:"wasted_hours"`
	Tests       Tests              `json:"tests"`

	// Shares of the time: workers that ran, hooks that were taken, the refinery with
	// a test or its own work, the mayor with its work, the witness with its own.
	Workers  float64 `json:"workers_busy"`
	Hooks    float64 `json:"hooks_taken"`
	Refinery float64 `json:"refinery_busy"`
	Mayor    float64 `json:"mayor_busy"`
	Witness  float64 `json:"witness_busy"`

	Decisions map[string]int `json:"decisions"`
	Events    int            `json:"events"`
	Series    []Sample       `json:"series"`
}

func (w *world) report(ended bool) *Report {
	t, now := &w.tally, w.now
	for k := range t.running {
		t.workedFor += now - k.started
	}
	for _, from := range t.occupiedFrom {
		t.occupiedFor += now - from
	}
	hours := now.Hours()
	share := func(d time.Duration, of int) float64 {
		if now == 0 {
			return 0
		}
		return d.Hours() / hours / float64(of)
	}
	t.Stalls.FoundAfter = t.found.distribution()
	r := &Report{Options: w.o, Ended: ended, Hours: hours, Arrived: w.arrived, Landed: w.backlog.Count(bead.Merged), Blocked: w.backlog.Count(bead.Blocked),
		Attempts: t.Attempts, Reopened: t.Reopened, Dispatch: t.Dispatch.distribution(), Start: t.Start.distribution(), Landing: t.Landing.distribution(),
		Stalls: t.Stalls, Incidents: t.Incidents, Alerts: t.Alerts, Mails: t.Mails, Nudges: t.Nudges, Lost: t.NudgesLost, Faults: t.Faults,
		UsefulHours: t.useful.Hours(), WastedHours: map[string]float64{}, Tests: t.Tests,
		Workers: share(t.workedFor, w.o.Polecats), Hooks: share(t.occupiedFor, w.o.Polecats),
		Refinery: share(w.refinery.worked, 1), Mayor: share(w.mayor.worked, 1), Witness: share(w.witness.worked, 1),
		Decisions: map[string]int{}, Events: w.count, Series: t.series}
	r.Open = r.Arrived - r.Landed - r.Blocked - w.backlog.Count(bead.Cancelled) - w.backlog.Count(bead.Closed)
	if hours > 0 {
		r.Refinery += t.Tests.Took / hours
		r.PerHour = float64(r.Landed) / hours
	}
	for why, d := range t.Wasted {
		if d > 0 {
			r.WastedHours[why] = d.Hours()
		}
	}
	for _, p := range w.procs {
		name, _, _ := strings.Cut(string(p.id), "-")
		r.Decisions[name] += p.ticks
	}
	if w.broken != nil {
		r.Violation = w.broken.Error()
	}
	return r
}

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush tells
	how := "until nothing was left to do"
	switch {
	case r.Violation != "":
		how = "until a rule was violated"
	case !r.Ended:
		how = "until time was up"
	}
	line("%d polecats, %d beads, seed %d: %s, %s", r.Options.Polecats, r.Options.Beads, r.Options.Seed, span(r.Hours*3600), how)
	line("")
	line("landed\t%d of %d\t%.1f an hour, %.2f attempts each", r.Landed, r.Arrived, r.PerHour, perEach(r.Attempts, r.Landed))
	line("wait for a person\t%d\t%d were reopened", r.Blocked, r.Reopened)
	line("not finished\t%d", r.Open)
	line("")
	line("waits\tp50\tp90\tp99\tmax")
	for _, d := range []struct {
		name string
		Distribution
	}{{"ready to dispatched", r.Dispatch}, {"dispatched to started", r.Start}, {"done to landed", r.Landing}, {"hung to noticed", r.Stalls.FoundAfter}} {
		line("%s\t%s\t%s\t%s\t%s", d.name, span(d.P50), span(d.P90), span(d.P99), span(d.Max))
	}
	line("")
	line("busy\tworkers %.1f%%\trefinery %.1f%%\tmayor %.1f%%\twitness %.1f%%", 100*r.Workers, 100*r.Refinery, 100*r.Mayor, 100*r.Witness)
	line("hung workers\t%d\t%d noticed, %d restarts", r.Stalls.Injected, r.Stalls.Found, r.Stalls.Restarts)
	line("false alarms\t%d\t%d escalated, %d restarts", r.Stalls.FalseAlarms, r.Stalls.FalseAlerts, r.Stalls.FalseRestarts)
	line("incidents\t%s", counts(r.Incidents))
	line("alerts\t%s", counts(r.Alerts))
	line("mail\t%s", counts(r.Mails))
	line("nudges\t%s; %d lost", counts(r.Nudges), r.Lost)
	line("faults\t%s", counts(r.Faults))
	line("worker hours\t%.1f landed\twasted: %s", r.UsefulHours, hoursOf(r.WastedHours))
	line("tests\t%d green, %d red, %d of the bare tip, %d lost\t%.1f h, of which %.1f h landed nothing", r.Tests.Green, r.Tests.Red, r.Tests.Tip, r.Tests.Lost,
		r.Tests.Took, r.Tests.Wasted)
	line("decisions\t%s", counts(r.Decisions))
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, "\n", r.chart())
	return err
}

func perEach(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func counts(m map[string]int) string {
	all := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) })
	for i, name := range all {
		all[i] = fmt.Sprintf("%d %s", m[name], name)
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

func hoursOf(m map[string]float64) string {
	all := slices.Sorted(maps.Keys(m))
	for i, name := range all {
		all[i] = fmt.Sprintf("%s %.1f", name, m[name])
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// span says seconds as one says them.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 2*day:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

// chart is the merge queue and the ready beads over time, ten rows of text.
func (r *Report) chart() string {
	most := 1
	for _, s := range r.Series {
		most = max(most, s.Queue, s.Ready)
	}
	const height, width = 8, 60
	var text strings.Builder
	fmt.Fprintf(&text, "over time: q the merge queue, r ready beads, up to %d\n", most)
	rows := make([][]byte, height)
	for y := range rows {
		rows[y] = []byte(strings.Repeat(" ", width))
	}
	for x := range width {
		if len(r.Series) == 0 {
			break
		}
		s := r.Series[x*len(r.Series)/width]
		level := func(n int) int { return (height - 1) * (most - n) / most }
		if s.Ready > 0 {
			rows[level(s.Ready)][x] = 'r'
		}
		if s.Queue > 0 {
			rows[level(s.Queue)][x] = 'q'
		}
	}
	for _, row := range rows {
		text.WriteString("|" + strings.TrimRight(string(row), " ") + "\n")
	}
	fmt.Fprintf(&text, "+%s %s\n", strings.Repeat("-", width), span(r.Hours*3600))
	return text.String()
}
