package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

func TestImage(t *testing.T) {
	phase := func(load v1alpha1.Workload) v1alpha1.Phase {
		return v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: load}}
	}
	fill := v1alpha1.Phase{Fill: &v1alpha1.FillPhase{To: "80%"}}
	scan, postgres := phase(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}),
		phase(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}})
	slots := func(phases ...v1alpha1.Phase) []design.Slot {
		return []design.Slot{{Phases: []v1alpha1.Phase{fill}}, {Phases: phases}}
	}
	earlier := v1alpha1.BenchmarkRun{Spec: v1alpha1.BenchmarkRunSpec{Experiment: "new", RunnerImage: "runner:0"}}
	for name, test := range map[string]struct {
		slots    []design.Slot
		runs     []v1alpha1.BenchmarkRun
		postgres string
		want     string
	}{
		"no postgres":                   {slots: slots(scan), postgres: "postgres:1", want: "runner:1"},
		"postgres":                      {slots: slots(fill, postgres), postgres: "postgres:1", want: "postgres:1"},
		"postgres, no image of its own": {slots: slots(postgres), want: "runner:1"},
		"the first run decides": {slots: slots(postgres), postgres: "postgres:1", runs: []v1alpha1.BenchmarkRun{earlier},
			want: "runner:0"},
		"a run of an earlier experiment": {slots: slots(postgres), postgres: "postgres:1",
			runs: []v1alpha1.BenchmarkRun{{Spec: v1alpha1.BenchmarkRunSpec{Experiment: "old", RunnerImage: "runner:0"}}}, want: "postgres:1"},
	} {
		state := State{Experiment: "new", Slots: test.slots, Runs: test.runs, Images: Images{Runner: "runner:1", Postgres: test.postgres}}
		if got := runnerImage(state); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestRehearsal: a new or Stalled benchmark validates a run of each variant with the API server before it does anything else.
func TestRehearsal(t *testing.T) {
	fresh := func() State {
		state := testState()
		state.Benchmark.Status.Experiment, state.Benchmark.Finalizers = "", nil
		return state
	}
	changed := func(change func(*State)) State {
		state := fresh()
		change(&state)
		return state
	}
	stuck := testState()
	kstatus.SetStalled(&stuck.Benchmark.Status.Conditions, 1, v1alpha1.ReasonSpecInvalid, "no")
	for name, test := range map[string]struct {
		state   State
		rehears bool
	}{
		"a new one":           {fresh(), true},
		"one that is Stalled": {stuck, true},
		"one that is known":   {testState(), false},
		"it has been asked":   {changed(func(s *State) { s.Rehearsed = true }), false},
		"it is deleted":       {changed(func(s *State) { s.Benchmark.DeletionTimestamp = runstest.Stamp(0) }), false},
		"its spec is wrong":   {changed(func(s *State) { s.SpecError = &design.SpecError{Reason: "R", Message: "m"} }), false},
	} {
		decision := Plan(test.state)
		if got := decision.Position == PositionRehearsing; got != test.rehears {
			t.Errorf("%s: %+v", name, decision)
		}
		if want := []string{"Rehearse", "Rehearse"}; test.rehears && !slices.Equal(kinds(decision.Actions), want) {
			t.Errorf("%s: %v", name, kinds(decision.Actions))
		}
	}
	decision := Plan(fresh())
	variants := map[string]bool{}
	for _, action := range decision.Actions {
		variants[action.Rehearsal.Spec.Variant] = true
		if spec := action.Rehearsal.Spec; spec.NodeName == "" || spec.Target.StorageClass.Name == "" ||
			!strings.HasSuffix(action.Rehearsal.Name, "-rehearsal") {
			t.Errorf("%+v", action.Rehearsal)
		}
	}
	if len(variants) != 2 {
		t.Errorf("rehearsed are %v", variants)
	}
	refused := fresh()
	refused.Rehearsed, refused.SpecError = true, RefusedRun(decision.Actions[0].Rehearsal, errors.New("size is too small"))
	if got := Plan(refused); got.Position != PositionStalled || got.Reason != v1alpha1.ReasonSpecInvalid ||
		!strings.Contains(got.Message, "cannot be run: size is too small") {
		t.Errorf("%+v", got)
	}
}

// TestRehearsalOfAMatrix: in a large matrix, each value is rehearsed, but not each combination.
func TestRehearsalOfAMatrix(t *testing.T) {
	var slots []design.Slot
	for size := range 13 {
		for sync := range 5 {
			for repetition := range int32(2) {
				matrix := map[string]string{"dataset.recordsize": fmt.Sprint("r", size), "dataset.sync": fmt.Sprint("s", sync)}
				slots = append(slots, design.Slot{Variant: fmt.Sprint(size, sync), Base: "v", Repetition: repetition, Matrix: matrix})
			}
		}
	}
	if few := rehearsed(slots[:2*60]); len(few) != 60 {
		t.Errorf("%d of 60 variants", len(few))
	}
	values := map[string]bool{}
	chosen := rehearsed(slots)
	for _, slot := range chosen {
		values[slot.Matrix["dataset.recordsize"]], values[slot.Matrix["dataset.sync"]] = true, true
	}
	if len(values) != 18 || len(chosen) < 13 || len(chosen) > 18 {
		t.Errorf("%d runs with %d of 18 values", len(chosen), len(values))
	}
}
