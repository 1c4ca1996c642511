package history

import (
	"fmt"
	"slices"
	"time"
)

// Levels returns the values of a metric since a time, with the current experiment as the last one. missing says why there are none. change
// describes the last change for the worse; finding it takes longer. An experiment that measured something else is left out, and so are all
// experiments before it.
func Levels(series *Series, current Point, path Path, since time.Time,
	seed uint64) (values []float64, change func() string, missing string) {
	with := &Series{Points: slices.DeleteFunc(slices.Clone(series.Points), func(point Point) bool { return point.FinishedAt.Before(since) })}
	with.Points = with.Points[startOf(with.Points, current, path.Variant):]
	with.Append(current)
	points, values := with.values(path)
	if n := len(points); n == 0 || points[n-1].Experiment != current.Experiment {
		return nil, nil, fmt.Sprintf("%s was not measured in all runs of this experiment, or not on one pool", path)
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
		measured := slices.ContainsFunc(point.Metrics, func(metric Metric) bool { return metric.Variant == variant })
		if measured && point.Definitions[variant] != current.Definitions[variant] {
			return i + 1
		}
	}
	return 0
}
