// Package history keeps the results of a benchmark across experiments, and finds changes. It is pure: it reads no clock and calls
// no API.
package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/internal/results"
)

// Key is the key of the history in its ConfigMap.
const Key = "history.json"

// Version is the version of the document history.json.
const Version = "history.storagebench.dev/v1alpha1"

// The limits of a series. The oldest points are dropped first.
const (
	// MaxPoints is the largest number of points in a series.
	MaxPoints = 100
	// MaxBytes is the largest size of the document. It leaves room for the rest of the ConfigMap.
	MaxBytes = 700 << 10
	// maxMetrics, maxEnvironment and maxValueBytes keep a single point well below MaxBytes.
	maxMetrics     = 4096
	maxEnvironment = 200
	maxValueBytes  = 240
)

// Series is the history of one benchmark, oldest first: the document history.json.
type Series struct {
	// Version is history.storagebench.dev/v1alpha1.
	Version string `json:"version"`
	// Benchmark is the benchmark that was measured.
	Benchmark results.RunIdentity `json:"benchmark"`
	Points    []Point             `json:"points,omitempty"`
}

// Point is one complete experiment.
type Point struct {
	// Experiment is the hash of the experiment.
	Experiment string    `json:"experiment"`
	FinishedAt time.Time `json:"finishedAt"`
	Verdict    string    `json:"verdict,omitempty"`
	// Environment has values that are the same in all runs of the experiment, and may differ between experiments.
	Environment map[string]string `json:"environment,omitempty"`
	// Definitions identifies what was measured, for each variant: a hash of target, phases and pods, and the versions of the workloads.
	Definitions map[string]string `json:"definitions,omitempty"`
	// Metrics holds the primary metrics, in the order of the results.
	Metrics []Metric `json:"metrics,omitempty"`
	// MetricsOmitted is the number of metrics that did not fit.
	MetricsOmitted int `json:"metricsOmitted,omitempty"`
}

// Path identifies one metric of a benchmark.
type Path struct {
	Variant string `json:"variant"`
	Phase   string `json:"phase"`
	Metric  string `json:"metric"`
}

// String formats a path.
func (p Path) String() string { return fmt.Sprintf("%s: %s.%s", p.Variant, p.Phase, p.Metric) }

// Metric is one metric of an experiment.
type Metric struct {
	Path
	Median int64 `json:"median"`
	// Runs is the number of runs.
	Runs int32 `json:"runs"`
}

// PointOf returns the point of an experiment, or false if the experiment is incomplete. It adds more to the environment.
func PointOf(experiment *results.Experiment, more map[string]string) (Point, bool) {
	if experiment.State != results.StateComplete || experiment.FinishedAt == nil || experiment.Experiment == "" {
		return Point{}, false
	}
	point := Point{Experiment: experiment.Experiment, FinishedAt: experiment.FinishedAt.UTC().Truncate(time.Second),
		Verdict:     experiment.Verdict,
		Environment: environment(experiment, more), Definitions: map[string]string{}}
	versions := strings.Join(experiment.Environment[results.KeyWorkloadVersion], ", ")
	repetitions := results.Repetitions(experiment.Runs)
	for _, variant := range experiment.Variants {
		if severalPools(experiment.Runs, variant.Name) {
			continue // its pool has no single age
		}
		if definition := strings.TrimSpace(variant.Definition + " " + versions); definition != "" {
			point.Definitions[variant.Name] = clip(definition)
		}
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if !results.IsPrimary(metric.Name) || results.Lacks(repetitions, variant.Name, metric) {
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

// severalPools reports whether a pool that experiments pass on was recreated between the valid runs of a variant.
func severalPools(runs []results.RunResult, variant string) bool {
	pools := map[string]map[time.Time]bool{}
	for _, run := range runs {
		if run.Variant != variant || !run.Valid || run.PoolAge == nil {
			continue
		}
		if pools[run.NodeName] == nil {
			pools[run.NodeName] = map[time.Time]bool{}
		}
		pools[run.NodeName][run.PoolAge.Since.UTC()] = true
		if len(pools[run.NodeName]) > 1 {
			return true
		}
	}
	return false
}

// environment keeps keys with a single value that describe the place of the measurement, not this experiment.
func environment(experiment *results.Experiment, more map[string]string) map[string]string {
	all := map[string]string{"node": experiment.NodeName, "storageClass": experiment.StorageClass, "runnerImage": experiment.RunnerImage}
	for key, values := range experiment.Environment {
		if len(values) == 1 && lasting(key) {
			all[key] = values[0]
		}
	}
	if age := results.AgeOf(experiment.Runs); age != nil {
		all["poolSince"] = age.Since.UTC().Format(time.RFC3339)
	}
	maps.Copy(all, more)
	first := slices.Concat([]string{"node", "storageClass", "runnerImage", "poolSince"}, slices.Sorted(maps.Keys(more)), results.MainKeys)
	kept := map[string]string{}
	for _, key := range slices.Concat(first, slices.Sorted(maps.Keys(all))) { // a dozen disks have more facts than there is room for
		if value := all[key]; value != "" && len(kept) < maxEnvironment {
			kept[key] = clip(value)
		}
	}
	return kept
}

func clip(value string) string {
	return strings.ToValidUTF8(value[:min(len(value), maxValueBytes)], "")
}

// lasting is false for keys whose values change each time, or that describe a run.
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

// Append adds a point. A point of the same experiment is replaced, so that Append can be repeated.
func (s *Series) Append(point Point) {
	s.Points = slices.DeleteFunc(s.Points, func(other Point) bool { return other.Experiment == point.Experiment })
	s.Points = append(s.Points, point)
	slices.SortFunc(s.Points, compare)
	s.Points = s.Points[max(0, len(s.Points)-MaxPoints):]
}

func compare(a, b Point) int {
	return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), cmp.Compare(a.Experiment, b.Experiment))
}

// Encode writes the document, without the oldest points that do not fit.
func (s *Series) Encode() ([]byte, error) { return s.encode(MaxBytes) }

func (s *Series) encode(most int) ([]byte, error) {
	short := *s
	short.Version = Version
	short.Points = slices.Clone(s.Points[max(0, len(s.Points)-MaxPoints):])
	for {
		text, err := json.Marshal(short)
		if err != nil {
			return nil, fmt.Errorf("write the history: %w", err)
		}
		if len(text) <= most {
			return text, nil
		}
		if len(short.Points) == 0 {
			return nil, fmt.Errorf("the history has %d bytes without any point, but the limit is %d", len(text), most)
		}
		// Drop the same share of points as the share of bytes that is too much; at least one. Metrics of single workloads go before: the
		// oldest points are the reference of gates.
		share := max(1, len(short.Points)*(len(text)-most)/len(text))
		if !short.dropWorkloads(share) {
			short.Points = short.Points[share:]
		}
	}
}

// dropWorkloads drops the metrics of single workloads of a phase from the oldest points that have any. dropped is false if none has.
func (s *Series) dropWorkloads(points int) (dropped bool) {
	for i := range s.Points {
		point := &s.Points[i]
		if points == 0 || !slices.ContainsFunc(point.Metrics, Metric.ofWorkload) {
			continue
		}
		before := len(point.Metrics)
		point.Metrics = slices.DeleteFunc(slices.Clone(point.Metrics), Metric.ofWorkload)
		point.MetricsOmitted += before - len(point.Metrics)
		points--
		dropped = true
	}
	return dropped
}

// ofWorkload reports whether a metric is that of one of several workloads of its phase, or of one job of several.
func (m Metric) ofWorkload() bool { return strings.Contains(m.Metric, ".") }

// Continue returns the stored series of a benchmark. A text that is missing, edited or of another benchmark is not continued. Then the
// series is empty, and has to be rebuilt from the results that still exist.
func Continue(text string, benchmark results.RunIdentity) (series *Series, continued bool) {
	decoded, err := Decode([]byte(text))
	if err != nil || decoded.Benchmark.UID != benchmark.UID {
		return &Series{Benchmark: benchmark}, false
	}
	decoded.Benchmark = benchmark
	return decoded, true
}

// Decode reads the document. Anything that Encode would not write is an error.
func Decode(text []byte) (*Series, error) {
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("the history is not JSON: %w", err)
	}
	if head.Version != Version {
		return nil, fmt.Errorf("the history has version %.80q, but only %s is supported", head.Version, Version)
	}
	if err := results.LimitValues(text, results.MaxValues); err != nil {
		return nil, fmt.Errorf("the history was changed: %w", err)
	}
	var series Series
	if err := json.Unmarshal(text, &series); err != nil {
		return nil, fmt.Errorf("the history was changed: %w", err)
	}
	if len(series.Points) > MaxPoints {
		return nil, fmt.Errorf("the history has %d points, but the limit is %d", len(series.Points), MaxPoints)
	}
	seen := map[string]bool{}
	for i, point := range series.Points {
		switch {
		case point.Experiment == "" || seen[point.Experiment]:
			return nil, fmt.Errorf("point %d of the history is of experiment %.80q: empty or duplicate", i+1, point.Experiment)
		case i > 0 && compare(series.Points[i-1], point) > 0:
			return nil, fmt.Errorf("point %d of the history is older than the one before", i+1)
		case point.FinishedAt.Year() < 1 || point.FinishedAt.Year() > 9999 || point.MetricsOmitted < 0:
			return nil, fmt.Errorf("point %d of the history is impossible", i+1)
		case len(point.Metrics) > maxMetrics || len(point.Environment) > maxEnvironment || len(point.Definitions) > maxMetrics:
			return nil, fmt.Errorf("point %d of the history exceeds the limits", i+1)
		}
		seen[point.Experiment] = true
	}
	return &series, nil
}
