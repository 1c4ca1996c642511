package history

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/stats"
)

const (
	// LeastPoints is the number of experiments below which no change can be distinguished from chance: five before and five after
	// can be arranged in 252 ways, and two of these look like a change, which is just below the required 1%.
	LeastPoints = 10
	// maxWork limits Changes, in metrics times points squared: each metric is shuffled about 500 times per change, and each shuffle takes
	// points squared steps. It allows 64 metrics with 100 points, or all possible metrics with 30 points.
	maxWork = 64 * MaxPoints * MaxPoints
	// maxCauses is the number of causes that a message names.
	maxCauses = 6
)

// Change is a point at which a metric changed.
type Change struct {
	Path
	// Experiment is the first experiment after the change, Before the last one before it.
	Experiment, Before string
	// Since is the time at which Experiment finished.
	Since time.Time
	// From and To are the medians since the previous change, and until the next one.
	From, To float64
	// Share is To/From - 1; infinite if From is 0.
	Share float64
	// Worse and Better follow the direction of the metric. A metric without a direction has neither.
	Worse, Better bool
	// Causes are the parts of the environment that differ between Before and Experiment, as "kernel 6.12.1 -> 6.12.4".
	Causes []string
}

// String describes the change in one sentence.
func (c Change) String() string {
	direction := ""
	switch {
	case c.Worse:
		direction = ", worse"
	case c.Better:
		direction = ", better"
	}
	return fmt.Sprintf("%s: %s -> %s (%s%s) since experiment %s of %s: %s",
		c.Path, figure(c.From), figure(c.To), percent(c.Share), direction, c.Experiment, c.Since.UTC().Format(time.RFC3339), c.Cause())
}

// Cause describes the known changes of the environment.
func (c Change) Cause() string { return causesText(c.Causes) }

// Percent returns the share in percent, formatted.
func (c Change) Percent() string { return percent(c.Share) }

func causesText(causes []string) string {
	if len(causes) == 0 {
		return "nothing in the environment is known to have changed"
	}
	if more := len(causes) - maxCauses; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(causes[:maxCauses], ", "), more)
	}
	return strings.Join(causes, ", ")
}

func percent(share float64) string {
	if math.IsInf(share, 0) {
		return "from nothing"
	}
	return fmt.Sprintf("%+.1f%%", 100*share)
}

func figure(value float64) string { return fmt.Sprintf("%.6g", value) }

// Paths returns the metrics of the newest point, followed by those that only older points have. Metrics of single workloads come last.
func (s *Series) Paths() []Path {
	var paths, ofWorkloads []Path
	seen := map[Path]bool{}
	for _, point := range slices.Backward(s.Points) {
		for _, metric := range point.Metrics {
			switch {
			case seen[metric.Path]:
			case metric.ofWorkload():
				ofWorkloads = append(ofWorkloads, metric.Path)
			default:
				paths = append(paths, metric.Path)
			}
			seen[metric.Path] = true
		}
	}
	return append(paths, ofWorkloads...)
}

// Changes finds all changes by E-divisive means, in as many metrics as a few seconds allow, starting with the metrics of the newest point.
// omitted is the number of remaining metrics. The same series and seed give the same changes.
func Changes(series *Series, seed uint64) (changes []Change, omitted int, err error) {
	paths := series.Paths()
	most := min(len(paths), maxWork/max(1, len(series.Points)*len(series.Points)))
	found, failures := make([][]Change, most), make([]error, most)
	next, done := make(chan int), sync.WaitGroup{}
	for range runtime.GOMAXPROCS(0) {
		done.Go(func() {
			for i := range next {
				found[i], failures[i] = changesOf(series, paths[i], seed)
			}
		})
	}
	for i := range most {
		next <- i
	}
	close(next)
	done.Wait()
	return slices.Concat(found...), len(paths) - most, errors.Join(failures...)
}

// Gap is a metric in which Changes sees no change, or none of late.
type Gap struct {
	Path
	Reason string `json:"reason"`
}

// Gaps returns the metrics that too few points have, and those that the newest point lacks: storage that has become too slow for a metric
// would otherwise look like storage that has not changed.
func (s *Series) Gaps() []Gap {
	if len(s.Points) == 0 {
		return nil
	}
	var gaps []Gap
	newest := s.Points[len(s.Points)-1].Experiment
	for _, path := range s.Paths() {
		points, _ := s.values(path)
		switch last := points[len(points)-1].Experiment; {
		case last != newest:
			gaps = append(gaps, Gap{path, "the newest experiment with it is " + last})
		case len(points) < LeastPoints:
			gaps = append(gaps, Gap{path, fmt.Sprintf("%d of %d experiments have it", len(points), LeastPoints)})
		}
	}
	return gaps
}

// changesOf is Changes for one metric, over the points that have it.
func changesOf(series *Series, path Path, seed uint64) ([]Change, error) {
	points, values := series.values(path)
	if len(values) < LeastPoints {
		return nil, nil
	}
	found, err := stats.Changes(seed).Find(values)
	if err != nil {
		return nil, fmt.Errorf("changes of %s: %w", path, err)
	}
	changes := make([]Change, 0, len(found))
	for _, change := range found {
		before, after := points[change.At-1], points[change.At]
		one := Change{Path: path, Experiment: after.Experiment, Before: before.Experiment, Since: after.FinishedAt,
			Causes: differences(before.Environment, after.Environment)}
		one.level(change.Before, change.After)
		changes = append(changes, one)
	}
	return changes, nil
}

// level sets the levels before and after, and the direction.
func (c *Change) level(from, to float64) {
	c.From, c.To, c.Share = from, to, share(from, to)
	metric, _ := results.LookupMetric(c.Metric)
	higher, lower := metric.Better == results.Higher, metric.Better == results.Lower
	c.Worse = higher && to < from || lower && to > from
	c.Better = higher && to > from || lower && to < from
}

// values returns the values of a metric, and the points that have it.
func (s *Series) values(path Path) (points []*Point, values []float64) {
	for i := range s.Points {
		for _, metric := range s.Points[i].Metrics {
			if metric.Path == path {
				points, values = append(points, &s.Points[i]), append(values, float64(metric.Median))
				break
			}
		}
	}
	return points, values
}

func share(from, to float64) float64 {
	switch from {
	case to:
		return 0
	case 0:
		return math.Inf(int(math.Copysign(1, to)))
	}
	return to/from - 1
}

// differences lists the keys that both have with different values.
func differences(before, after map[string]string) []string {
	var differing []string
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if old, known := before[key]; known && old != after[key] {
			differing = append(differing, fmt.Sprintf("%s %s -> %s", key, old, after[key]))
		}
	}
	return differing
}
