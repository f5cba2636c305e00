package simulate

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// Plot is a chart of lines.
type Plot struct {
	Title, X, Y string
	// LogX draws the x axis by its logarithm.
	LogX  bool
	Lines []Line
}

// Line is one of them.
type Line struct {
	Name   string
	Points []Point
}

// Point is one of a line's.
type Point struct{ X, Y float64 }

// Measures of a drawing.
const (
	plotWidth, plotHeight                 = 720, 360
	plotLeft, plotRight, plotTop, plotLow = 70, 150, 40, 50
)

// WriteSVG draws the plot. The same plot gives the same bytes.
func (p *Plot) WriteSVG(out io.Writer) error {
	d := p.drawing()
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, plotWidth, plotHeight)
	line(`<rect width="100%%" height="100%%" fill="white"/>`)
	line(`<text x="%d" y="22" font-size="15">%s</text>`, plotLeft, escape(p.Title))
	for _, y := range ticks(d.highY) {
		at := d.y(y)
		line(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`, plotLeft, at, plotWidth-plotRight, at)
		line(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`, plotLeft-6, at+4, number(y))
	}
	for _, x := range d.ticksX() {
		line(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, d.x(x), plotHeight-plotLow+18, number(x))
	}
	line(`<path d="M%d %d V%d H%d" fill="none" stroke="black"/>`, plotLeft, plotTop, plotHeight-plotLow, plotWidth-plotRight)
	line(`<text x="%d" y="%d" text-anchor="middle">%s</text>`, (plotLeft+plotWidth-plotRight)/2, plotHeight-12, escape(p.X))
	line(`<text x="%d" y="%d">%s</text>`, plotLeft, plotTop-6, escape(p.Y))
	colours := [...]string{"#1b6ca8", "#c8553d", "#3a7d44", "#7b5ea7", "#b8860b", "#444444"}
	for i, l := range p.Lines {
		colour := colours[i%len(colours)]
		var path []string
		for _, at := range l.Points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", d.x(at.X), d.y(at.Y)))
		}
		line(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(path, " "), colour)
		line(`<text x="%d" y="%d" fill="%s">%s</text>`, plotWidth-plotRight+10, plotTop+12+18*i, colour, escape(l.Name))
	}
	line(`</svg>`)
	_, err := io.WriteString(out, text.String())
	return err
}

func escape(s string) string {
	var text strings.Builder
	_ = xml.EscapeText(&text, []byte(s)) // a Builder takes everything
	return text.String()
}

// drawing maps values to places.
type drawing struct {
	lowX, highX, highY float64
	log                bool
}

func (p *Plot) drawing() drawing {
	d := drawing{lowX: math.Inf(1), highX: math.Inf(-1), log: p.LogX}
	for _, l := range p.Lines {
		for _, at := range l.Points {
			d.lowX, d.highX, d.highY = min(d.lowX, at.X), max(d.highX, at.X), max(d.highY, at.Y)
		}
	}
	if !p.LogX {
		d.lowX = 0
	}
	if !(d.highX > d.lowX) {
		d.lowX, d.highX = d.lowX-1, d.lowX+1
		if math.IsInf(d.lowX, 0) {
			d.lowX, d.highX = 1, 2
		}
	}
	if d.highY <= 0 {
		d.highY = 1
	}
	return d
}

func (d *drawing) x(v float64) float64 {
	share := (v - d.lowX) / (d.highX - d.lowX)
	if d.log {
		share = math.Log(v/d.lowX) / math.Log(d.highX/d.lowX)
	}
	return plotLeft + share*(plotWidth-plotLeft-plotRight)
}

func (d *drawing) y(v float64) float64 {
	return plotHeight - plotLow - v/d.highY*(plotHeight-plotTop-plotLow)
}

func (d *drawing) ticksX() []float64 {
	if !d.log {
		return ticks(d.highX)
	}
	var all []float64
	for v := d.lowX; v <= d.highX*1.001; v *= 2 {
		all = append(all, v)
	}
	for len(all) > 8 {
		thin := all[:0]
		for i := 0; i < len(all); i += 2 {
			thin = append(thin, all[i])
		}
		all = thin
	}
	return all
}

// ticks are four to ten round numbers from 0 to most.
func ticks(most float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for most/step < 4 {
		step /= 2
	}
	var all []float64
	for v := 0.0; v <= most*1.001; v += step {
		all = append(all, v)
	}
	return all
}

func number(v float64) string {
	switch {
	case v >= 10_000 && v < 1e6:
		return fmt.Sprintf("%gk", math.Round(v/100)/10)
	case v >= 1e6:
		return fmt.Sprintf("%gM", math.Round(v/1e5)/10)
	}
	return fmt.Sprintf("%g", math.Round(v*100)/100)
}

// Plot draws what lay around over the time of a run.
func (r *Report) Plot() *Plot {
	p := &Plot{Title: fmt.Sprintf("%d polecats, %d beads, merge.batch %d", r.Options.Polecats, r.Options.Beads, r.Options.Batch),
		X: "hours", Y: "beads"}
	for _, l := range []struct {
		name string
		of   func(s *Sample) int
	}{{"ready", func(s *Sample) int { return s.Ready }}, {"out", func(s *Sample) int { return s.Out }}, {"merge queue", func(s *Sample) int { return s.Queue }},
		{"landed", func(s *Sample) int { return s.Landed }}, {"wait for a person", func(s *Sample) int { return s.Blocked }}} {
		line := Line{Name: l.name}
		for i := range r.Series {
			line.Points = append(line.Points, Point{r.Series[i].Hour, float64(l.of(&r.Series[i]))})
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}
