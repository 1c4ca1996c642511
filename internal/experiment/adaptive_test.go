package experiment

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

func adaptiveState() State {
	state := testState()
	state.Benchmark.Spec.Repetitions, state.Benchmark.Spec.Order = 2, v1alpha1.OrderInterleaved
	state.Benchmark.Spec.Adaptive = &v1alpha1.Adaptive{MaxRepetitions: 5}
	return settle(state)
}

// TestExtended: further repetitions are planned once the results announce them, and then all of them, whatever happens to the results.
func TestExtended(t *testing.T) {
	state := adaptiveState()
	variants := len(design.VariantNames(state.Slots))
	if len(state.Slots) != 5*variants || len(slotsInUse(state)) != 2*variants || Count(state).Total != 2*variants {
		t.Errorf("%d slots, %d in use, %d counted, of %d variants", len(state.Slots), len(slotsInUse(state)), Count(state).Total, variants)
	}
	said := state
	said.Results = []StoredExperiment{{ConfigMap: "c", Experiment: state.Experiment, Extended: true}}
	other := state
	other.Results = []StoredExperiment{{ConfigMap: "c", Experiment: "another", Extended: true}}
	begun := state
	begun.Runs = []v1alpha1.BenchmarkRun{makeRun(state, state.Slots[2*variants], 1)}
	for name, c := range map[string]struct {
		state State
		want  int
	}{"said": {said, 5}, "said of another": {other, 2}, "begun": {begun, 5}} {
		if got := len(slotsInUse(c.state)); got != c.want*variants {
			t.Errorf("%s: %d slots, want %d", name, got, c.want*variants)
		}
	}
	plain := testState()
	if got := len(slotsInUse(plain)); got != len(plain.Slots) {
		t.Errorf("without adaptive: %d of %d slots", got, len(plain.Slots))
	}
}

// TestExtendedInVain: the deadline expires before one of the further repetitions has ended. The results that announce them are replaced
// once.
func TestExtendedInVain(t *testing.T) {
	state := adaptiveState()
	state.Benchmark.Spec.Deadline = &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Hour}}
	base := slotsInUse(state)
	state = endedRuns(state, 0, len(base), runstest.ValidEnding)
	for i := range state.Runs {
		state.Runs[i].CreationTimestamp = *runstest.Stamp(0)
	}
	state.Results = []StoredExperiment{{ConfigMap: naming.ResultsName(state.Benchmark.Name, state.Experiment), Experiment: state.Experiment,
		Fingerprint: fingerprint(state), Verdict: "Inconclusive", StoredAt: runstest.Noon, Extended: true}}
	state.Now = runstest.Noon.Add(30 * time.Minute)
	if in := Plan(state); in.Tally.Over {
		t.Errorf("in time: %+v", in.Tally)
	}
	state.Now = runstest.Noon.Add(2 * time.Hour)
	late := Plan(state)
	if !late.Tally.Expired || !slices.ContainsFunc(late.Actions, func(a Action) bool { return a.Kind == WriteResults && !a.Superseded }) {
		t.Errorf("too late: %+v, %q", late.Tally, kinds(late.Actions))
	}
	state.Results[0].Extended, state.Results[0].Fingerprint = false, late.Fingerprint
	if last := Plan(state); last.Position != PositionFinished {
		t.Errorf("the last results are written: %s, %q", last.Position, kinds(last.Actions))
	}
}

// TestAdaptiveKeepsTheOrder: the first repetitions are the same with and without further ones.
func TestAdaptiveKeepsTheOrder(t *testing.T) {
	state := adaptiveState()
	fewer := state.Benchmark.DeepCopy()
	fewer.Spec.Adaptive = nil
	first, err := design.Expand(&fewer.Spec, design.Seed(fewer))
	if err != nil {
		t.Fatal(err)
	}
	for i, slot := range slotsInUse(state) {
		if slot.Variant != first[i].Variant || slot.Seed != first[i].Seed || slot.Index != first[i].Index {
			t.Errorf("slot %d is %s, was %s", i, slot.Variant, first[i].Variant)
		}
	}
	if design.ID(fewer) == state.Experiment {
		t.Error("another limit is another experiment")
	}
}

func TestExtend(t *testing.T) {
	start, end := runstest.Noon.Add(-time.Hour), runstest.Noon
	open := func(change func(*v1alpha1.StorageBenchmarkSpec, *results.Experiment)) bool {
		spec := adaptiveState().Benchmark.Spec
		experiment := &results.Experiment{State: results.StateComplete, Verdict: "Inconclusive", Repetitions: 2, StartedAt: &start,
			FinishedAt: &end,
			Gates: []results.GateResult{{Name: "other", Verdict: "Passed", Reason: "Holds"},
				{Name: "g", Verdict: "Inconclusive", Reason: "Unclear"}}}
		change(&spec, experiment)
		return extend(&spec, experiment, runstest.Noon)
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.StorageBenchmarkSpec, *results.Experiment)
		want   bool
	}{
		"open":             {func(*v1alpha1.StorageBenchmarkSpec, *results.Experiment) {}, true},
		"too few":          {func(_ *v1alpha1.StorageBenchmarkSpec, e *results.Experiment) { e.Gates[1].Reason = "TooFewRuns" }, true},
		"no data":          {func(_ *v1alpha1.StorageBenchmarkSpec, e *results.Experiment) { e.Gates[1].Reason = "NoData" }, false},
		"failed":           {func(_ *v1alpha1.StorageBenchmarkSpec, e *results.Experiment) { e.Verdict = "Failed" }, false},
		"runs are missing": {func(_ *v1alpha1.StorageBenchmarkSpec, e *results.Experiment) { e.State = results.StateIncomplete }, false},
		"already all":      {func(_ *v1alpha1.StorageBenchmarkSpec, e *results.Experiment) { e.Repetitions = 5 }, false},
		"not asked":        {func(s *v1alpha1.StorageBenchmarkSpec, _ *results.Experiment) { s.Adaptive = nil }, false},
		"within the budget": {func(s *v1alpha1.StorageBenchmarkSpec, _ *results.Experiment) {
			s.Adaptive.Budget = runstest.Lasting(150 * time.Minute)
		}, true},
		"over the budget": {func(s *v1alpha1.StorageBenchmarkSpec, _ *results.Experiment) {
			s.Adaptive.Budget = runstest.Lasting(149 * time.Minute)
		}, false},
		"over the deadline": {func(s *v1alpha1.StorageBenchmarkSpec, _ *results.Experiment) {
			s.Deadline = runstest.Lasting(2 * time.Hour)
		}, false},
		"judged an hour later": {func(s *v1alpha1.StorageBenchmarkSpec, e *results.Experiment) {
			e.StartedAt, e.FinishedAt = runstest.After(-2*time.Hour), runstest.After(-time.Hour)
			s.Adaptive.Budget = runstest.Lasting(210 * time.Minute)
		}, true},
		"over the budget an hour later": {func(s *v1alpha1.StorageBenchmarkSpec, e *results.Experiment) {
			e.StartedAt, e.FinishedAt = runstest.After(-2*time.Hour), runstest.After(-time.Hour)
			s.Adaptive.Budget = runstest.Lasting(209 * time.Minute)
		}, false},
	} {
		if got := open(c.change); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
