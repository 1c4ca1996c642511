package pictures

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// leastSteps is how many values make a line worth drawing.
	leastSteps = 3
	// manifold is the ratio of the largest to the smallest value from which the axis is logarithmic.
	manifold = 8
	// sweepLevel is the chance that a median lies beyond one end of its interval.
	sweepLevel = 0.025
)

// sweep shows metrics over the numbers of one path of the matrix, such as how full the pool is.
type sweep struct {
	figures
	experiment results.Experiment
	// kept are the variants with runs that reused the pool of an earlier run: their runs depend on each other.
	kept map[string]bool
}

func newSweep(e results.Experiment) room {
	return &sweep{figuresOf(e), e, results.KeptVariants(e.Runs)}
}

func (*sweep) add(seen) {}

func (s *sweep) pictures() []report.Picture {
	all := dimensions(s.variants)
	for _, along := range filledFirst(all) {
		places, numbers := placesOf(along.values)
		if !numbers || len(along.values) < leastSteps {
			continue
		}
		var drawn []report.Picture
		for _, of := range s.subjects() {
			if one, any := s.picture(of, all, along, places); any {
				drawn = append(drawn, one)
			}
		}
		return drawn
	}
	return nil
}

// filledFirst puts paths of fill levels first: sweeps are made to show how a pool gets slower as it fills.
func filledFirst(all []dimension) []dimension {
	fills := func(one dimension) bool { return strings.HasSuffix(one.path, ".fill.to") }
	others := slices.DeleteFunc(slices.Clone(all), fills)
	return append(slices.DeleteFunc(slices.Clone(all), func(one dimension) bool { return !fills(one) }), others...)
}

// subjects adds the metrics of any phase that describe the state of a pool.
func (s *sweep) subjects() []results.GateMetric {
	all := subjects(s.experiment)
	for _, variant := range s.variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				of := results.GateMetric{Phase: phase.Name, Metric: metric.Name}
				if slices.Contains(shownBesides, metric.Name) && !slices.Contains(all, of) {
					all = append(all, of)
				}
			}
		}
	}
	return all
}

// written matches a number as it is written in the fields of a benchmark: plain, with a percent sign, or with a unit.
var written = regexp.MustCompile(`^([0-9]+(?:[.][0-9]+)?)(%|([kKmMgGtT])i?[bB]?)?$`)

// placesOf returns the places of values on an axis. It returns false if they are not all numbers of one kind.
func placesOf(values []string) (places map[string]float64, numbers bool) {
	places, shares := map[string]float64{}, 0
	for _, value := range values {
		found := written.FindStringSubmatch(value)
		if found == nil {
			return nil, false
		}
		number, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			return nil, false
		}
		if found[2] == "%" {
			shares++
		}
		if found[3] != "" {
			number *= math.Pow(1024, float64(1+strings.Index("kmgt", strings.ToLower(found[3]))))
		}
		places[value] = number
	}
	return places, shares == 0 || shares == len(values)
}

// axisOf returns the axis of a path. Its ticks are the values as they were written.
func axisOf(along dimension, places map[string]float64) svg.Axis {
	axis := svg.Axis{Label: along.path, Unit: svg.Numbers}
	least, most := math.Inf(1), 0.0
	for _, value := range along.values {
		least, most = math.Min(least, places[value]), math.Max(most, places[value])
		axis.Ticks = append(axis.Ticks, svg.Tick{Value: places[value], Words: value})
	}
	slices.SortFunc(axis.Ticks, func(a, b svg.Tick) int { return cmp.Compare(a.Value, b.Value) })
	axis.Log = least > 0 && most/least >= manifold
	return axis
}

// step is a median of a sweep, with the range of its runs and the interval of the median.
type step struct {
	svg.Point
	runs, interval svg.Whisker
}

// swept is one line of a sweep.
type swept struct {
	name  string
	steps []step
	// variantsWithoutRun are the places without a valid run.
	lost []float64
	// lacking is the number of medians without the value of a valid run.
	lacking int
}

// breaks returns the indexes of the steps that follow a place without a valid run: the values in between are unknown.
func (l *swept) breaks() (all []int) {
	for i := 1; i < len(l.steps); i++ {
		if slices.ContainsFunc(l.lost, func(x float64) bool { return l.steps[i-1].X < x && x < l.steps[i].X }) {
			all = append(all, i)
		}
	}
	return all
}

// lines returns the lines of a metric along a path: one for each combination of all other values, until there are no more colours. It also
// returns whether all medians have an interval, and how many medians are in no line.
func (s *sweep) lines(of results.GateMetric, all []dimension, path string, places map[string]float64) ([]*swept, bool, int) {
	var lines []*swept
	lost := map[string][]float64{}
	certain, left := true, 0
	for _, variant := range s.variants {
		metric, value := metricOf(variant, of.Phase, of.Metric), variant.Matrix[path]
		if value != "" && len(variant.Phases) == 0 {
			name := besides(variant, all, path)
			lost[name] = append(lost[name], places[value])
		}
		if metric == nil || value == "" {
			continue
		}
		name := besides(variant, all, path)
		at := slices.IndexFunc(lines, func(l *swept) bool { return l.name == name })
		if at < 0 && len(lines) == svg.SeriesColours {
			left++
			continue
		}
		if at < 0 {
			at, lines = len(lines), append(lines, &swept{name: name})
		}
		low, high, enough := medianSpan(s.values(variant.Name, of.Phase, of.Metric))
		lacks := s.lacks(variant.Name, metric)
		if lacks {
			lines[at].lacking++
		}
		certain = certain && enough && !lacks && !s.kept[variant.Name]
		lines[at].steps = append(lines[at].steps, step{svg.Point{X: places[value], Y: float64(metric.Median)},
			svg.Whisker{X: places[value], Low: float64(metric.Min), High: float64(metric.Max)}, svg.Whisker{X: places[value], Low: low, High: high}})
	}
	for _, l := range lines {
		slices.SortFunc(l.steps, func(a, b step) int { return cmp.Compare(a.X, b.X) })
		l.lost = lost[l.name]
	}
	return lines, certain, left
}

func (s *sweep) picture(of results.GateMetric, all []dimension, along dimension, places map[string]float64) (one report.Picture, any bool) {
	lines, certain, left := s.lines(of, all, along.path, places)
	if !slices.ContainsFunc(lines, func(l *swept) bool { return len(l.steps) >= leastSteps }) {
		return one, false
	}
	title := of.Phase + ": " + of.Metric + " over " + along.path
	chart := svg.Chart{ID: slug("sweep-" + title), Title: title, Description: sweepWords(lines, along, places, unitOf(of.Metric)),
		X: axisOf(along, places), Y: svg.Axis{Label: of.Metric, Unit: unitOf(of.Metric), FromZero: true}}
	caption := "Medians with the smallest and the largest run."
	if certain { // one picture never mixes both
		caption = "Medians with their 95% intervals."
	}
	lacking := 0
	for i, l := range lines {
		lacking += l.lacking
		line, spans := svg.Line{Name: cmp.Or(l.name, "median"), Series: i, Marked: true, Breaks: l.breaks()}, svg.Whiskers{Series: i}
		for _, at := range l.steps {
			line.Points = append(line.Points, at.Point)
			if certain {
				spans.Spans = append(spans.Spans, at.interval)
			} else {
				spans.Spans = append(spans.Spans, at.runs)
			}
		}
		chart.Marks = append(chart.Marks, line, spans)
	}
	if better := betterWords(of.Metric); better != "" {
		caption += " " + strings.ToUpper(better[:1]) + better[1:] + "."
	}
	words := ""
	if lost := s.variantsWithoutRun(along.path); lost > 0 {
		words = fmt.Sprintf(" Variants without a valid run: %d.", lost)
	}
	if lacking > 0 {
		words += fmt.Sprintf(" Medians that are not of all valid runs: %d.", lacking)
	}
	if words != "" {
		caption, chart.Description = caption+words, chart.Description+"."+words
	}
	if left > 0 {
		caption += fmt.Sprintf(" %d more medians are in the table of numbers.", left)
	}
	section := "numbers"
	if slices.Contains(shownBesides, of.Metric) {
		section = "disks"
	}
	return picture(section, of.Phase+"-"+of.Metric, title, caption, chart), true
}

// variantsWithoutRun counts the variants that have a value of the path but no valid run.
func (s *sweep) variantsWithoutRun(path string) (count int) {
	for _, variant := range s.variants {
		if variant.Matrix[path] != "" && len(variant.Phases) == 0 {
			count++
		}
	}
	return count
}

// medianSpan returns an interval that contains the median with a confidence of 95%. enough is false if there are too few values.
func medianSpan(values []float64) (low, high float64, enough bool) {
	outside := stats.MedianOutside(len(values), sweepLevel)
	if outside == 0 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[outside-1], sorted[len(sorted)-outside], true
}

func sweepWords(lines []*swept, along dimension, places map[string]float64, unit svg.Unit) string {
	var words []string
	for _, l := range lines {
		var points []string
		for _, point := range l.steps {
			for _, value := range along.values {
				if places[value] == point.X {
					points = append(points, value+" "+unit.Format(point.Y))
				}
			}
		}
		words = append(words, strings.TrimPrefix(l.name+": ", ": ")+strings.Join(points, ", "))
	}
	return "Medians: " + strings.Join(words, "; ")
}
