package experiment

import (
	"time"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/runs/runstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// testState is the state of a benchmark that is about to create its first run.
func testState() State {
	benchmark := runstest.Benchmark()
	benchmark.Status.NodeName = "n1"
	return settle(State{
		Now: runstest.Noon, Benchmark: benchmark,
		Nodes:   []NodeState{{Name: "n1"}},
		Classes: []ClassState{{Name: "fast", Default: true}, {Name: "slow"}},
		Leases:  []LeaseState{{Node: "n1", Holder: runstest.OwnUID, HolderName: "lab/ageing"}},
	})
}

// settle derives experiment, slots and status from the spec.
func settle(state State) State {
	state.ScheduledTime = ScheduledTime(state.Benchmark, state.Runs, state.Results, state.Now)
	state.Experiment, state.Lineage = design.IDAt(state.Benchmark, state.ScheduledTime), lineageOf(state.Benchmark, "")
	state.Slots, state.SpecError = nil, nil
	slots, err := design.SlotsAt(state.Benchmark, state.ScheduledTime)
	state.SpecError = design.Combined(err)
	state.Slots = slots
	state.Benchmark.Status.Experiment = state.Experiment
	return state
}

// makeRun returns the run for a slot, as the controller creates it.
func makeRun(state State, slot design.Slot, attempt int32) v1alpha1.BenchmarkRun {
	target := design.ResolveTarget(slot.Target, "n1", "fast", "")
	name := naming.RunName(state.Benchmark.Name, state.Experiment, slot.Index, attempt)
	return v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: types.UID("uid-" + name),
			Annotations:       map[string]string{v1alpha1.AnnotationScheduledTime: design.TimeText(state.ScheduledTime)},
			CreationTimestamp: metav1.Time{Time: runstest.Noon.Add(-time.Hour)}, Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.BenchmarkRunSpec{
			Benchmark: state.Benchmark.Name, Experiment: state.Experiment, Index: slot.Index, Variant: slot.Variant,
			Repetition: slot.Repetition, Attempt: attempt, Seed: slot.Seed, NodeName: "n1", RunnerImage: "runner:1",
			Target: target, Phases: slot.Phases, Retain: state.Benchmark.Spec.Retain,
		},
	}
}

// makeMember is a run of a group, on one of the nodes.
func makeMember(state State, slot design.Slot, attempt, member int32, nodes ...string) v1alpha1.BenchmarkRun {
	run := makeRun(state, slot, attempt)
	if run.Spec.Group = GroupOf(run.Name, member, nodes); run.Spec.Group != nil {
		run.Name = naming.MemberName(run.Name, member)
		run.UID = types.UID("uid-" + run.Name)
	}
	run.Spec.NodeName = nodes[member]
	return run
}

// onNodes requests count nodes at once.
func onNodes(benchmark *v1alpha1.StorageBenchmark, count int32) {
	benchmark.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
		Nodes: v1alpha1.NodeChoice{MatchLabels: map[string]string{"lab": "true"}, Count: count}, Reset: v1alpha1.ResetPool,
		Pool: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}}}}
}

// endedRuns adds ended and settled runs for slots from..to-1.
func endedRuns(state State, from, to int, ending runs.Ending) State {
	for _, slot := range state.Slots[from:to] {
		run := makeRun(state, slot, 1)
		runstest.Record(&run, ending, true)
		state.Runs = append(state.Runs, run)
	}
	return state
}

// finished is the state of a benchmark whose results are written.
func finished() State {
	state := testState()
	state = endedRuns(state, 0, len(state.Slots), runstest.ValidEnding)
	state.Benchmark.Status.FinishedAt = runstest.Stamp(0)
	state.Results = []StoredExperiment{{
		ConfigMap: naming.ResultsName(state.Benchmark.Name, state.Experiment), Experiment: state.Experiment,
		Fingerprint: fingerprint(state), Verdict: "Passed", StoredAt: runstest.Noon}}
	state.History = HistoryState{Exists: true, Folded: []string{FoldKey(state.Results[0])}}
	return state
}

func kinds(actions []Action) []string {
	names := []string{}
	for _, action := range actions {
		name := string(action.Kind)
		if action.Run != "" {
			name += " " + action.Run
		}
		names = append(names, name)
	}
	return names
}
