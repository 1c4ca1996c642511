package pictures

import (
	"slices"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// series shows the throughput of a phase over time: of the first run of each variant.
type series struct {
	phases []string
	first  map[line]timeline
	lines  lineIDs
}

// timeline is what a series is drawn from. steady is its point at which the steady part begins, or less than 0.
type timeline struct {
	points []svg.Point
	steady int
}

func newSeries(results.Experiment) room { return &series{first: map[line]timeline{}} }

func (s *series) add(one seen) {
	of := line{one.Document.Phase, one.Variant}
	if _, known := s.first[of]; known || one.raw.Series == nil {
		return
	}
	drawn := timeline{steady: -1}
	for _, point := range one.raw.Series.Points {
		lasts := point.ToMilliseconds - point.FromMilliseconds
		if lasts <= 0 {
			continue
		}
		if steady := one.raw.Series.Steady; steady != nil && drawn.steady < 0 && point.FromMilliseconds >= steady.FromMilliseconds {
			drawn.steady = len(drawn.points)
		}
		drawn.points = append(drawn.points, svg.Point{X: float64(point.FromMilliseconds+point.ToMilliseconds) / 2 * 1e6,
			Y: float64(point.ReadBytes+point.WrittenBytes) * 1e3 / float64(lasts)})
	}
	if len(drawn.points) < 2 {
		return
	}
	if !slices.Contains(s.phases, of.phase) {
		s.phases = append(s.phases, of.phase)
	}
	s.first[of] = drawn
	s.lines.add(of)
}

func (s *series) pictures() []report.Picture {
	var drawn []report.Picture
	for _, phase := range s.phases {
		title := phase + ": throughput over time"
		chart := svg.Chart{ID: slug("series-" + phase), Title: title, Description: "One line for each variant, of its first run.",
			X: svg.Axis{Label: "time since the workload started", Unit: svg.Nanoseconds, FromZero: true},
			Y: svg.Axis{Label: "bytes read and written per second", Unit: svg.BytesPerSecond, FromZero: true}}
		var begins []svg.Mark
		for _, of := range s.lines {
			if of.phase != phase || len(chart.Marks) == maxVariants {
				continue
			}
			one := s.first[of]
			if one.steady >= 0 {
				begins = append(begins, svg.Dots{Series: len(chart.Marks), Points: one.points[one.steady : one.steady+1]})
			}
			chart.Marks = append(chart.Marks, svg.Line{Name: of.variant, Series: len(chart.Marks), Points: one.points})
		}
		caption := "The first run of each variant, as the workload saw it: what the system still holds in memory counts too."
		if len(begins) > 0 {
			caption += " From the dot on, the rate is steady."
		}
		chart.Marks = append(chart.Marks, begins...)
		drawn = append(drawn, picture("time", phase, title, caption, chart))
	}
	return drawn
}
