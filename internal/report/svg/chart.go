package svg

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Chart is a picture with two axes.
type Chart struct {
	// ID distinguishes the picture from others on the same page.
	ID string
	// Title of the picture, which a screen reader says first.
	Title string
	// Description says in words what the picture shows.
	Description string
	X, Y        Axis
	// Marks in the order in which they are drawn.
	Marks []Mark
}

// Axis of a chart.
type Axis struct {
	// Label says what the values are.
	Label string
	Unit  Unit
	// Log makes the axis logarithmic: equal ratios are equally long.
	Log bool
	// FromZero makes the axis begin at zero.
	FromZero bool
	// Ticks are values with their words. They replace the computed ticks.
	Ticks []Tick
}

// Tick is a marked value.
type Tick struct {
	Value float64
	Words string
}

// Point of a line or a dot.
type Point struct{ X, Y float64 }

// Mark is one layer of a chart.
type Mark interface {
	// extend widens the ranges of the axes so that they include the mark.
	extend(x, y *span)
	draw(c *canvas, x, y scale)
	keys() []key
}

// span is the range of an axis.
type span struct{ low, high float64 }

func emptySpan() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) add(value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	s.low, s.high = math.Min(s.low, value), math.Max(s.high, value)
}

const (
	plotHeight = 190.0
	rightSpace = 14.0
	// ticksAcross and ticksUp are how many ticks the axes have room for.
	ticksAcross, ticksUp = 5, 5
	leastPositive        = 1e-3
)

// scale maps the values of an axis to pixels.
type scale struct {
	span
	log      bool
	from, to float64 // pixels
}

func (s scale) at(value float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, value = math.Log(low), math.Log(high), math.Log(math.Max(value, s.low))
	}
	return s.from + (s.to-s.from)*(value-low)/(high-low)
}

// scaleOf widens a range, so that nothing lies on its border and it is never empty.
func (a Axis) scaleOf(s span, from, to float64) scale {
	if math.IsInf(s.low, 0) {
		s = span{0, 1}
	}
	if a.Log {
		s.low, s.high = math.Max(s.low, leastPositive), math.Max(s.high, leastPositive)
		if s.high/s.low < 1.5 {
			s.low, s.high = s.low/1.5, s.high*1.5
		}
		margin := math.Pow(s.high/s.low, 0.04)
		s.low, s.high = s.low/margin, s.high*margin
		return scale{s, true, from, to}
	}
	if a.FromZero {
		s.low, s.high = math.Min(s.low, 0), math.Max(s.high, 0)
	}
	switch margin := math.Abs(s.low) * 0.05; {
	case s.low == 0 && s.high == 0:
		s.high = a.Unit.step(0).size
	case s.low == s.high:
		s.low, s.high = s.low-margin, s.high+margin
	}
	margin := (s.high - s.low) * 0.04
	if !a.FromZero || s.low != 0 {
		s.low -= margin
	}
	s.high += margin
	return scale{s, false, from, to}
}

func (a Axis) ticks(s scale, most int) []tick {
	var found []tick
	for _, given := range a.Ticks {
		if given.Value >= s.low && given.Value <= s.high {
			found = append(found, tick{given.Value, given.Words})
		}
	}
	switch {
	case len(a.Ticks) > 0:
	case s.log:
		found = a.Unit.logTicks(s.low, s.high, most)
	default:
		found = a.Unit.ticks(s.low, s.high, most)
	}
	return found
}

// Draw returns the picture.
func (c Chart) Draw() string {
	x, y := emptySpan(), emptySpan()
	var keys []key
	for _, mark := range c.Marks {
		mark.extend(&x, &y)
		keys = append(keys, mark.keys()...)
	}
	var out canvas
	top := out.legend(distinctKeys(keys), 4) + 26
	bottom := top + plotHeight
	up := c.Y.scaleOf(y, bottom, top)
	ticks := c.Y.ticks(up, ticksUp)
	left := 12.0
	for _, t := range ticks {
		left = math.Max(left, width(t.words)+12)
	}
	left = math.Min(left, Width/3)
	across := c.X.scaleOf(x, left, Width-rightSpace)
	out.text(8, top-10, "m", fit(c.Y.Label, Width-16))
	for _, mark := range c.Marks { // bands lie below the grid
		if band, is := mark.(Band); is {
			band.draw(&out, across, up)
		}
	}
	for _, t := range ticks {
		out.line(left, up.at(t.value), Width-rightSpace, up.at(t.value), "g")
		out.text(left-6, up.at(t.value)+4, "e m", t.words)
	}
	out.bottomAxis(c.X, across, bottom)
	for _, mark := range c.Marks {
		if _, is := mark.(Band); !is {
			mark.draw(&out, across, up)
		}
	}
	return out.document(c.ID, c.Title, c.Description, bottom+44)
}

// bottomAxis draws the axis below the plot. Of labels that would overlap only the first is written.
func (c *canvas) bottomAxis(axis Axis, across scale, bottom float64) {
	c.line(across.from, bottom, across.to, bottom, "g")
	free := 0.0
	for _, t := range axis.ticks(across, ticksAcross) {
		x, half := across.at(t.value), width(t.words)/2
		x = math.Min(x, Width-2-half) // the last one stays inside the picture
		if x-half < free {
			continue
		}
		c.line(across.at(t.value), bottom, across.at(t.value), bottom+4, "g")
		c.text(x, bottom+17, "c m", t.words)
		free = x + half + 10
	}
	c.text((across.from+across.to)/2, bottom+35, "c m", fit(axis.Label, across.to-across.from+2*(rightSpace-4)))
}

// distinctKeys keeps each entry of a legend once, and drops those without words.
func distinctKeys(keys []key) []key {
	var kept []key
	for _, k := range keys {
		same := func(other key) bool { return other.words == k.words && other.series == k.series }
		if k.words != "" && !slices.ContainsFunc(kept, same) {
			kept = append(kept, k)
		}
	}
	return kept
}

// Line connects points.
type Line struct {
	Name   string
	Series int
	Points []Point
	// Marked shows the points too.
	Marked bool
	// Breaks are the indexes of the points that no line leads to.
	Breaks []int
}

func (l Line) extend(x, y *span) {
	for _, p := range l.Points {
		x.add(p.X)
		y.add(p.Y)
	}
}

func (l Line) keys() []key { return []key{{l.Name, l.Series, markLine}} }

func (l Line) draw(c *canvas, x, y scale) {
	var path strings.Builder
	var alone []Point // no line leads to them or from them
	for i, p := range l.Points {
		command := "L"
		if i == 0 || slices.Contains(l.Breaks, i) {
			command = "M"
			if i == len(l.Points)-1 || slices.Contains(l.Breaks, i+1) {
				alone = append(alone, p)
			}
		}
		fmt.Fprintf(&path, "%s%s %s", command, at(x.at(p.X)), at(y.at(p.Y)))
	}
	Dots{Series: l.Series, Points: alone, Small: true}.draw(c, x, y)
	if path.Len() > 0 {
		c.add(`<path class="l %s"%s d="%s"/>`, series(l.Series), dash(l.Series), path.String())
	}
	if l.Marked {
		Dots{Series: l.Series, Points: l.Points}.draw(c, x, y)
	}
}

// Dots are points of their own.
type Dots struct {
	Name   string
	Series int
	Points []Point
	// Small is for many dots.
	Small bool
	// Ringed makes dots stand out from the lines around them.
	Ringed bool
}

func (d Dots) extend(x, y *span) { Line{Points: d.Points}.extend(x, y) }

func (d Dots) keys() []key { return []key{{d.Name, d.Series, markDot}} }

// draw draws all dots as one element. Each dot is a line of zero length with round ends, which takes only a dozen bytes.
func (d Dots) draw(c *canvas, x, y scale) {
	var path strings.Builder
	for _, p := range d.Points {
		fmt.Fprintf(&path, "M%s %sh0", at(x.at(p.X)), at(y.at(p.Y)))
	}
	class := "d"
	if d.Small {
		class = "d2"
	}
	if path.Len() > 0 {
		if d.Ringed {
			c.add(`<path class="h" d="%s"/>`, path.String())
		}
		c.add(`<path class="%s %s" d="%s"/>`, class, series(d.Series), path.String())
	}
}

// Bars stand on zero, side by side with those of other series.
type Bars struct {
	Name   string
	Series int
	// Of is how many series stand side by side, Place which of them this is.
	Of, Place int
	// Points have the middle of each group of bars. Groups are one apart.
	Points []Point
}

func (b Bars) extend(x, y *span) {
	y.add(0)
	for _, p := range b.Points {
		x.add(p.X - 0.5)
		x.add(p.X + 0.5)
		y.add(p.Y)
	}
}

func (b Bars) keys() []key { return []key{{b.Name, b.Series, markBlock}} }

func (b Bars) draw(c *canvas, x, y scale) {
	each := 0.8 / float64(max(b.Of, 1))
	var path strings.Builder
	for _, p := range b.Points {
		from, to := x.at(p.X-0.4+each*float64(b.Place)), x.at(p.X-0.4+each*float64(b.Place+1))
		fmt.Fprintf(&path, "M%s %sV%sH%sV%sz", at(from), at(y.at(0)), at(y.at(p.Y)), at(math.Max(to-0.5, from+0.5)), at(y.at(0)))
	}
	c.add(`<path class="k %s" d="%s"/>`, fill(b.Series), path.String())
}

// Band marks a part of the horizontal axis.
type Band struct {
	Name     string
	From, To float64
}

func (b Band) extend(x, _ *span) {
	x.add(b.From)
	x.add(b.To)
}

func (b Band) keys() []key { return []key{{b.Name, 0, markBand}} }

func (b Band) draw(c *canvas, x, y scale) {
	c.rect(x.at(b.From), y.to, x.at(b.To)-x.at(b.From), y.from-y.to, "w")
}

// Rule is a horizontal line at a value.
type Rule struct {
	Name  string
	Value float64
}

func (r Rule) extend(_, y *span) { y.add(r.Value) }

func (r Rule) keys() []key { return []key{{r.Name, 0, markRule}} }

func (r Rule) draw(c *canvas, x, y scale) { c.line(x.from, y.at(r.Value), x.to, y.at(r.Value), "r") }

// Whiskers are intervals at points of a line.
type Whiskers struct {
	Name   string
	Series int
	Spans  []Whisker
}

// Whisker is the interval at a point.
type Whisker struct{ X, Low, High float64 }

func (w Whiskers) extend(x, y *span) {
	for _, one := range w.Spans {
		x.add(one.X)
		y.add(one.Low)
		y.add(one.High)
	}
}

func (w Whiskers) keys() []key { return []key{{w.Name, w.Series, markWhisker}} }

func markWhisker(c *canvas, x, y float64, n int) {
	c.add(`<path class="l %s" d="M%s %sh8m-4 0v12m-4 0h8"/>`, series(n), at(x+4), at(y-6))
}

func (w Whiskers) draw(c *canvas, x, y scale) {
	var path strings.Builder
	for _, one := range w.Spans {
		fmt.Fprintf(&path, "M%s %sh6m-3 0V%sm-3 0h6", at(x.at(one.X)-3), at(y.at(one.High)), at(y.at(one.Low)))
	}
	if path.Len() > 0 {
		c.add(`<path class="l %s" d="%s"/>`, series(w.Series), path.String())
	}
}
