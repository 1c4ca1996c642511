package pictures

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

// timeline is a line of throughput or latency, with dots on some of its points.
type timeline struct {
	points, dots []svg.Point
	// breaks are the indexes of the points that follow a time without a value.
	breaks []int
	// operated is the time of an operation that ran beside the workload. Nil if there was none.
	operated *svg.Band
}

// timelines shows throughput or latency in the course of a phase, for the first run of each variant. If there are dots, dotted is a part of
// the caption.
type timelines struct {
	kind, title     string
	x, y            svg.Axis
	caption, dotted string
	read            func(seen) timeline

	phases []string
	first  map[line]timeline
	lines  lineIDs
}

// The axes of timelines, and a part of their captions.
var (
	sinceStart = svg.Axis{Label: "time since the workload started", Unit: svg.Nanoseconds, FromZero: true}
	throughput = svg.Axis{Label: "bytes read and written per second", Unit: svg.BytesPerSecond, FromZero: true}
	steadyFrom = " From the dot on, the rate is steady."
)

func newSeries(results.Experiment) room {
	return &timelines{kind: "series", title: "throughput over time", first: map[line]timeline{}, x: sinceStart, y: throughput,
		read: func(one seen) timeline {
			if !moves(one) {
				return timeline{}
			}
			return overTime(func(of point) (float64, bool) { return of.perSecond(of.ReadBytes + of.WrittenBytes), true })(one)
		},
		caption: "The first run of each variant, as the workload saw it: what the system still holds in memory counts too.",
		dotted:  steadyFrom}
}

// newOperations is for workloads that count no bytes, such as transactions or operations on files.
func newOperations(results.Experiment) room {
	return &timelines{kind: "operations", title: "operations over time", first: map[line]timeline{}, x: sinceStart,
		y: svg.Axis{Label: "operations per second", Unit: svg.Numbers, FromZero: true},
		read: func(one seen) timeline {
			if moves(one) {
				return timeline{}
			}
			return overTime(func(of point) (float64, bool) { return of.perSecond(of.Operations), true })(one)
		},
		caption: "The first run of each variant.", dotted: steadyFrom}
}

// moves reports whether the series of a workload counts bytes.
func moves(one seen) bool {
	return one.raw.Series != nil && slices.ContainsFunc(one.raw.Series.Points, func(p point) bool { return p.ReadBytes+p.WrittenBytes > 0 })
}

func newSlowest(results.Experiment) room {
	return &timelines{kind: "slowest", title: "the slowest operations over time", first: map[line]timeline{}, x: sinceStart,
		y:    svg.Axis{Label: "latency of the slowest operation of each second", Unit: svg.Nanoseconds, Log: true},
		read: overTime(func(of point) (float64, bool) { return float64(of.LatencyMaxNanoseconds), of.LatencyMaxNanoseconds > 0 }),
		caption: "The first run of each variant; of a long one, or of hundreds of workers, some seconds together. " +
			"A gap: no operation ended.", dotted: steadyFrom}
}

func newMean(results.Experiment) room {
	return &timelines{kind: "mean", title: "mean latency over time", first: map[line]timeline{}, x: sinceStart,
		y: svg.Axis{Label: "mean latency of the transactions of each second", Unit: svg.Nanoseconds, Log: true},
		read: overTime(func(of point) (float64, bool) {
			return float64(of.LatencyMeanNanoseconds), of.LatencyMeanNanoseconds > 0
		}),
		caption: "The first run of each variant, as pgbench says; of a long one, some seconds together.", dotted: steadyFrom}
}

func newRounds(results.Experiment) room {
	return &timelines{kind: "rounds", title: "throughput of each round", first: map[line]timeline{}, read: byRound,
		x: svg.Axis{Label: "round", Unit: svg.Whole}, y: throughput,
		caption: "The first run of each variant.", dotted: " Rounds with a dot are the steady part: only they count."}
}

// overTime returns a function that reads a value of each point of a series that has one.
func overTime(value func(point) (float64, bool)) func(seen) timeline {
	return func(one seen) timeline {
		if one.raw.Series == nil {
			return timeline{}
		}
		return timelineOf(one, value)
	}
}

func timelineOf(one seen, value func(point) (float64, bool)) (of timeline) {
	gap := false
	for _, point := range one.raw.Series.Points {
		if point.ToMilliseconds <= point.FromMilliseconds {
			continue
		}
		read, known := value(point)
		if !known {
			gap = true
			continue
		}
		if gap {
			of.breaks, gap = append(of.breaks, len(of.points)), false
		}
		at := svg.Point{X: float64(point.FromMilliseconds+point.ToMilliseconds) / 2 * 1e6, Y: read}
		of.points = append(of.points, at)
		if steady := one.raw.Series.Steady; steady != nil && len(of.dots) == 0 && point.FromMilliseconds >= steady.FromMilliseconds {
			of.dots = []svg.Point{at}
		}
	}
	of.operated = operatedOf(one)
	return of
}

// operatedOf places an operation in the series of its workload. The two have different clocks; both know the end of the last measured part,
// which aligns them.
func operatedOf(one seen) *svg.Band {
	parts, times := one.raw.Series.Measured, one.Document.Measured
	if one.Document.Operated == nil || len(parts) == 0 || len(times) == 0 {
		return nil
	}
	zero := times[len(times)-1].To.Add(-time.Duration(parts[len(parts)-1].ToMilliseconds) * time.Millisecond)
	return &svg.Band{From: max(0, float64(one.Document.Operated.From.Sub(zero))), To: float64(one.Document.Operated.To.Sub(zero))}
}

func byRound(one seen) (of timeline) {
	for i, round := range one.raw.Rounds {
		if round.DurationNanoseconds > 0 {
			of.points = append(of.points, svg.Point{X: float64(i + 1), Y: float64(round.Bytes) * 1e9 / float64(round.DurationNanoseconds)})
		}
	}
	if counted := len(one.Document.Measured); one.Document.Kind == results.KindMeasure && counted <= len(of.points) {
		of.dots = of.points[len(of.points)-counted:]
	}
	return of
}

func (t *timelines) add(one seen) {
	of := line{one.Document.Phase, one.Variant}
	if _, known := t.first[of]; known {
		return
	}
	drawn := t.read(one)
	if len(drawn.points) < 2 {
		return
	}
	if !slices.Contains(t.phases, of.phase) {
		t.phases = append(t.phases, of.phase)
	}
	t.first[of] = drawn
	t.lines.add(of)
}

func (t *timelines) pictures() []report.Picture {
	var drawn []report.Picture
	for _, phase := range t.phases {
		title, caption := phase+": "+t.title, t.caption
		chart := svg.Chart{ID: slug(t.kind + "-" + phase), Title: title, Description: "One line for each variant, of its first run.",
			X: t.x, Y: t.y}
		var dots []svg.Mark
		series := 0
		for _, of := range t.lines {
			if of.phase != phase || series == maxVariants {
				continue
			}
			one := t.first[of]
			if len(one.dots) > 0 {
				dots = append(dots, svg.Dots{Series: series, Points: one.dots, Ringed: len(one.dots) == 1})
			}
			if one.operated != nil && !slices.ContainsFunc(chart.Marks, isBand) { // operations of other variants were at other times
				chart.Marks = append(chart.Marks, svg.Band{Name: "operation, " + of.variant, From: one.operated.From, To: one.operated.To})
			}
			chart.Marks = append(chart.Marks, svg.Line{Name: of.variant, Series: series, Points: one.points, Breaks: one.breaks})
			series++
		}
		if len(dots) > 0 {
			caption += t.dotted
		}
		chart.Marks = append(chart.Marks, dots...)
		drawn = append(drawn, picture("time", phase, title, caption, chart))
	}
	return drawn
}

func isBand(mark svg.Mark) bool {
	_, is := mark.(svg.Band)
	return is
}

// regions shows how fast each part of the data was read, as the median of the runs.
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
	for _, lines := range r.lines.charts() {
		title := "Regions of a scan: " + about(lines)
		chart := svg.Chart{ID: slug(title), Title: title, Description: "The rate of each region of the data, in the order of its place.",
			X: svg.Axis{Label: "region, in the order of its place", Unit: svg.Whole},
			Y: svg.Axis{Label: "bytes read per second", Unit: svg.BytesPerSecond, FromZero: true}}
		for i, of := range lines {
			var points []svg.Point
			for _, index := range slices.Sorted(maps.Keys(r.rates[of])) {
				points = append(points, svg.Point{X: float64(index + 1), Y: stats.Median(r.rates[of][index])})
			}
			chart.Marks = append(chart.Marks, svg.Line{Name: label(of, lines), Series: i, Points: points, Marked: true})
		}
		drawn = append(drawn, picture("time", about(lines), title, fmt.Sprintf("Medians of up to %d runs.", maxRuns), chart))
	}
	return drawn
}
