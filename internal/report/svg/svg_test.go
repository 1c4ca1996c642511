package svg

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wellFormed parses a picture as strictly as a browser parses an SVG file, and returns its visible words.
func wellFormed(t *testing.T, picture string) (words []string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	inText := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return words
		}
		if err != nil {
			t.Fatalf("%v in:\n%.3000s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			if slices.Contains([]string{"script", "a", "image", "foreignObject", "use"}, token.Name.Local) {
				t.Errorf("element %s", token.Name.Local)
			}
			for _, attribute := range token.Attr {
				if strings.HasPrefix(attribute.Name.Local, "on") || attribute.Name.Local == "href" {
					t.Errorf("attribute %s", attribute.Name.Local)
				}
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				words = append(words, string(token))
			}
		}
	}
}

func sample() Chart {
	return Chart{ID: "p1", Title: "Reads", Description: "Two lines", X: Axis{Label: "seconds", Unit: Seconds},
		Y: Axis{Label: "rate", Unit: BytesPerSecond, FromZero: true}, Marks: []Mark{
			Line{Name: "fresh", Points: []Point{{0, 1 << 28}, {10, 1 << 29}}, Marked: true}, Dots{Name: "aged", Series: 1, Points: []Point{{1, 1 << 27}}},
			Bars{Name: "bars", Series: 2, Of: 2, Place: 1, Points: []Point{{3, 1 << 28}}}, Band{"steady", 5, 10}, Rule{"bound", 1 << 28},
		}}
}

func TestChartShowsItsMarks(t *testing.T) {
	picture := sample().Draw()
	words := wellFormed(t, picture)
	for _, want := range []string{"fresh", "aged", "bars", "steady", "bound", "rate", "seconds", "256 MiB/s", "512 MiB/s", "5 s"} {
		if !slices.Contains(words, want) {
			t.Errorf("%q is not among %q", want, words)
		}
	}
	for _, want := range []string{`role="img"`, `<title id="p1-t">Reads</title>`, `<desc id="p1-d">Two lines</desc>`, "prefers-color-scheme:dark"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if picture != sample().Draw() {
		t.Error("the second time it is different")
	}
}

// TestHostileTextDoesNothing: text in names is never markup, and cannot change the direction of writing.
func TestHostileTextDoesNothing(t *testing.T) {
	hostile := "</title><script>alert(1)</script>\" onload=\"x\x1b[31m\u202egnp\u2066\x00\uFFFE\xff"
	chart := sample()
	chart.ID, chart.Title, chart.Description, chart.X.Label, chart.Y.Label = hostile, hostile, hostile, hostile, hostile
	chart.X.Ticks = []Tick{{5, hostile}}
	chart.Marks = append(chart.Marks, Line{Name: hostile, Series: 3}, Rule{hostile, 5})
	strip := Strip{ID: hostile, Title: hostile, Rows: []Row{{Label: hostile, Values: []float64{1}}}, Dots: hostile, Bands: []Band{{hostile, 0, 1}}}
	for _, picture := range []string{chart.Draw(), strip.Draw()} {
		if words := wellFormed(t, picture); len(words) == 0 || !strings.Contains(strings.Join(words, ""), "<script>") {
			t.Errorf("the name is not shown: %q", words)
		}
		if strings.ContainsAny(picture, "\x1b\x00\u202e\u2066\uFFFE") {
			t.Error("there are characters that cannot be seen")
		}
	}
}

// TestOddFigures: no value leads to a picture with invalid coordinates.
func TestOddFigures(t *testing.T) {
	for name, points := range map[string][]Point{"none": nil, "one": {{0, 0}}, "equal": {{1, 7}, {2, 7}}, "negative": {{-1, -5}, {1, -5}},
		"huge": {{0, math.MaxInt64}, {1, 1}}, "endless": {{math.NaN(), math.Inf(1)}, {1, 1}}} {
		for _, log := range []bool{false, true} {
			chart := sample()
			chart.X.Log, chart.Y.Log, chart.Y.FromZero = log, log, !log
			chart.Marks = []Mark{Line{Name: "x", Points: points, Marked: true}, Bars{Name: "b", Points: points}}
			picture := chart.Draw()
			if wellFormed(t, picture); strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
				t.Errorf("%s, log %t: %s", name, log, picture)
			}
		}
	}
}

// TestAxesOfZeros: an axis on which all values are 0 goes from 0 to one of its unit, and not around 0 in billionths.
func TestAxesOfZeros(t *testing.T) {
	for name, c := range map[string]struct {
		unit Unit
		last string
	}{"count": {Numbers, "1.0"}, "share": {PartsPerMillion, "1.0%"}, "bytes": {Bytes, "1.0 B"}} {
		for _, fromZero := range []bool{false, true} {
			strip := Strip{Axis: Axis{Unit: c.unit, FromZero: fromZero}, Rows: []Row{{Label: "row", Values: []float64{0, 0}}}}
			words := wellFormed(t, strip.Draw())
			if words[len(words)-1] != c.last || strings.Contains(strings.Join(words, ""), "-") {
				t.Errorf("%s, from zero %t: %q", name, fromZero, words)
			}
		}
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, test := range []struct {
		unit      Unit
		low, high float64
		want      string
	}{
		{Numbers, 0, 97, "0 20 40 60 80"},
		{Numbers, 0, 26_193, "0 k 10 k 20 k"},
		{BytesPerSecond, 0, 300 << 20, "0 MiB/s 64 MiB/s 128 MiB/s 192 MiB/s 256 MiB/s"},
		{Bytes, 0, 7 << 30, "0 GiB 2 GiB 4 GiB 6 GiB"},
		{Nanoseconds, 80_000, 120_000, "80 µs 90 µs 100 µs 110 µs 120 µs"},
		{Nanoseconds, 1_000_000, 1_300_000, "1.0 ms 1.1 ms 1.2 ms 1.3 ms"},
		{PartsPerMillion, -120_000, 60_000, "-10% -5% 0% 5%"},
		{Whole, 0, 3, "0 1 2 3"},
		{Milli, 900, 1200, "0.9 1.0 1.1 1.2"},
	} {
		var words []string
		for _, t := range test.unit.ticks(test.low, test.high, ticksUp) {
			words = append(words, t.words)
		}
		if got := strings.Join(words, " "); got != test.want {
			t.Errorf("%v to %v: %q, want %q", test.low, test.high, got, test.want)
		}
	}
	var words []string
	for _, t := range Nanoseconds.logTicks(20_000, 200_000_000, ticksUp) {
		words = append(words, t.words)
	}
	if got := strings.Join(words, " "); got != "100 µs 1 ms 10 ms 100 ms" {
		t.Error(got)
	}
}

var labels = regexp.MustCompile(`<text x="([0-9.-]+)" y="([0-9.-]+)"(?: class="([a-z0-9 ]+)")?>([^<]*)</text>`)

// TestLabelsDoNotOverlap: with the assumed widths of texts, no two texts overlap and none leaves the picture.
func TestLabelsDoNotOverlap(t *testing.T) {
	long := strings.Repeat("a-long-NAME-WW-数", 12)
	chart := sample()
	chart.Y.Label, chart.X.Label = long, long
	chart.Marks = append(chart.Marks, Line{Name: long, Series: 1, Points: []Point{{1000, 5 << 30}}}, Line{Name: long + "2", Series: 2})
	wide := chart
	wide.X.Unit, wide.Marks = BytesPerSecond, []Mark{Line{Name: "x", Points: []Point{{100 << 20, 3e12}, {101 << 20, 9e14}}}}
	strip := Strip{Axis: Axis{Label: long, Unit: Nanoseconds}, Dots: "a dot for each run", Middle: "the median", Interval: "the interval",
		Rows: []Row{{Label: long, Values: []float64{1e6, 2e6}}, {Label: "b", Values: []float64{3e6}}}, Bands: []Band{{long, 1e6, 2e6}}}
	for name, picture := range map[string]string{"chart": chart.Draw(), "wide": wide.Draw(), "strip": strip.Draw()} {
		type box struct {
			left, right, top float64
			words            string
		}
		var boxes []box
		for _, found := range labels.FindAllStringSubmatch(picture, -1) {
			x, _ := strconv.ParseFloat(found[1], 64)
			y, _ := strconv.ParseFloat(found[2], 64)
			long := dejaVu(found[4])
			switch {
			case strings.Contains(found[3], "e"):
				x -= long
			case strings.Contains(found[3], "c"):
				x -= long / 2
			}
			boxes = append(boxes, box{x, x + long, y, found[4]})
		}
		if len(boxes) < 5 {
			t.Fatalf("%s: only %d labels", name, len(boxes))
		}
		for i, a := range boxes {
			if a.left < -1 || a.right > Width+1 {
				t.Errorf("%s: %q goes from %.0f to %.0f", name, a.words, a.left, a.right)
			}
			for _, b := range boxes[i+1:] {
				if math.Abs(a.top-b.top) < fontSize && a.left < b.right && b.left < a.right {
					t.Errorf("%s: %q and %q overlap", name, a.words, b.words)
				}
			}
		}
	}
}

// dejaVu returns the width of words at 12 pixels in DejaVu Sans, according to the font file. It knows some letters only.
func dejaVu(words string) (pixels float64) {
	advances := map[rune]float64{'a': 7.35, 'b': 7.62, 'd': 7.62, 'e': 7.38, 'g': 7.62, 'h': 7.61, 'i': 3.33, 'l': 3.33, 'm': 11.69, 'n': 7.61,
		'o': 7.34, 'r': 4.93, 's': 6.25, 't': 4.7, 'u': 7.61, 'w': 9.81, 'M': 10.36, 'W': 11.86, 'G': 9.3, 'B': 8.23, 'j': 3.33, ' ': 3.81,
		'-': 4.33, '/': 4.04, '.': 3.81, '…': 12, '数': 12}
	for _, letter := range html.UnescapeString(words) {
		advance, known := advances[letter]
		if !known {
			advance = 7.63 // a digit
		}
		pixels += advance
	}
	return pixels
}

// TestWordsFit: words that are cut fit, whatever their letters are, and words that fit are not cut.
func TestWordsFit(t *testing.T) {
	for _, words := range []string{"WWWWWWWWWWWWWWWWWWWWWWWW", "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii",
		"数数数数数数数数数数数数数数", "a b c d e f g", ""} {
		for _, pixels := range []float64{20, 100, 250} {
			got := fit(words, pixels)
			if long := dejaVu(got); long > pixels || got != words && (!strings.HasSuffix(got, "…") || long < pixels/2-20) {
				t.Errorf("%q in %.0f pixels is %q, which takes %.0f", words, pixels, got, long)
			}
			if dejaVu(words)*1.35 < pixels && got != words {
				t.Errorf("%q is cut to %q, and there are %.0f pixels", words, got, pixels)
			}
		}
	}
}

// TestLonePointsAreSeen: a point between two gaps has no line, so it is a dot.
func TestLonePointsAreSeen(t *testing.T) {
	points := []Point{{0, 1}, {1, 2}, {3, 9}, {5, 1}, {6, 2}}
	for want, breaks := range [][]int{nil, {2, 3}, {1, 2, 3}} {
		picture := Chart{Marks: []Mark{Line{Points: points, Breaks: breaks}}}.Draw()
		dots := regexp.MustCompile(`<path class="d2 s0" d="([^"]*)"`).FindStringSubmatch(picture)
		got := 0
		if dots != nil {
			got = strings.Count(dots[1], "M")
		}
		if want = []int{0, 1, 3}[want]; got != want {
			t.Errorf("%v: %d dots, want %d", breaks, got, want)
		}
	}
}

// TestManyDots: a row of many runs stays small, and its ends are drawn.
func TestManyDots(t *testing.T) {
	row := Row{Label: "many"}
	for i := range 1000 {
		row.Values = append(row.Values, float64(i%997)+100)
	}
	row.Values[501] = 5000
	strip := Strip{Rows: []Row{row}}
	points := row.points(0)
	if len(points) < 200 || len(points) > maxDots+2 || !slices.ContainsFunc(points, func(p Point) bool { return p.X == 5000 }) {
		t.Errorf("%d dots", len(points))
	}
	if picture := strip.Draw(); len(picture) > 8<<10 || strip.Sampled() != "about 300 of 1000 dots are drawn" {
		t.Errorf("%d bytes, %q", len(picture), strip.Sampled())
	}
	if few := (Strip{Rows: []Row{{Values: []float64{1, 2}}}}); few.Sampled() != "" || len(few.Rows[0].points(0)) != 2 {
		t.Error("few dots are sampled")
	}
}

var colourOf = regexp.MustCompile(`--([a-z0-9]+):#([0-9a-f]{6})`)

// TestContrast: text is readable on the background, and on bands, in both themes; lines and dots can be seen.
func TestContrast(t *testing.T) {
	light, dark, found := strings.Cut(style, "@media")
	if !found {
		t.Fatal("there is one theme only")
	}
	for name, theme := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]float64{}
		for _, one := range colourOf.FindAllStringSubmatch(theme, -1) {
			colours[one[1]] = luminance(t, one[2])
		}
		if len(colours) != 5+SeriesColours {
			t.Fatalf("%s: %d colours", name, len(colours))
		}
		for _, of := range []struct {
			front, back string
			least       float64
		}{{"t", "b", 7}, {"t", "w", 4.5}, {"m", "b", 4.5}, {"m", "w", 4.5}, {"s0", "b", 3}, {"s1", "b", 3}, {"s2", "b", 3}, {"s3", "b", 3},
			{"s4", "b", 3}, {"s5", "b", 3}, {"s0", "w", 3}, {"s1", "w", 3}} {
			a, b := colours[of.front], colours[of.back]
			if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < of.least {
				t.Errorf("%s: %s on %s has a contrast of %.1f, want %.1f", name, of.front, of.back, got, of.least)
			}
		}
	}
}

// luminance as WCAG defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		part := float64(value) / 255
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum
}
