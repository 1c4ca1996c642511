// Command pictures draws the pictures of docs/explanation/verdicts.md from figures that were measured in a lab.
package main

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/test/bench"
)

// series is the content of one picture: the runs of several experiments side by side.
type series struct {
	// Title of the picture, and the unit of its figures.
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// TolerancePercent is the band below the median of the first group.
	TolerancePercent float64 `json:"tolerancePercent"`
	Groups           []group `json:"groups"`
}

// group has the runs of one experiment, and its verdict.
type group struct {
	Name    string    `json:"name"`
	Values  []float64 `json:"values"`
	Verdict string    `json:"verdict"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures FOLDER: draws an SVG for each JSON file in it")
		os.Exit(2)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no figures in %s", os.Args[1])
	}
	for _, file := range files {
		if err == nil {
			err = drawFile(file)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func drawFile(file string) error {
	picture, err := pictureOf(file)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(file, ".json")+".svg", []byte(picture), 0o644) //nolint:gosec // a public picture
}

func pictureOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var s series
	if err := json.Unmarshal(text, &s); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return s.draw()
}

// The dimensions of a picture, in pixels.
const (
	left, top, bottom  = 70, 60, 70
	groupWidth, height = 150, 260
)

var colours = map[string]string{"Passed": "#1a7f37", "Failed": "#cf222e", "Inconclusive": "#9a6700"}

// draw draws a dot for each run, a line at the median of the first group, and a band for the tolerance.
func (s series) draw() (string, error) {
	if len(s.Groups) == 0 || slices.ContainsFunc(s.Groups, func(g group) bool { return len(g.Values) == 0 }) {
		return "", fmt.Errorf("%s: a picture needs groups, and each of them values", s.Title)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, g := range s.Groups {
		low, high = min(low, slices.Min(g.Values)), max(high, slices.Max(g.Values))
	}
	middle := bench.Median(s.Groups[0].Values)
	accepted := middle * (1 - s.TolerancePercent/100)
	low, high = min(low, accepted), max(high, middle)
	margin := max(high-low, 0.01*high) * 0.1
	low, high = low-margin, high+margin
	at := func(value float64) float64 { return top + height*(high-value)/(high-low) }
	width := left + groupWidth*len(s.Groups) + 20

	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" font-family="sans-serif" font-size="13">`+
		"\n", width, top+height+bottom)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	fmt.Fprintf(&out, `<text x="%d" y="24" font-size="16">%s</text>`+"\n", left, html.EscapeString(s.Title))
	fmt.Fprintf(&out, `<rect x="%d" y="%.1f" width="%d" height="%.1f" fill="#ddf4ff"/>`+"\n", left, at(middle), groupWidth*len(s.Groups),
		at(accepted)-at(middle))
	for _, line := range []struct {
		value float64
		words string
	}{{middle, fmt.Sprintf("%.0f", middle)}, {accepted, fmt.Sprintf("-%g%%", s.TolerancePercent)}} {
		fmt.Fprintf(&out, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="#57606a" stroke-dasharray="4 3"/>`+"\n", left, width-20,
			at(line.value))
		fmt.Fprintf(&out, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, at(line.value)+4, line.words)
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d">%s, a dot for each run; the band is what is tolerated</text>`+"\n", left, top-14,
		html.EscapeString(s.Unit))
	for i, g := range s.Groups {
		g.draw(&out, left+groupWidth*i, at)
	}
	out.WriteString("</svg>\n")
	return out.String(), nil
}

// draw draws the dots of a group from left to right in the order of execution, with its name and verdict below.
func (g group) draw(out *strings.Builder, x int, at func(float64) float64) {
	colour := colours[g.Verdict]
	if colour == "" {
		colour = "#0969da"
	}
	step := float64(groupWidth-40) / float64(max(1, len(g.Values)-1))
	for i, value := range g.Values {
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", float64(x)+20+step*float64(i), at(value), colour)
	}
	for i, words := range []string{g.Name, g.Verdict} {
		fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n", x+groupWidth/2, top+height+24+20*i, colour,
			html.EscapeString(words))
	}
}
