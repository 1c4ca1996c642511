package pictures

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// percentiles shows latencies by the share of operations that took at most that long, for all runs together.
type percentiles struct {
	variants []results.VariantResult
	lines    map[string]*lineIDs
	bins     map[string]map[line]map[int64]int64
}

func newPercentiles(e results.Experiment) room {
	return &percentiles{e.Variants, map[string]*lineIDs{}, map[string]map[line]map[int64]int64{}}
}

func (p *percentiles) add(one seen) {
	of := line{one.Document.Phase, one.Variant}
	for operation, bins := range one.raw.Latencies {
		p.line(operation, of)
		if p.bins[operation][of] == nil {
			p.bins[operation][of] = map[int64]int64{}
		}
		for _, bin := range bins {
			p.bins[operation][of][binOf(bin.Nanoseconds)] += max(bin.Count, 0)
		}
	}
}

// line prepares the bins of an operation.
func (p *percentiles) line(operation string, of line) {
	if p.lines[operation] == nil {
		p.lines[operation], p.bins[operation] = &lineIDs{}, map[line]map[int64]int64{}
	}
	p.lines[operation].add(of)
}

// fromResults returns the medians of the percentiles, for phases without documents and for workloads that keep no bins.
func (p *percentiles) fromResults() map[string]map[line][]svg.Point {
	known := map[string]map[line][]svg.Point{}
	for _, variant := range p.variants {
		for _, phase := range variant.Phases {
			of := line{phase.Name, variant.Name}
			for _, metric := range phase.Metrics {
				operation, which, is := report.LatencyOf(metric.Name)
				share := report.Percentile(which) / 100
				if !is || share <= 0 || share >= 1 || len(p.bins[operation][of]) > 0 {
					continue
				}
				if known[operation] == nil {
					known[operation] = map[line][]svg.Point{}
				}
				known[operation][of] = append(known[operation][of], svg.Point{X: -math.Log10(1 - share), Y: float64(metric.Median)})
			}
		}
	}
	return known
}

// binOf joins latencies that differ by less than 2%: the ends of bins of several runs are not the same.
func binOf(nanoseconds int64) int64 {
	return int64(math.Round(math.Pow(1.02, math.Round(math.Log(float64(max(nanoseconds, 1)))/math.Log(1.02)))))
}

func (p *percentiles) pictures() []report.Picture {
	var drawn []report.Picture
	known := p.fromResults()
	for _, variant := range p.variants { // in their order
		for _, phase := range variant.Phases {
			for operation, lines := range known {
				if of := (line{phase.Name, variant.Name}); len(lines[of]) > 1 {
					slices.SortFunc(lines[of], func(a, b svg.Point) int { return cmp.Compare(a.X, b.X) })
					p.line(operation, of)
				}
			}
		}
	}
	for _, operation := range slices.Sorted(maps.Keys(p.lines)) {
		for _, lines := range p.lines[operation].charts() {
			title := operation + " latency: " + about(lines)
			chart := svg.Chart{ID: slug("percentiles-" + title), Title: title, Description: "The curves of latency over the share of operations " +
				"that took at most that long. The table of latencies has the percentiles.",
				X: svg.Axis{Label: "share of operations that took at most this long", Ticks: nines},
				Y: svg.Axis{Label: "latency", Unit: svg.Nanoseconds, Log: true}}
			for i, of := range lines {
				points := curve(p.bins[operation][of])
				chart.Marks = append(chart.Marks, svg.Line{Name: label(of, lines), Series: i, Points: append(points, known[operation][of]...),
					Marked: len(points) == 0})
			}
			drawn = append(drawn, picture("latency", title, title,
				"All runs together; dots are medians of percentiles. A curve ends where fewer than ten operations were slower.", chart))
		}
	}
	return drawn
}

// nines are the ticks of an axis on which each further nine of a share (90%, 99%, 99.9%) is equally far away.
var nines = []svg.Tick{{Value: 0, Words: "0%"}, {Value: -math.Log10(0.5), Words: "50%"}, {Value: 1, Words: "90%"}, {Value: 2, Words: "99%"},
	{Value: 3, Words: "99.9%"}, {Value: 4, Words: "99.99%"}, {Value: 5, Words: "99.999%"}, {Value: 6, Words: "99.9999%"}}

// curve returns points at the share of operations that took at most some time, for each step that is large enough to be seen. A latency
// that many operations had is a level of that width: a slope to the next latency would show latencies that none of them had.
func curve(bins map[int64]int64) []svg.Point {
	const least, seen = 10, 0.03
	var all, atMost int64
	for _, count := range bins {
		all += count
	}
	if all < least {
		return nil
	}
	var points []svg.Point
	var before, last float64
	for _, value := range slices.Sorted(maps.Keys(bins)) {
		if len(points) == 0 {
			points = append(points, svg.Point{Y: float64(value)})
		}
		atMost += bins[value]
		at := -math.Log10(float64(max(all-atMost, least)) / float64(all))
		if at-before > seen && before > 0 {
			points = append(points, svg.Point{X: before, Y: float64(value)})
		}
		if at-last > seen {
			points, last = append(points, svg.Point{X: at, Y: float64(value)}), at
		}
		before = at
	}
	return points
}

const maxSamples = 1500

// samples shows single latencies over time, in the first run of each variant.
type samples struct{ drawn []report.Picture }

func newSamples(results.Experiment) room { return &samples{} }

func (s *samples) add(one seen) {
	title := one.Document.Phase + ", " + one.Variant + ": single latencies"
	if len(one.raw.Samples) == 0 || slices.ContainsFunc(s.drawn, func(p report.Picture) bool { return p.Title == title }) {
		return
	}
	points := make([]svg.Point, 0, maxSamples)
	least := largestFrom(one.raw, maxSamples/3)
	every := max(1, len(one.raw.Samples)*3/(2*maxSamples))
	for i, sample := range one.raw.Samples {
		if i%every == 0 || sample.Nanoseconds >= least && len(points) < 2*maxSamples {
			points = append(points, svg.Point{X: float64(sample.Milliseconds) / 1000, Y: float64(sample.Nanoseconds)})
		}
	}
	description, of := "A dot for each of some operations, by the time at which it ended.", " operations"
	if window := one.raw.SampleWindowMilliseconds; window > 0 {
		of = fmt.Sprintf(" operations, each the slowest of a writer in %d ms", window)
		description = "A dot for each of some" + of + ", by the end of that time."
	}
	chart := svg.Chart{ID: slug("samples-" + title), Title: title, Description: description,
		X:     svg.Axis{Label: "time since the start of the workload", Unit: svg.Seconds, FromZero: true},
		Y:     svg.Axis{Label: "latency", Unit: svg.Nanoseconds, Log: true},
		Marks: []svg.Mark{svg.Dots{Points: points, Small: true}}}
	words := "Of " + svg.Numbers.Format(float64(max(one.raw.SamplesSeen, int64(len(one.raw.Samples))))) + of + " of run " + one.Run +
		", the slowest and a random choice."
	s.drawn = append(s.drawn, picture("time", title, title, words, chart))
}

// largestFrom returns the smallest of the given number of largest latencies.
func largestFrom(of raw, most int) int64 {
	values := make([]int64, 0, len(of.Samples))
	for _, sample := range of.Samples {
		values = append(values, sample.Nanoseconds)
	}
	slices.Sort(values)
	return values[max(0, len(values)-most)]
}

func (s *samples) pictures() []report.Picture { return s.drawn }
