// Package svg draws the charts of reports: axes with round ticks, lines, dots, bars and bands. It is small because reports need no more.
// The plotting libraries for Go are not used because a picture must follow the theme of its reader, have words for a screen reader, and be
// the same for the same figures; they do none of these.
package svg

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Width of all pictures, in their own pixels. It is the width of a small screen, so that their text stays readable there.
const Width = 420

const (
	fontSize = 12
	// SeriesColours is how many series have a colour of their own.
	SeriesColours = 6
	// maxTitle and maxDescription limit text that comes from names and labels.
	maxTitle       = 120
	maxDescription = 600
)

// style is part of each picture, so that a picture in a file of its own follows the theme too. Its rules begin with .sb-svg because the
// style of a picture inside a page applies to the whole page.
const style = `.sb-svg{font:12px system-ui,sans-serif;--t:#1f2328;--m:#57606a;--g:#d0d7de;--b:#ffffff;--w:#ddeeff;--s0:#0a58ca;` +
	`--s1:#b3450b;--s2:#1a7f37;--s3:#8250df;--s4:#b02a6b;--s5:#57606a}` +
	`@media screen and (prefers-color-scheme:dark){.sb-svg{--t:#e6edf3;--m:#9da7b3;--g:#3d444d;--b:#0d1117;--w:#1b3350;--s0:#6cb6ff;` +
	`--s1:#f0a35e;--s2:#57c26b;--s3:#c297ff;--s4:#ff8fc7;--s5:#adbac7}}` +
	`.sb-svg text{fill:var(--t)}.sb-svg .m{fill:var(--m)}.sb-svg .g{stroke:var(--g);fill:none}.sb-svg .w{fill:var(--w)}` +
	`.sb-svg .r{stroke:var(--m);stroke-dasharray:4 3;fill:none}.sb-svg .bg{fill:var(--b)}` +
	`.sb-svg .l{fill:none;stroke-width:2;stroke-linejoin:round}.sb-svg .d{fill:none;stroke-width:6;stroke-linecap:round}` +
	`.sb-svg .d2{fill:none;stroke-width:3;stroke-linecap:round}.sb-svg .e{text-anchor:end}.sb-svg .c{text-anchor:middle}` +
	`.sb-svg .o{paint-order:stroke;stroke:var(--b);stroke-width:3px}` +
	`.sb-svg .h{fill:none;stroke:var(--b);stroke-width:11;stroke-linecap:round}.sb-svg .k{stroke:none}` +
	`.sb-svg .cell{fill:var(--s0);stroke:var(--g)}.sb-svg .fr{fill:none;stroke:var(--t);stroke-width:2.5}`

func colours() string {
	var out strings.Builder
	for i := range SeriesColours {
		fmt.Fprintf(&out, ".sb-svg .s%d{stroke:var(--s%[1]d)}.sb-svg .f%[1]d{fill:var(--s%[1]d)}", i)
	}
	return out.String()
}

// dashes tell series apart without their colour.
var dashes = [SeriesColours]string{"", "7 3", "2 3", "9 3 2 3", "4 4", "12 4"}

// canvas collects the elements of a picture.
type canvas struct {
	out strings.Builder
}

func (c *canvas) add(format string, arguments ...any) { fmt.Fprintf(&c.out, format, arguments...) }

// text writes words at a place. class aligns and colours them.
func (c *canvas) text(x, y float64, class, words string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	c.add(`<text x="%s" y="%s"%s>%s</text>`, at(x), at(y), class, html.EscapeString(Clean(words, maxTitle)))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	c.add(`<path class="%s" d="M%s %sL%s %s"/>`, class, at(x1), at(y1), at(x2), at(y2))
}

func (c *canvas) rect(x, y, width, height float64, class string) {
	c.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, at(x), at(y), at(math.Max(width, 0)), at(math.Max(height, 0)))
}

// series is the class of the n-th series: its colour and dashes.
func series(n int) string { return "s" + strconv.Itoa(colour(n)) }

func fill(n int) string { return "f" + strconv.Itoa(colour(n)) }

func colour(n int) int { return max(n, 0) % SeriesColours }

func dash(n int) string {
	if dashes[colour(n)] == "" {
		return ""
	}
	return ` stroke-dasharray="` + dashes[colour(n)] + `"`
}

// at writes a coordinate with one decimal at most.
func at(value float64) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		value = 0
	}
	return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64)
}

// document puts a head with title and description for screen readers around the elements. The id distinguishes several pictures on one
// page.
func (c *canvas) document(id, title, description string, height float64) string {
	id = identifier(id)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="sb-svg" viewBox="0 0 %d %s" width="%[1]d" height="%[2]s" role="img" `+
		`aria-labelledby="%[3]s-t %[3]s-d"><title id="%[3]s-t">%[4]s</title><desc id="%[3]s-d">%[5]s</desc><style>%[6]s</style>`+
		`<rect class="bg" width="100%%" height="100%%"/>%[7]s</svg>`, Width, at(height), id,
		html.EscapeString(Clean(title, maxTitle)), html.EscapeString(Clean(description, maxDescription)), style+colours(), c.out.String())
}

// identifier keeps what every HTML and XML parser accepts in an id.
func identifier(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-') {
			return r
		}
		return '-'
	}, text)
}

// Clean turns text into one line of visible characters, cut to at most that many, because it may come from names and messages of other
// users. Characters that change the direction of writing are left out, because they could make one text read as another.
func Clean(text string, most int) string {
	var kept []rune
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs) || r == 0xFFFE || r == 0xFFFF:
			continue
		case unicode.IsControl(r) || unicode.IsSpace(r):
			r = ' '
		}
		if len(kept) == most {
			return strings.TrimRight(string(kept[:max(0, most-1)]), " ") + "…"
		}
		kept = append(kept, r)
	}
	return string(kept)
}

// key is an entry of a legend.
type key struct {
	words  string
	series int
	// mark draws the sample of the entry.
	mark func(c *canvas, x, y float64, series int)
}

// legend writes the entries in as many lines as they need, and returns the height.
func (c *canvas) legend(keys []key, top float64) float64 {
	if len(keys) == 0 {
		return 0
	}
	x, y := 8.0, top+fontSize
	for _, k := range keys {
		words := fit(k.words, Width-40)
		if x > 8 && x+24+width(words) > Width-8 {
			x, y = 8, y+18
		}
		k.mark(c, x, y-4, k.series)
		c.text(x+22, y, "", words)
		x += 22 + width(words) + 14
	}
	return y - top + 8
}

func markLine(c *canvas, x, y float64, series_ int) {
	c.add(`<path class="l %s"%s d="M%s %sh16"/>`, series(series_), dash(series_), at(x), at(y))
}

func markDot(c *canvas, x, y float64, series_ int) {
	c.add(`<path class="d %s" d="M%s %sh0"/>`, series(series_), at(x+8), at(y))
}

func markBlock(c *canvas, x, y float64, series_ int) { c.rect(x+3, y-5, 10, 10, fill(series_)) }

func markBand(c *canvas, x, y float64, _ int) { c.rect(x, y-5, 16, 10, "w") }

func markRule(c *canvas, x, y float64, _ int) { c.line(x, y, x+16, y, "r") }
