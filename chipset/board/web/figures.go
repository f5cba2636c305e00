package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gastown-chipset/chipset/chipset/view"
	"github.com/gastown-chipset/chipset/chipset/view/screen"
	"github.com/gastown-chipset/chipset/state"
	"github.com/gastown-chipset/chipset/state/bead"
	"github.com/gastown-chipset/chipset/state/spend"
	"github.com/gastown-chipset/chipset/state/wording"
)

// figuresData is the data of the page of figures.
type figuresData struct {
	// Landed is the number of beads that landed in each hour of the last day, oldest first.
	Landed plot
	// Way is how long beads took from creation to landing, Open the age of those that have
	// not landed.
	Way, Open plot
	// Median and Slow are the 50th and the 95th percentile of Way.
	Median, Slow string
	// Money and Tokens are what was used on each of the last days, Spend the totals.
	Money, Tokens plot
	Spend         *view.Spend
	Spenders      []*view.AgentStatus
}

func (p *pages) figures(w http.ResponseWriter, r *http.Request) {
	v := p.look(r)
	now := p.s.Rig.Clock.Now()
	d := figuresData{Landed: landedByHour(v.Work, now)}
	var way, open []time.Duration
	for _, item := range v.Work {
		b := item.Bead
		switch {
		case b.Status == bead.Merged && b.ClosedAt != nil && now.Sub(b.ClosedAt.Time) < 7*24*time.Hour:
			way = append(way, b.ClosedAt.Sub(b.CreatedAt.Time))
		case !b.Status.Finished():
			open = append(open, now.Sub(b.CreatedAt.Time))
		}
	}
	d.Way, d.Open = spread("from made to landed, last 7 days", way), spread("age of what has not landed", open)
	if slices.Sort(way); len(way) > 0 {
		d.Median, d.Slow = screen.Age(way[len(way)/2]), screen.Age(way[len(way)*95/100])
	}
	d.Spend = &v.Spend
	d.Money = byDay("dollars on each of the last 14 days", v.Spend.Days, now, func(l *view.SpendLine) (int, string) { return int(l.CostUSD), l.CostUSD.String() })
	d.Tokens = byDay("tokens on each of the last 14 days", v.Spend.Days, now, func(l *view.SpendLine) (int, string) {
		return int(l.Tokens()), wording.Thousands(l.Tokens())
	})
	for i := range v.Agents {
		if pr := v.Agents[i].Progress; pr != nil && pr.Known() {
			d.Spenders = append(d.Spenders, &v.Agents[i])
		}
	}
	p.show(w, "figures", page{Title: "Figures", Here: "figures", View: v, Data: &d})
}

// landedByHour counts the beads that landed in each of the last 24 hours.
func landedByHour(work view.Work, now state.Time) plot {
	const hours = 24
	pl := plot{Title: "landed in each of the last 24 hours", Bars: make([]bar, hours)}
	for i := range pl.Bars {
		from := now.Add(time.Duration(i-hours+1) * time.Hour).Local()
		pl.Bars[i].Label = from.Format("15")
	}
	for _, item := range work {
		b := item.Bead
		if b.Status != bead.Merged || b.ClosedAt == nil {
			continue
		}
		if ago := now.Sub(b.ClosedAt.Time); ago >= 0 && ago < hours*time.Hour {
			pl.Bars[hours-1-int(ago/time.Hour)].Value++
		}
	}
	return pl
}

// byDay plots what was used on each of the last 14 days. of returns a value and its text.
func byDay(title string, days []view.SpendLine, now state.Time, of func(*view.SpendLine) (int, string)) plot {
	const shown = 14
	pl := plot{Title: title, Bars: make([]bar, shown)}
	for i := range pl.Bars {
		day := now.Local().AddDate(0, 0, i-shown+1)
		pl.Bars[i].Label = day.Format("2 Jan")
		at, found := slices.BinarySearchFunc(days, spend.Day(day), func(l view.SpendLine, day string) int { return strings.Compare(l.Key, day) })
		if found {
			pl.Bars[i].Value, pl.Bars[i].Text = of(&days[at])
		}
	}
	return pl
}

// spread counts durations by length.
func spread(title string, all []time.Duration) plot {
	pl := plot{Title: title}
	limits := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour}
	for _, limit := range limits {
		pl.Bars = append(pl.Bars, bar{Label: "<" + strings.TrimSuffix(screen.Age(limit), " 0m")})
	}
	pl.Bars = append(pl.Bars, bar{Label: "more"})
	for _, d := range all {
		at, _ := slices.BinarySearchFunc(limits, d, func(limit, d time.Duration) int {
			if limit <= d {
				return -1
			}
			return 1
		})
		pl.Bars[at].Value++
	}
	return pl
}

// plot is a bar chart.
type plot struct {
	Title string
	Bars  []bar
}

type bar struct {
	Label string
	Value int
	// Text is the value as text, "" for the bare number.
	Text string
}

func (b *bar) shown() string { return cmp.Or(b.Text, strconv.Itoa(b.Value)) }

// All returns the sum of the bars.
func (p plot) All() int {
	n := 0
	for _, b := range p.Bars {
		n += b.Value
	}
	return n
}

// SVG draws the plot. It contains only numbers and labels of this package.
func (p plot) SVG() template.HTML {
	const width, height, top, foot = 720, 200, 18, 22
	most := 1
	for _, b := range p.Bars {
		most = max(most, b.Value)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height+top+foot, template.HTMLEscapeString(p.Title+": "+p.words()))
	step := float64(width) / float64(len(p.Bars))
	for i, b := range p.Bars {
		h := float64(height) * float64(b.Value) / float64(most)
		x, y := float64(i)*step, top+float64(height)-h
		fmt.Fprintf(&out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"><title>%s: %s</title></rect>`, x+2, y, step-4, max(h, 1), template.HTMLEscapeString(b.Label), b.shown())
		if b.Value > 0 {
			fmt.Fprintf(&out, `<text class="value" x="%.1f" y="%.1f">%s</text>`, x+step/2, y-4, b.shown())
		}
		fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s</text>`, x+step/2, height+top+foot-6, template.HTMLEscapeString(b.Label))
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String()) //nolint:gosec // numbers and escaped labels
}

// words describes the bars that are not empty.
func (p plot) words() string {
	var parts []string
	for _, b := range p.Bars {
		if b.Value > 0 {
			parts = append(parts, b.Label+" "+b.shown())
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// fraction describes a part of a whole.
func fraction(part, all int) string { return fmt.Sprintf("%d of %d", part, all) }
