package history

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Levels returns the values of a metric since a time, with the current experiment as the last one. missing says why there are none. change
// describes the last change for the worse; finding it takes longer. An experiment that measured something else is left out, and so are all
// experiments before it. There are no values if one of the newest experiments, which are judged together, lacks its own.
func Levels(series *Series, current Point, path Path, since time.Time, newest int,
	seed uint64) (values []float64, change func() string, missing string) {
	with := &Series{Points: slices.DeleteFunc(slices.Clone(series.Points), func(point Point) bool { return point.FinishedAt.Before(since) })}
	with.Points = with.Points[startOf(with.Points, current, path.Variant):]
	with.Append(current)
	points, values := with.values(path)
	if n := len(points); n == 0 || points[n-1].Experiment != current.Experiment {
		return nil, nil, fmt.Sprintf("%s was not measured in all runs of this experiment, or not on one pool", path)
	}
	if lacking := with.lacking(path, points[max(0, len(points)-newest)], newest); lacking != "" {
		return nil, nil, lacking
	}
	return values, func() string {
		changes, err := changesOf(with, path, seed)
		if err != nil {
			return "the changes of the history are not known: " + err.Error()
		}
		for _, one := range slices.Backward(changes) {
			if one.Worse {
				return one.String()
			}
		}
		return ""
	}, ""
}

// startOf is the index of the first point from which on all points with the variant have the same definition of it as the current one.
func startOf(points []Point, current Point, variant string) int {
	for i, point := range slices.Backward(points) {
		if point.measured(variant) && point.Definitions[variant] != current.Definitions[variant] {
			return i + 1
		}
	}
	return 0
}

// maxLacking is the number of experiments without a metric that a message names.
const maxLacking = 5

// lacking says which experiments do not have a metric, of those after the oldest of the newest points that have it. Their runs may have
// stalled, so older experiments must not take their place. Experiments before that point may be older than the metric itself.
func (s *Series) lacking(path Path, oldest *Point, newest int) string {
	var lacking []string
	since := 0 // the number of points with the metric since the last one without it
	for i := range s.Points {
		point := &s.Points[i]
		switch {
		case compare(*point, *oldest) < 0:
		case point.has(path):
			since++
		case point.measured(path.Variant) && !point.mayOmit(path):
			lacking, since = append(lacking, point.Experiment), 0
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	named := "experiment "
	if len(lacking) > 1 {
		named = "experiments "
	}
	named += strings.Join(lacking[:min(len(lacking), maxLacking)], ", ")
	if more := len(lacking) - maxLacking; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("no data: %s was not measured in all runs of %s, and older experiments cannot replace these: the notes of their "+
		"reports say why; run %d more, and measure longer if runs have too few operations", path, named, newest-since)
}

// has reports whether a point has a metric.
func (p *Point) has(path Path) bool {
	return slices.ContainsFunc(p.Metrics, func(metric Metric) bool { return metric.Path == path })
}

// measured reports whether a point has any metric of a variant. Without one, the variant had no valid run, or several pools.
func (p *Point) measured(variant string) bool {
	return slices.ContainsFunc(p.Metrics, func(metric Metric) bool { return metric.Variant == variant })
}

// mayOmit reports whether a metric may have been left out of a point for its size. Then it is not known to be lacking.
func (p *Point) mayOmit(path Path) bool {
	return p.MetricsOmitted > 0 && (len(p.Metrics) >= maxMetrics || Metric{Path: path}.ofWorkload())
}
