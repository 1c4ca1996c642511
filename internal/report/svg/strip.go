package svg

import (
	"math"
	"strconv"
	"strings"
)

// Strip is a picture with a row for each thing that is compared, and one axis below all of them.
type Strip struct {
	ID          string
	Title       string
	Description string
	Axis        Axis
	Rows        []Row
	// Bands and Rules go through all rows.
	Bands []Band
	Rules []Rule
	// Dots, Middle and Interval are the words of the legend. Empty ones are left out.
	Dots, Middle, Interval string
}

// Row of a strip.
type Row struct {
	Label  string
	Series int
	// Values are dots, in the order in which they were measured.
	Values []float64
	// Middle is marked by a line across the row, and the interval from Low to High by a bar.
	Middle    float64
	HasMiddle bool
	Low, High float64
	HasRange  bool
}

const (
	rowHeight = 36.0
	// maxDots is how many dots of a row can be told apart. If there are more, only some are drawn, spread over all of them.
	maxDots = 300
)

// Draw returns the picture.
func (s Strip) Draw() string {
	var out canvas
	top := out.legend(s.legend(), 4) + 8
	bottom := top + rowHeight*float64(len(s.Rows))
	across := s.Axis.scaleOf(s.span(), 12, Width-rightSpace)
	for _, band := range s.Bands {
		band.draw(&out, across, scale{from: bottom, to: top})
	}
	for _, t := range s.Axis.ticks(across, ticksAcross) {
		out.line(across.at(t.value), top, across.at(t.value), bottom, "g")
	}
	for _, rule := range s.Rules {
		out.line(across.at(rule.Value), top, across.at(rule.Value), bottom, "r")
	}
	for i, row := range s.Rows {
		row.draw(&out, across, top+rowHeight*float64(i))
	}
	out.bottomAxis(s.Axis, across, bottom)
	return out.document(s.ID, s.Title, s.Description, bottom+44)
}

func (s Strip) span() span {
	all := emptySpan()
	for _, row := range s.Rows {
		for _, value := range row.Values {
			all.add(value)
		}
		if row.HasMiddle {
			all.add(row.Middle)
		}
		if row.HasRange {
			all.add(row.Low)
			all.add(row.High)
		}
	}
	for _, rule := range s.Rules {
		all.add(rule.Value)
	}
	for _, band := range s.Bands {
		all.add(band.From)
		all.add(band.To)
	}
	return all
}

func (s Strip) legend() []key {
	keys := []key{{s.Dots, 0, markDot}, {s.Middle, 0, markMiddle}, {s.Interval, 0, markInterval}}
	for _, band := range s.Bands {
		keys = append(keys, band.keys()...)
	}
	for _, rule := range s.Rules {
		keys = append(keys, key{rule.Name, 0, markRule})
	}
	return distinctKeys(keys)
}

func markMiddle(c *canvas, x, y float64, n int) {
	c.add(`<path class="l %s" d="M%s %sv12"/>`, series(n), at(x+8), at(y-6))
}

func markInterval(c *canvas, x, y float64, n int) {
	c.add(`<path class="l %s" d="M%s %sv8m0 -4h16m0 -4v8"/>`, series(n), at(x), at(y-4))
}

// draw writes the label above the marks, so that a long one needs no room beside them. Lines behind it leave a gap around its letters.
func (r Row) draw(c *canvas, across scale, top float64) {
	c.text(8, top+13, "o", fit(r.Label, Width-16))
	y := top + 25
	if r.HasRange {
		c.add(`<path class="l %s" d="M%s %sv8m0 -4H%sm0 -4v8"/>`, series(r.Series), at(across.at(r.Low)), at(y-4), at(across.at(r.High)))
	}
	Dots{Series: r.Series, Points: r.points(y)}.draw(c, across, scale{span: span{0, 1}, from: 0, to: 1})
	if r.HasMiddle {
		c.add(`<path class="l %s" d="M%s %sv14"/>`, series(r.Series), at(across.at(r.Middle)), at(y-7))
	}
}

// points returns the points of the dots. The smallest and the largest value are always among them.
func (r Row) points(y float64) []Point {
	step := math.Max(1, float64(len(r.Values))/maxDots)
	var points []Point
	low, high := 0, 0
	for i, value := range r.Values {
		if value < r.Values[low] {
			low = i
		}
		if value > r.Values[high] {
			high = i
		}
	}
	for at := 0.0; int(at) < len(r.Values); at += step {
		points = append(points, Point{r.Values[int(at)], y})
	}
	if step > 1 {
		points = append(points, Point{r.Values[low], y}, Point{r.Values[high], y})
	}
	return points
}

// Sampled says in words that not all dots of a row are drawn; empty if they are.
func (s Strip) Sampled() string {
	var words []string
	for _, row := range s.Rows {
		if len(row.Values) > maxDots {
			words = append(words, strconv.Itoa(len(row.Values)))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "about " + strconv.Itoa(maxDots) + " of " + strings.Join(words, ", ") + " dots are drawn"
}
