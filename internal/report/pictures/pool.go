package pictures

import (
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// pool shows how much the disks of a pool read and wrote over time, in the first run of each variant.
type pool struct{ drawn []report.Picture }

func newPool(results.Experiment) room { return &pool{} }

func (p *pool) add(one seen) {
	title := one.Document.Phase + ", " + one.Variant + ": the pool over time"
	if one.Pool == nil || slices.ContainsFunc(p.drawn, func(known report.Picture) bool { return known.Title == title }) {
		return
	}
	reads, writes := rates(one.Pool, func(v poolseries.Vdev) []int64 { return v.ReadBytes }),
		rates(one.Pool, func(v poolseries.Vdev) []int64 { return v.WriteBytes })
	if len(reads)+len(writes) == 0 {
		return
	}
	chart := svg.Chart{ID: slug("pool-" + title), Title: title, Description: "Bytes that the disks of the pool read and wrote per second.",
		X: svg.Axis{Label: "time since the first look", Unit: svg.Seconds, FromZero: true},
		Y: svg.Axis{Label: "bytes per second", Unit: svg.BytesPerSecond, FromZero: true}}
	for _, interval := range one.Document.Measured {
		chart.Marks = append(chart.Marks, svg.Band{Name: "measured", From: max(0, seconds(one.Pool, interval.From)),
			To: seconds(one.Pool, interval.To)})
	}
	chart.Marks = append(chart.Marks, svg.Line{Name: "read", Series: 0, Points: reads}, svg.Line{Name: "written", Series: 1, Points: writes})
	p.drawn = append(p.drawn, picture("time", title, title, "Run "+one.Run+".", chart))
}

func (p *pool) pictures() []report.Picture { return p.drawn }

func seconds(of *poolseries.Document, at time.Time) float64 { return at.Sub(of.StartedAt).Seconds() }

const maxPoints = 400

// rates returns the rates from sample to sample, summed over the disks. It ignores other vdevs: a mirror as a whole, for example, counts
// each write only once. Nil if no disk was counted.
func rates(of *poolseries.Document, counters func(poolseries.Vdev) []int64) []svg.Point {
	at := of.Series.OffsetMilliseconds
	if !slices.ContainsFunc(of.Vdevs, func(vdev poolseries.Vdev) bool { return vdev.Disk && len(counters(vdev)) == len(at) }) {
		return nil
	}
	step := max(1, (len(at)+maxPoints-1)/maxPoints)
	var points []svg.Point
	for from := 0; from+step < len(at); from += step {
		to, sum := from+step, int64(0)
		for _, vdev := range of.Vdevs {
			if series := counters(vdev); vdev.Disk && len(series) == len(at) {
				sum += series[to] - series[from]
			}
		}
		if long := at[to] - at[from]; long > 0 {
			points = append(points, svg.Point{X: float64(at[from]+at[to]) / 2000, Y: float64(sum) * 1000 / float64(long)})
		}
	}
	return points
}

// requests compares the sizes of the disks' requests between phases, for all runs together.
type requests struct {
	lines  lineIDs
	counts map[string]map[line]map[int64]int64
}

func newRequests(results.Experiment) room {
	return &requests{counts: map[string]map[line]map[int64]int64{"read": {}, "write": {}}}
}

func (r *requests) add(one seen) {
	if one.Pool == nil || len(one.Pool.RequestSizes) == 0 || one.Document.Kind != results.KindMeasure {
		return
	}
	of, histogram := line{one.Document.Phase, one.Variant}, one.Pool.RequestSizes[0]
	r.lines.add(of)
	for direction, counts := range r.counts {
		if counts[of] == nil {
			counts[of] = map[int64]int64{}
		}
		for name, column := range histogram.Columns {
			for i := range min(len(column), len(histogram.Bounds)) {
				if strings.Contains(name, "_"+direction) {
					counts[of][histogram.Bounds[i]] += column[i]
				}
			}
		}
	}
}

func (r *requests) pictures() []report.Picture {
	var drawn []report.Picture
	for _, direction := range []string{"read", "write"} {
		for _, lines := range r.lines.charts() {
			if chart, any := r.chart(direction, lines); any {
				drawn = append(drawn, picture("disks", direction+"-"+about(lines), chart.Title,
					"As the disks received them, with adjacent ones merged; all runs together.", chart))
			}
		}
	}
	return drawn
}

func (r *requests) chart(direction string, lines []line) (chart svg.Chart, any bool) {
	title := "Sizes of disk " + direction + "s: " + about(lines)
	chart = svg.Chart{ID: slug(title), Title: title, Description: "Parts of all requests by their size.",
		X: svg.Axis{Label: "size of the request, from"}, Y: svg.Axis{Label: "part of the requests", Unit: svg.PartsPerMillion, FromZero: true}}
	var sizes []int64
	for _, of := range lines {
		for size, count := range r.counts[direction][of] {
			if count > 0 && !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		chart.X.Ticks = append(chart.X.Ticks, svg.Tick{Value: float64(i), Words: svg.Bytes.Format(float64(size))})
	}
	for place, of := range lines {
		var all int64
		for _, count := range r.counts[direction][of] {
			all += count
		}
		var points []svg.Point
		for i, size := range sizes {
			if count := r.counts[direction][of][size]; count > 0 {
				points = append(points, svg.Point{X: float64(i), Y: float64(count) * 1e6 / float64(all)})
			}
		}
		chart.Marks = append(chart.Marks, svg.Bars{Name: label(of, lines), Series: place, Of: len(lines), Place: place, Points: points})
	}
	return chart, len(sizes) > 0
}
