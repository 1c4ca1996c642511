package svg

import (
	"fmt"
	"html"
	"math"
)

// Grid is a picture with a cell for each combination of a row and a column: its value in words, and a stronger colour the larger it is.
type Grid struct {
	ID          string
	Title       string
	Description string
	Unit        Unit
	// Across and Down name the dimensions of columns and rows.
	Across, Down string
	Columns      []string
	Rows         []string
	// Panels are drawn below each other, with the same colours.
	Panels []Panel
	// Best is the word for cells with a frame. Empty if no cell has one.
	Best string
	// Missing is the word for cells that should have a value, and have none.
	Missing string
}

// Panel is one grid of several.
type Panel struct {
	Title string
	// Cells by row and column.
	Cells [][]Cell
}

// Cell of a grid.
type Cell struct {
	Value float64
	State CellState
	// Best cells have a frame.
	Best bool
}

// CellState says whether there is a value.
type CellState int

// The states of cells: not a combination of the experiment, one without a value, one with a value.
const (
	CellAbsent CellState = iota
	CellMissing
	CellKnown
)

const (
	cellHeight = 26.0
	// strongest is the share of the colour below which words on it stay readable, in both themes.
	strongest = 0.5
	// leastSpan is the smallest difference, as a part of the largest value, that uses the full range of the colour: otherwise noise would
	// look like a pattern.
	leastSpan = 0.1
)

// Draw returns the picture.
func (g Grid) Draw() string {
	var out canvas
	values := g.span()
	step := g.Unit.step(math.Max(math.Abs(values.low), math.Abs(values.high)))
	words := func(value float64) string { return number(value / step.size) }
	left := 12.0
	for _, row := range g.Rows {
		left = math.Max(left, width(row)+14)
	}
	left = math.Min(left, Width/3)
	each := (Width - rightSpace - left) / float64(max(1, len(g.Columns)))
	upright, tall := g.turned(each, words)
	y := out.legend(g.legend(step.suffix, values, words), 4) + 8
	for _, panel := range g.Panels {
		if panel.Title != "" {
			out.text(8, y+13, "", fit(panel.Title, Width-16))
			y += 20
		}
		for i, cells := range panel.Cells {
			out.text(left-6, y+tall/2+4, "e", fit(g.Rows[i], left-8))
			for j, cell := range cells {
				out.cell(cell, left+each*float64(j), y, each, tall, words, values.shade(cell.Value), upright)
			}
			y += tall
		}
		y = g.columns(&out, left, y, each) + 10
	}
	out.text(8, y+12, "m", fit("Rows: "+g.Down, Width-16))
	out.text(8, y+28, "m", fit("Columns: "+g.Across, Width-16))
	return out.document(g.ID, g.Title, g.Description, y+38)
}

func (g Grid) span() span {
	all := emptySpan()
	g.each(func(cell Cell) {
		if cell.State == CellKnown {
			all.add(cell.Value)
		}
	})
	if math.IsInf(all.low, 0) {
		return span{0, 1}
	}
	return all
}

func (g Grid) each(see func(Cell)) {
	for _, panel := range g.Panels {
		for _, cells := range panel.Cells {
			for _, cell := range cells {
				see(cell)
			}
		}
	}
}

// turned returns whether the values have to be written upright, because the columns are narrow, and how high the rows are.
func (g Grid) turned(each float64, words func(float64) string) (upright bool, tall float64) {
	widest := 0.0
	g.each(func(cell Cell) {
		if cell.State == CellKnown {
			widest = math.Max(widest, width(words(cell.Value)))
		}
	})
	if widest+4 > each {
		return true, math.Max(cellHeight, widest+10)
	}
	return false, cellHeight
}

// shade is the part of the colour that a value has.
func (s span) shade(value float64) float64 {
	between := math.Max(s.high-s.low, leastSpan*math.Max(math.Abs(s.low), math.Abs(s.high)))
	if between <= 0 {
		return 0
	}
	return strongest * math.Min(1, math.Max(0, (value-s.low)/between))
}

// legend says what the colours are, and in which unit the values.
func (g Grid) legend(suffix string, values span, words func(float64) string) []key {
	keys := []key{{fmt.Sprintf("%s to %s%s", words(values.low), words(values.high), suffix), 0, markShades}}
	best, missing := false, false
	g.each(func(cell Cell) { best, missing = best || cell.Best, missing || cell.State == CellMissing })
	if best && g.Best != "" {
		keys = append(keys, key{g.Best, 0, markFrame})
	}
	if missing && g.Missing != "" {
		keys = append(keys, key{"? " + g.Missing, 0, markNothing})
	}
	return keys
}

func markShades(c *canvas, x, y float64, _ int) {
	for i, part := range []float64{0, 0.5, 1} {
		c.shaded(x+5*float64(i), y-5, 6, 10, strongest*part)
	}
}

func markFrame(c *canvas, x, y float64, _ int) { c.rect(x+1, y-5, 14, 10, "fr") }

func markNothing(*canvas, float64, float64, int) {}

func (c *canvas) shaded(x, y, width, height, part float64) {
	c.add(`<rect class="cell" x="%s" y="%s" width="%s" height="%s" fill-opacity="%.2f"/>`, at(x), at(y), at(width), at(height), part)
}

func (c *canvas) cell(cell Cell, x, y, wide, tall float64, words func(float64) string, shade float64, upright bool) {
	if cell.State == CellAbsent {
		return
	}
	text, part := "?", 0.0
	if cell.State == CellKnown {
		text, part = words(cell.Value), shade
	}
	c.shaded(x, y, wide, tall, part)
	if cell.Best {
		c.rect(x+1.5, y+1.5, wide-3, tall-3, "fr")
	}
	c.centred(x+wide/2, y+tall/2, text, upright)
}

// centred writes words around a place, from bottom to top if they are upright.
func (c *canvas) centred(x, y float64, words string, upright bool) {
	if !upright {
		c.text(x, y+4, "c", words)
		return
	}
	c.add(`<text class="c" transform="translate(%s %s) rotate(-90)">%s</text>`, at(x+4), at(y), html.EscapeString(Clean(words, maxTitle)))
}

// columns names the columns below a panel, and returns where it ends.
func (g Grid) columns(c *canvas, left, y, each float64) float64 {
	widest := 0.0
	for _, column := range g.Columns {
		widest = math.Max(widest, width(column))
	}
	upright := widest+4 > each
	high := 18.0
	if upright {
		high = math.Min(widest, 90) + 8
	}
	for i, column := range g.Columns {
		room := each
		if upright {
			room = high
		}
		c.centred(left+each*(float64(i)+0.5), y+high/2, fit(column, room), upright)
	}
	return y + high
}
