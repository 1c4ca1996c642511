package pictures

import (
	"fmt"
	"maps"
	"slices"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// rounds shows the throughput of each round of a phase: of the first run of each variant.
type rounds struct {
	phases []string
	first  map[line]seen
	lines  lineIDs
}

func newRounds(results.Experiment) room { return &rounds{first: map[line]seen{}} }

func (r *rounds) add(one seen) {
	of := line{one.Document.Phase, one.Variant}
	if _, known := r.first[of]; known || len(one.raw.Rounds) < 2 {
		return
	}
	if !slices.Contains(r.phases, of.phase) {
		r.phases = append(r.phases, of.phase)
	}
	r.first[of] = one
	r.lines.add(of)
}

func (r *rounds) pictures() []report.Picture {
	var drawn []report.Picture
	for _, phase := range r.phases {
		title := phase + ": throughput of each round"
		chart := svg.Chart{ID: slug("rounds-" + phase), Title: title, Description: "One line for each variant, of its first run.",
			X: svg.Axis{Label: "round", Unit: svg.Whole},
			Y: svg.Axis{Label: "bytes read and written per second", Unit: svg.BytesPerSecond, FromZero: true}}
		var steady []svg.Mark
		for _, of := range r.lines {
			if of.phase != phase || len(chart.Marks) == maxVariants {
				continue
			}
			one := r.first[of]
			var points []svg.Point
			for i, round := range one.raw.Rounds {
				if round.DurationNanoseconds > 0 {
					points = append(points, svg.Point{X: float64(i + 1), Y: float64(round.Bytes) * 1e9 / float64(round.DurationNanoseconds)})
				}
			}
			chart.Marks = append(chart.Marks, svg.Line{Name: of.variant, Series: len(chart.Marks), Points: points})
			if counted := len(one.Document.Measured); one.Document.Kind == results.KindMeasure && counted > 0 && counted <= len(points) {
				steady = append(steady, svg.Dots{Series: len(chart.Marks) - 1, Points: points[len(points)-counted:]})
			}
		}
		caption := "The first run of each variant."
		if len(steady) > 0 {
			caption += " Rounds with a dot are the steady part: only they count."
		}
		chart.Marks = append(chart.Marks, steady...)
		drawn = append(drawn, picture("time", phase, title, caption, chart))
	}
	return drawn
}

// regions shows how fast each part of the data was read: the median of the runs.
type regions struct {
	lines lineIDs
	rates map[line]map[int][]float64
}

func newRegions(results.Experiment) room { return &regions{rates: map[line]map[int][]float64{}} }

func (r *regions) add(one seen) {
	of := line{one.Document.Phase, one.Variant}
	for _, region := range one.raw.Regions {
		if region.Nanoseconds <= 0 {
			continue
		}
		if r.rates[of] == nil {
			r.rates[of] = map[int][]float64{}
			r.lines.add(of)
		}
		r.rates[of][region.Index] = append(r.rates[of][region.Index], float64(region.Bytes)*1e9/float64(region.Nanoseconds))
	}
}

func (r *regions) pictures() []report.Picture {
	var drawn []report.Picture
	if len(r.lines) == 0 {
		return nil
	}
	for _, lines := range r.lines.charts() {
		title := "Regions of a scan: " + about(lines)
		chart := svg.Chart{ID: slug(title), Title: title, Description: "The rate of each region of the data, in the order of its place.",
			X: svg.Axis{Label: "region, in the order of its place", Unit: svg.Whole},
			Y: svg.Axis{Label: "bytes read per second", Unit: svg.BytesPerSecond, FromZero: true}}
		for i, of := range lines {
			var points []svg.Point
			for _, index := range slices.Sorted(maps.Keys(r.rates[of])) {
				points = append(points, svg.Point{X: float64(index + 1), Y: middle(r.rates[of][index])})
			}
			chart.Marks = append(chart.Marks, svg.Line{Name: label(of, lines), Series: i, Points: points, Marked: true})
		}
		drawn = append(drawn, picture("time", about(lines), title, fmt.Sprintf("Medians of up to %d runs.", maxRuns), chart))
	}
	return drawn
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
