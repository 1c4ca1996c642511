// Package history keeps what a benchmark has measured from one experiment to the next, and finds where it changed. It is pure: it
// reads no clock and calls no API.
package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

// Key of the ConfigMap that holds a history.
const Key = "history.json"

// Version of the document history.json.
const Version = "history.storagebench.dev/v1alpha1"

// The bounds of a series. The oldest points go first.
const (
	// MaxPoints in a series.
	MaxPoints = 100
	// MaxBytes of the document, so that a ConfigMap has room for the rest.
	MaxBytes = 700 << 10
	// maxMetrics, maxEnvironment and maxValueBytes keep one point well below that.
	maxMetrics     = 4096
	maxEnvironment = 200
	maxValueBytes  = 240
)

// Series is the history of one benchmark, oldest first: the document history.json.
type Series struct {
	// Version is history.storagebench.dev/v1alpha1.
	Version string `json:"version"`
	// Benchmark that was measured.
	Benchmark results.RunIdentity `json:"benchmark"`
	Points    []Point             `json:"points,omitempty"`
}

// Point is one complete experiment.
type Point struct {
	// Experiment is its hash.
	Experiment string    `json:"experiment"`
	FinishedAt time.Time `json:"finishedAt"`
	Verdict    string    `json:"verdict,omitempty"`
	// Environment has what was the same in all runs of the experiment, and may differ from one experiment to the next.
	Environment map[string]string `json:"environment,omitempty"`
	// Metrics are the primary ones, in the order of the results.
	Metrics []Metric `json:"metrics,omitempty"`
	// MetricsOmitted is the number of those that did not fit.
	MetricsOmitted int `json:"metricsOmitted,omitempty"`
}

// Path names one figure of a benchmark.
type Path struct {
	Variant string `json:"variant"`
	Phase   string `json:"phase"`
	Metric  string `json:"metric"`
}

// String writes a path as people do.
func (p Path) String() string { return fmt.Sprintf("%s: %s.%s", p.Variant, p.Phase, p.Metric) }

// Metric is one figure of an experiment.
type Metric struct {
	Path
	Median int64 `json:"median"`
	// Runs that went in.
	Runs int32 `json:"runs"`
}

// PointOf makes the point of an experiment; false for one that is not complete. What more is known of it goes into the environment.
func PointOf(experiment *results.Experiment, more map[string]string) (Point, bool) {
	if experiment.State != results.StateComplete || experiment.FinishedAt == nil || experiment.Experiment == "" {
		return Point{}, false
	}
	point := Point{Experiment: experiment.Experiment, FinishedAt: experiment.FinishedAt.UTC().Truncate(time.Second),
		Verdict:     experiment.Verdict,
		Environment: environment(experiment, more)}
	for _, variant := range experiment.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if known, found := results.LookupMetric(metric.Name); !found || !known.Primary {
					continue
				}
				if len(point.Metrics) == maxMetrics {
					point.MetricsOmitted++
					continue
				}
				point.Metrics = append(point.Metrics, Metric{Path{variant.Name, phase.Name, metric.Name}, metric.Median, metric.Runs})
			}
		}
	}
	return point, true
}

// environment keeps what has one value, and is about where was measured rather than how this one experiment went.
func environment(experiment *results.Experiment, more map[string]string) map[string]string {
	all := map[string]string{"node": experiment.NodeName, "storageClass": experiment.StorageClass, "runnerImage": experiment.RunnerImage}
	for key, values := range experiment.Environment {
		if len(values) == 1 && lasting(key) {
			all[key] = values[0]
		}
	}
	maps.Copy(all, more)
	kept := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if value := all[key]; value != "" && len(kept) < maxEnvironment {
			kept[key] = strings.ToValidUTF8(value[:min(len(value), maxValueBytes)], "")
		}
	}
	return kept
}

// lasting is false for keys whose values are others each time, or say how a run went.
func lasting(key string) bool {
	for _, part := range strings.FieldsFunc(strings.ToLower(key), func(r rune) bool { return r == '.' || r == '_' || r == '-' }) {
		switch part {
		case "warning", "steadystate", "boot", "bootid", "uptime", "load", "outcome", "pool", "dataset", "source", "guid", "uuid", "seed",
			"random_seed":
			return false
		}
	}
	return true
}

// Append adds a point. One of the same experiment is replaced, so that it can be done twice.
func (s *Series) Append(point Point) {
	s.Points = slices.DeleteFunc(s.Points, func(other Point) bool { return other.Experiment == point.Experiment })
	s.Points = append(s.Points, point)
	slices.SortFunc(s.Points, compare)
	s.Points = s.Points[max(0, len(s.Points)-MaxPoints):]
}

func compare(a, b Point) int {
	if order := a.FinishedAt.Compare(b.FinishedAt); order != 0 {
		return order
	}
	return strings.Compare(a.Experiment, b.Experiment)
}

// Encode writes the document, without as many of the oldest points as do not fit.
func (s *Series) Encode() ([]byte, error) { return s.encode(MaxBytes) }

func (s *Series) encode(most int) ([]byte, error) {
	short := *s
	short.Version = Version
	short.Points = s.Points[max(0, len(s.Points)-MaxPoints):]
	for {
		text, err := json.Marshal(short)
		if err != nil {
			return nil, fmt.Errorf("write the history: %w", err)
		}
		if len(text) <= most {
			return text, nil
		}
		if len(short.Points) == 0 {
			return nil, fmt.Errorf("the history has %d bytes without any point, at most %d fit", len(text), most)
		}
		// As large a part of the points as of the bytes is too much; at least one.
		short.Points = short.Points[max(1, len(short.Points)*(len(text)-most)/len(text)):]
	}
}

// Decode reads the document. What Encode would not have written is an error.
func Decode(text []byte) (*Series, error) {
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("the history is not JSON: %w", err)
	}
	if head.Version != Version {
		return nil, fmt.Errorf("the history has version %.80q, and %s can be read", head.Version, Version)
	}
	var series Series
	if err := json.Unmarshal(text, &series); err != nil {
		return nil, fmt.Errorf("the history is not what was written: %w", err)
	}
	if len(series.Points) > MaxPoints {
		return nil, fmt.Errorf("the history has %d points, at most %d are written", len(series.Points), MaxPoints)
	}
	seen := map[string]bool{}
	for i, point := range series.Points {
		switch {
		case point.Experiment == "" || seen[point.Experiment]:
			return nil, fmt.Errorf("point %d of the history is of experiment %.80q: empty, or there twice", i+1, point.Experiment)
		case i > 0 && compare(series.Points[i-1], point) > 0:
			return nil, fmt.Errorf("point %d of the history is older than the one before", i+1)
		case point.FinishedAt.Year() < 1 || point.FinishedAt.Year() > 9999 || point.MetricsOmitted < 0:
			return nil, fmt.Errorf("point %d of the history cannot be", i+1)
		case len(point.Metrics) > maxMetrics || len(point.Environment) > maxEnvironment:
			return nil, fmt.Errorf("point %d of the history has more than is ever written", i+1)
		}
		seen[point.Experiment] = true
	}
	return &series, nil
}
