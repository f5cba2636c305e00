package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/agentcli"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/spend"
	"github.com/gastown-chipset/chipset/state/wording"
)

// SpendLine is what was used under one key: a day, a model, a bead.
type SpendLine struct {
	Key      string `json:"key"`
	Attempts int    `json:"attempts"`
	// Time is how long workers ran.
	Time time.Duration `json:"time_ns"`
	spend.Usage
}

// add adds a row, or takes one out again with a sign of -1.
func (l *SpendLine) add(r spend.Row, sign int) {
	l.Attempts += sign * r.Attempts
	l.Time += time.Duration(sign) * r.Time
	u, s := r.Usage, int64(sign)
	l.Add(spend.Usage{In: s * u.In, Cached: s * u.Cached, Written: s * u.Written, Out: s * u.Out, CostUSD: spend.USD(s) * u.CostUSD})
}

// String is the tokens and the money in a few characters, "" where there are none.
func (l *SpendLine) String() string {
	var parts []string
	if n := l.Tokens(); n > 0 {
		parts = append(parts, wording.Thousands(n))
	}
	if l.CostUSD > 0 {
		parts = append(parts, l.CostUSD.String())
	}
	return strings.Join(parts, " ")
}

// SpendBy is what lines of spend are grouped by.
type SpendBy string

// What lines of spend may be grouped by.
const (
	ByBead   SpendBy = "bead"
	ByConvoy SpendBy = "convoy"
	ByAgent  SpendBy = "agent"
	ByModel  SpendBy = "model"
	ByDay    SpendBy = "day"
)

// SpendKeys lists every SpendBy.
func SpendKeys() []SpendBy { return []SpendBy{ByBead, ByConvoy, ByAgent, ByModel, ByDay} }

func (by SpendBy) key(r *spend.Row) string {
	switch by {
	case ByBead:
		return string(r.Bead)
	case ByConvoy:
		return string(r.Convoy)
	case ByAgent:
		return string(r.Agent)
	case ByModel:
		return cmp.Or(r.Model, r.Client)
	case ByDay:
	}
	return r.Day
}

// SpendReport is what was used since a day, line by line and in total.
type SpendReport struct {
	By SpendBy `json:"by"`
	// Since is the first day, "" for all days.
	Since string      `json:"since,omitempty"`
	Lines []SpendLine `json:"lines"`
	// Total is the sum of the lines.
	Total SpendLine `json:"total"`
}

// ReportSpend adds up the rows from a day on. Lines by day are in order of time, others by cost, the most
// expensive first. Rows without a key (a bead without a convoy) make one line.
func ReportSpend(rows []spend.Row, by SpendBy, since string) *SpendReport {
	sums := map[string]*SpendLine{}
	for i := range rows {
		if rows[i].Day >= since {
			addRow(sums, by.key(&rows[i]), rows[i], 1)
		}
	}
	report := &SpendReport{By: by, Since: since, Lines: linesOf(sums, by), Total: SpendLine{Key: "total"}}
	for _, l := range report.Lines {
		report.Total.add(spend.Row{Attempts: l.Attempts, Time: l.Time, Usage: l.Usage}, 1)
	}
	return report
}

func addRow(sums map[string]*SpendLine, key string, r spend.Row, sign int) {
	line := sums[key]
	if line == nil {
		line = &SpendLine{Key: key}
		sums[key] = line
	}
	if line.add(r, sign); *line == (SpendLine{Key: key}) {
		delete(sums, key)
	}
}

func linesOf(sums map[string]*SpendLine, by SpendBy) []SpendLine {
	lines := make([]SpendLine, 0, len(sums))
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		lines = append(lines, *sums[key])
	}
	if by != ByDay {
		slices.SortStableFunc(lines, func(a, b SpendLine) int {
			return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(b.Tokens(), a.Tokens()), cmp.Compare(b.Time, a.Time))
		})
	}
	return lines
}

// Text is the report for a person.
func (r *SpendReport) Text(how screen.Options) string {
	out := screen.New(how)
	since := ""
	if r.Since != "" {
		since = "since " + r.Since
	}
	out.Heading("Spent by "+string(r.By), since)
	rows := [][]screen.Cell{}
	for i := range r.Lines {
		rows = append(rows, spendCells(cmp.Or(r.Lines[i].Key, "none"), &r.Lines[i]))
	}
	if len(rows) == 0 {
		rows = append(rows, []screen.Cell{screen.Dim("nothing")})
	} else {
		rows = append(rows, spendCells("total", &r.Total))
	}
	out.Table("  ", rows)
	return out.String()
}

func spendCells(name string, l *SpendLine) []screen.Cell {
	return []screen.Cell{screen.Plain(name), screen.Plain(wording.Count(l.Attempts, "attempt")), screen.Plain(screen.Age(l.Time)),
		screen.Plain(wording.Thousands(l.In) + " read"), screen.Plain(wording.Thousands(l.Out) + " written"), screen.Plain(l.CostUSD.String())}
}

// Spend is what a rig has used.
type Spend struct {
	// Figures are the sums of what the clients of running sessions report.
	agentcli.Figures
	// Sessions counts the sessions whose client reports something.
	Sessions int
	// Days, Models and Agents are what was used in all, by each.
	Days, Models, Agents []SpendLine
}

// spendIndex adds up the records, as they change.
type spendIndex struct {
	rows map[string][]spend.Row
	sums map[SpendBy]map[string]*SpendLine
}

func newSpendIndex() spendIndex {
	return spendIndex{rows: map[string][]spend.Row{}, sums: map[SpendBy]map[string]*SpendLine{ByDay: {}, ByModel: {}, ByAgent: {}}}
}

// put replaces a record by its present version, nil if it is gone.
func (x *spendIndex) put(name string, now *spend.Record) {
	x.count(x.rows[name], -1)
	delete(x.rows, name)
	if now != nil {
		x.rows[name] = now.Rows()
		x.count(x.rows[name], 1)
	}
}

func (x *spendIndex) count(rows []spend.Row, sign int) {
	for _, r := range rows {
		for by, sums := range x.sums {
			addRow(sums, by.key(&r), r, sign)
		}
	}
}

// on returns what was used on the local day of an instant.
func (x *spendIndex) on(now state.Time) SpendLine {
	day := spend.Day(now.Time)
	if line := x.sums[ByDay][day]; line != nil {
		return *line
	}
	return SpendLine{Key: day}
}

// spend returns what the rig has used.
func (x *spendIndex) spend(agents []AgentStatus) Spend {
	s := Spend{Days: linesOf(x.sums[ByDay], ByDay), Models: linesOf(x.sums[ByModel], ByModel), Agents: linesOf(x.sums[ByAgent], ByAgent)}
	for i := range agents {
		p := agents[i].Progress
		if p == nil || !p.Known() {
			continue
		}
		s.Sessions++
		s.Turns += p.Turns
		s.Tools += p.Tools
		s.TokensIn += p.TokensIn
		s.TokensOut += p.TokensOut
		s.CostUSD += p.CostUSD
	}
	return s
}

// SpentWords is what was used today, for a line on a screen, or "".
func (s *Status) SpentWords() string {
	if text := s.Spent.String(); text != "" {
		return text + " today"
	}
	return ""
}
