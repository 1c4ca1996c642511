package benchmark

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/experiment"
)

func TestImage(t *testing.T) {
	phase := func(load v1alpha1.Workload) v1alpha1.Phase {
		return v1alpha1.Phase{Measure: &v1alpha1.MeasurePhase{Workload: load}}
	}
	fill := v1alpha1.Phase{Fill: &v1alpha1.FillPhase{To: "80%"}}
	scan, postgres := phase(v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}),
		phase(v1alpha1.Workload{Postgres: &v1alpha1.PostgresWorkload{}})
	slots := func(phases ...v1alpha1.Phase) []experiment.Slot {
		return []experiment.Slot{{Phases: []v1alpha1.Phase{fill}}, {Phases: phases}}
	}
	earlier := v1alpha1.BenchmarkRun{Spec: v1alpha1.BenchmarkRunSpec{Experiment: "new", RunnerImage: "runner:0"}}
	for name, test := range map[string]struct {
		slots    []experiment.Slot
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
		observed := &observation{}
		observed.Experiment, observed.Slots, observed.Runs = "new", test.slots, test.runs
		if got := (&Reconciler{RunnerImage: "runner:1", PostgresImage: test.postgres}).image(observed); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
