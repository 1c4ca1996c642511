package verdict

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs/runstest"
	"github.com/storagebench/storagebench/internal/verdict/gate"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

// compareState returns the input for judging a finished experiment with a baseline and a calibration.
func compareState() (*v1alpha1.StorageBenchmarkSpec, Standards, *results.Experiment) {
	spec := v1alpha1.StorageBenchmarkSpec{}
	spec.Baseline = &v1alpha1.Baseline{ConfigMap: v1alpha1.ConfigMapName{Name: "base"}}
	spec.Calibration = &v1alpha1.Calibration{ConfigMap: v1alpha1.ConfigMapName{Name: "noise"}}
	environment := map[string][]string{"kernel": {"6.12.1"}}
	standards := Standards{
		Baseline: &results.Baseline{Environment: environment, Experiments: []results.Accepted{{Experiment: "other"}}, Variants: []results.BaselineVariant{{Name: "v", Definition: "d",
			Phases: []results.BaselinePhase{{Name: "scan",
				Metrics: []results.BaselineMetric{{Name: "readBytesPerSecond", Unit: "bytes/s", Values: [][]int64{{5, 6}}}}}}}}},
		Calibration: &results.Baseline{Environment: environment, Experiments: []results.Accepted{{Experiment: "x"}, {Experiment: "y"}},
			Variants: []results.BaselineVariant{
				{Name: "v", Definition: "d", Phases: []results.BaselinePhase{{Name: "scan", Metrics: []results.BaselineMetric{
					{Name: "readBytesPerSecond", Unit: "bytes/s", Better: "Higher", Values: [][]int64{{1000, 1010}, {2000, 1990}}}}}}}}},
	}
	return &spec, standards, &results.Experiment{Environment: environment, Variants: []results.VariantResult{{Name: "v", Definition: "d"}}}
}

func TestComparedFindsTheValues(t *testing.T) {
	evidence := compared(compareState())
	stored := evidence.Baseline.Values("v", "scan", "readBytesPerSecond")
	if len(stored.Values) != 1 || len(stored.Values[0]) != 2 || stored.Unit != results.UnitBytesPerSecond || stored.Unlike != "" ||
		evidence.Share != 1 {
		t.Errorf("%+v, a share of %g", stored, evidence.Share)
	}
	if floor, known := evidence.Noise.Floor("scan", "readBytesPerSecond"); !known || floor < math.Log(1.01) || floor > math.Log(1.01)+1e-6 {
		t.Errorf("noise %g, %v", floor, known)
	}
	if days := evidence.Noise.Days("v", "scan", "readBytesPerSecond"); days.LevelFreedom != 1 || days.Levels < 0.2 || days.Levels > 0.3 {
		t.Errorf("days %+v", days)
	}
	if _, known := evidence.Noise.Floor("scan", "writeBytesPerSecond"); known {
		t.Error("a noise that was not measured")
	}
	if stored := evidence.Baseline.Values("other", "scan", "readBytesPerSecond"); len(stored.Values) > 0 {
		t.Errorf("%+v", stored)
	}
}

// TestDaysOfTheCalibration: only experiments of the same work count, and only those that are not in the baseline and not this one.
func TestDaysOfTheCalibration(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.StorageBenchmarkSpec, *Standards, *results.Experiment)
		want   float64 // degrees of freedom
	}{
		"as they are": {func(*v1alpha1.StorageBenchmarkSpec, *Standards, *results.Experiment) {}, 1},
		"no baseline": {func(_ *v1alpha1.StorageBenchmarkSpec, s *Standards, _ *results.Experiment) { s.Baseline = nil }, 1},
		"one document": {func(_ *v1alpha1.StorageBenchmarkSpec, s *Standards, _ *results.Experiment) {
			s.Baseline = s.Calibration
		}, 0},
		"one experiment in both": {func(_ *v1alpha1.StorageBenchmarkSpec, s *Standards, _ *results.Experiment) {
			s.Baseline.Experiments[0].Experiment = "y"
		}, 0},
		"this experiment": {func(_ *v1alpha1.StorageBenchmarkSpec, _ *Standards, e *results.Experiment) { e.Experiment = "x" }, 0},
		"other work": {func(_ *v1alpha1.StorageBenchmarkSpec, s *Standards, _ *results.Experiment) {
			s.Calibration.Variants[0].Definition = "e"
		}, 0},
		"other work allowed": {func(spec *v1alpha1.StorageBenchmarkSpec, s *Standards, _ *results.Experiment) {
			s.Calibration.Variants[0].Definition = "e"
			spec.Calibration.AllowDifferences = []string{"definition"}
		}, 1},
	} {
		spec, standards, experiment := compareState()
		c.change(spec, &standards, experiment)
		evidence := compared(spec, standards, experiment)
		if days := evidence.Noise.Days("v", "scan", "readBytesPerSecond"); days.LevelFreedom != c.want {
			t.Errorf("%s: %+v, want a freedom of %g", name, days, c.want)
		}
		if _, known := evidence.Noise.Floor("scan", "readBytesPerSecond"); !known {
			t.Errorf("%s: the noise of runs is lost", name)
		}
	}
}

// TestComparedRefuses: a document that cannot be compared with is refused, with the reason and a remedy.
func TestComparedRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change                func(*v1alpha1.StorageBenchmarkSpec, *Standards, *results.Experiment)
		baseline, calibration string // reasons
		says                  string
	}{
		"no documents": {func(_ *v1alpha1.StorageBenchmarkSpec, s *Standards, _ *results.Experiment) { *s = Standards{} },
			gate.ReasonBaselineMissing, gate.ReasonCalibrationMissing, ""},
		"refused": {func(_ *v1alpha1.StorageBenchmarkSpec, s *Standards, _ *results.Experiment) {
			s.BaselineRefused, s.CalibrationRefused = &gate.Refusal{Reason: "A", Message: "not there"}, &gate.Refusal{Reason: "B", Message: "broken",
				Invalid: true}
		}, "A", "B", "not there"},
		"other kernel": {func(_ *v1alpha1.StorageBenchmarkSpec, _ *Standards, e *results.Experiment) {
			e.Environment = map[string][]string{"kernel": {"6.12.4"}}
		}, gate.ReasonBaselineUnlike, gate.ReasonCalibrationUnlike,
			"ConfigMap base comes from different hardware or versions: kernel: baseline 6.12.1, now 6.12.4"},
		"other kernel allowed": {func(s *v1alpha1.StorageBenchmarkSpec, _ *Standards, e *results.Experiment) {
			e.Environment = map[string][]string{"kernel": {"6.12.4"}}
			s.Baseline.AllowDifferences, s.Calibration.AllowDifferences = []string{"kernel"}, []string{"kernel"}
		}, "", "", ""},
	} {
		spec, standards, experiment := compareState()
		c.change(spec, &standards, experiment)
		evidence := compared(spec, standards, experiment)
		baseline, calibration := cmp.Or(evidence.Baseline.Refused, &gate.Refusal{}), cmp.Or(evidence.Noise.Refused, &gate.Refusal{})
		if baseline.Reason != c.baseline || calibration.Reason != c.calibration || !strings.Contains(baseline.Message, c.says) {
			t.Errorf("%s: %+v, %+v", name, baseline, calibration)
		}
	}
}

// TestNotItsOwnReference: an experiment is compared only with the other experiments of the baseline, if there are any.
func TestNotItsOwnReference(t *testing.T) {
	spec, standards, experiment := compareState()
	experiment.Experiment = "this"
	standards.Baseline.Experiments = []results.Accepted{{Experiment: "this"}}
	if refused := compared(spec, standards, experiment).Baseline.Refused; refused == nil || refused.Reason != gate.ReasonBaselineMissing ||
		refused.Invalid || !strings.Contains(refused.Message, "only the numbers of this experiment") {
		t.Errorf("alone: %+v", refused)
	}
	standards.Baseline.Experiments = append(standards.Baseline.Experiments, results.Accepted{Experiment: "another"})
	standards.Baseline.Variants[0].Phases[0].Metrics[0].Values = [][]int64{{5, 6}, {7, 8}}
	if stored := compared(spec, standards, experiment).Baseline.Values("v", "scan", "readBytesPerSecond"); len(stored.Values) != 1 ||
		stored.Values[0][0] != 7 {
		t.Errorf("with another: %v", stored.Values)
	}
}

// TestOtherDefinition: values of other phases cannot be compared, unless the spec allows it.
func TestOtherDefinition(t *testing.T) {
	spec, standards, experiment := compareState()
	experiment.Variants[0].Definition = "another"
	if stored := compared(spec, standards, experiment).Baseline.Values("v", "scan", "readBytesPerSecond"); !strings.Contains(stored.Unlike,
		"phases or pods have changed") {
		t.Errorf("%+v", stored)
	}
	spec.Baseline.AllowDifferences = []string{"definition"}
	if stored := compared(spec, standards, experiment).Baseline.Values("v", "scan", "readBytesPerSecond"); stored.Unlike != "" {
		t.Errorf("%+v", stored)
	}
}

// TestHistoryIsJudged: the current experiment is the last of the series.
func TestHistoryIsJudged(t *testing.T) {
	spec, standards, experiment := compareState()
	finished := runstest.Noon
	experiment.FinishedAt, experiment.Experiment = &finished, "now"
	experiment.Variants[0].Phases = []results.PhaseResult{{Name: "scan", Metrics: []results.MetricResult{
		{Name: "readBytesPerSecond", Unit: "bytes/s", Better: "Higher", Median: 800, Runs: 6}}}}
	ask := func(series *history.Series, since time.Time) gate.Trend {
		standards.History = series
		return compared(spec, standards, experiment).History("v", "scan", "readBytesPerSecond", since)
	}
	if trend := ask(nil, time.Time{}); trend.Refused != nil || len(trend.Values) != 1 || trend.Values[0] != 800 {
		t.Errorf("without a history: %+v", trend)
	}
	series := func(levels ...int64) *history.Series {
		s := &history.Series{}
		for i, level := range levels {
			earlier := *experiment
			at := runstest.Noon.Add(time.Duration(i-len(levels)) * time.Hour)
			earlier.FinishedAt, earlier.Experiment, earlier.State, earlier.Verdict = &at, fmt.Sprint(i), results.StateComplete, "Passed"
			earlier.Variants = []results.VariantResult{{Name: "v", Definition: "d", Phases: []results.PhaseResult{{Name: "scan", Metrics: []results.MetricResult{
				{Name: "readBytesPerSecond", Unit: "bytes/s", Better: "Higher", Median: level, Runs: 6}}}}}}
			if point, complete := history.PointOf(&earlier, nil); complete {
				s.Append(point)
			}
		}
		return s
	}
	levels := []int64{1000, 1003, 998, 1001, 999, 1002, 1000, 997, 1001, 1000, 801, 799}
	if trend := ask(series(levels...), time.Time{}); len(trend.Values) != 13 || trend.Values[12] != 800 ||
		!strings.Contains(trend.Change(), "worse") {
		t.Errorf("slower for three experiments: %+v", trend)
	}
	if trend := ask(series(levels...), runstest.Noon.Add(-2*time.Hour)); len(trend.Values) != 3 || trend.Change() != "" {
		t.Errorf("since the change: %+v", trend)
	}
	experiment.FinishedAt = nil
	if trend := ask(nil, time.Time{}); trend.Refused == nil || trend.Refused.Reason != gate.ReasonNoData {
		t.Errorf("without a point: %+v", trend)
	}
}

// TestLooksShareTheLevels: with adaptive, there is a look at the first repetitions, and one at all of them.
func TestLooksShareTheLevels(t *testing.T) {
	spec, standards, experiment := compareState()
	spec.Repetitions, spec.Adaptive = 6, &v1alpha1.Adaptive{MaxRepetitions: 12}
	var sum float64
	spec.Repetitions = 2
	if all := looks(spec); all[0].Share != gate.SmallShare || all[1].Share != gate.LargeShare {
		t.Errorf("a look that can decide little has a share of %g", all[0].Share)
	}
	spec.Repetitions = 6
	for repetitions, want := range map[int32]float64{6: gate.LargeShare, 12: gate.SmallShare} {
		experiment.Repetitions = repetitions
		got := compared(spec, standards, experiment).Share
		if got != want {
			t.Errorf("%d repetitions: a share of %g, want %g", repetitions, got, want)
		}
		sum += got
	}
	if sum != 1 {
		t.Errorf("together %g", sum)
	}
	gates, err := gate.Compile([]v1alpha1.Gate{{Name: "g", Bound: &v1alpha1.BoundGate{Metric: "scan.readBytesPerSecond",
		Min: "0"}}}, []v1alpha1.Phase{{Name: "scan"}}, []string{"v"})
	if err != nil {
		t.Fatal(err)
	}
	if got := Undecidable(spec, gates); got != "" {
		t.Error(got)
	}
	spec.Adaptive, spec.Repetitions = nil, 4
	if got := Undecidable(spec, gates); got != "gates cannot be decided with 4 repetitions: bounds and ratios need at least 5 repetitions" {
		t.Error(got)
	}
}
