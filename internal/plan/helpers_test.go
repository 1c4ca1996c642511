package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
)

// noon is when most tests take place.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const ownUID = "11111111-2222-3333-4444-555555555555"

func after(d time.Duration) *time.Time {
	at := noon.Add(d)
	return &at
}

func stamp(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: noon.Add(d)}
}

func lasting(d time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
}

func testPhase(name string) v1alpha1.Phase {
	return v1alpha1.Phase{
		Name: v1alpha1.PhaseName(name), Volume: "data", Deadline: lasting(time.Hour), StartDeadline: lasting(10 * time.Minute),
		Fill: &v1alpha1.FillPhase{To: "80%"},
	}
}

func testTarget() v1alpha1.Target {
	return v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{
		Name: "fast", Size: v1alpha1.Size{Quantity: resource.MustParse("1Gi")}, VolumeMode: "Filesystem", AccessMode: "ReadWriteOnce"}}
}

// testBenchmark has two variants, two repetitions and two phases.
func testBenchmark() *v1alpha1.StorageBenchmark {
	return &v1alpha1.StorageBenchmark{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ageing", Namespace: "lab", UID: ownUID, Generation: 1, Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.StorageBenchmarkSpec{
			Target: testTarget(), Variants: []v1alpha1.Variant{{Name: "a"}, {Name: "b"}},
			Phases:      []v1alpha1.Phase{testPhase("fill"), testPhase("scan")},
			Repetitions: 2, Order: v1alpha1.OrderInterleaved, MaxAttempts: 2, Retain: v1alpha1.RetainNever,
		},
	}
}

// testState is a benchmark that is about to make its first run.
func testState() BenchmarkState {
	benchmark := testBenchmark()
	benchmark.Status.NodeName = "n1"
	return settle(BenchmarkState{
		Now: noon, Benchmark: benchmark,
		Nodes:   []NodeState{{Name: "n1"}},
		Classes: []ClassState{{Name: "fast", Default: true}, {Name: "slow"}},
		Leases:  []LeaseState{{Node: "n1", Holder: ownUID, HolderName: "lab/ageing"}},
	})
}

// settle derives experiment, slots and status from the spec.
func settle(state BenchmarkState) BenchmarkState {
	state.ScheduledTime = ScheduledTime(state.Benchmark, state.Runs, state.Results, state.Now)
	state.Experiment = ExperimentAt(state.Benchmark, state.ScheduledTime)
	state.Slots, state.SpecError = nil, nil
	slots, err := Expand(&state.Benchmark.Spec, Seed(state.Benchmark))
	if err != nil {
		state.SpecError = err.(*SpecError) //nolint:errorlint // Expand returns nothing else
	}
	state.Slots = slots
	state.Benchmark.Status.Experiment = state.Experiment
	return state
}

// makeRun is the run for a slot, as the controller makes it.
func makeRun(state BenchmarkState, slot Slot, attempt int32) v1alpha1.BenchmarkRun {
	target := ResolveTarget(slot.Target, "n1", "fast", "")
	name := RunName(state.Benchmark.Name, state.Experiment, slot.Index, attempt)
	return v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: types.UID("uid-" + name),
			Annotations:       map[string]string{v1alpha1.AnnotationScheduledTime: TimeText(state.ScheduledTime)},
			CreationTimestamp: metav1.Time{Time: noon.Add(-time.Hour)}, Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.BenchmarkRunSpec{
			Benchmark: state.Benchmark.Name, Experiment: state.Experiment, Index: slot.Index, Variant: slot.Variant,
			Repetition: slot.Repetition, Attempt: attempt, Seed: slot.Seed, NodeName: "n1", RunnerImage: "runner:1",
			Target: target, Phases: slot.Phases, Retain: state.Benchmark.Spec.Retain,
		},
	}
}

// makeMember is a run of a group, on one of the nodes.
func makeMember(state BenchmarkState, slot Slot, attempt, member int32, nodes ...string) v1alpha1.BenchmarkRun {
	run := makeRun(state, slot, attempt)
	if run.Spec.Group = GroupOf(run.Name, member, nodes); run.Spec.Group != nil {
		run.Name = MemberName(run.Name, member)
		run.UID = types.UID("uid-" + run.Name)
	}
	run.Spec.NodeName = nodes[member]
	return run
}

// onNodes asks for so many nodes at once.
func onNodes(benchmark *v1alpha1.StorageBenchmark, count int32) {
	benchmark.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
		Nodes: v1alpha1.NodeChoice{MatchLabels: map[string]string{"lab": "true"}, Count: count}, Reset: v1alpha1.ResetPool,
		Pool: v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}}}}
}

// record writes the outcome of a run into its status; settled adds that it has been cleaned up after.
func record(run *v1alpha1.BenchmarkRun, ending Ending, settled bool) {
	valid := metav1.ConditionFalse
	if ending.Valid {
		valid = metav1.ConditionTrue
	}
	run.Status.Retryable = ending.Retryable
	kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionComplete, metav1.ConditionTrue, ending.Reason, ending.Message)
	kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionValid, valid, ending.Reason, ending.Message)
	if settled {
		kstatus.Done(&run.Status.Conditions, 1, ending.Reason, ending.Message)
	} else {
		kstatus.Progress(&run.Status.Conditions, 1, v1alpha1.ReasonTearingDown, "cleaning up")
	}
}

var (
	validEnding   = Ending{Valid: true, Reason: v1alpha1.ReasonMeasured, Message: "measured"}
	invalidEnding = Ending{Reason: v1alpha1.ReasonPodEvicted, Message: "evicted", Retryable: true}
	uselessEnding = Ending{Reason: v1alpha1.ReasonImagePullFailed, Message: "no such image"}
)

// endedRuns adds ended and settled runs for slots from..to-1.
func endedRuns(state BenchmarkState, from, to int, ending Ending) BenchmarkState {
	for _, slot := range state.Slots[from:to] {
		run := makeRun(state, slot, 1)
		record(&run, ending, true)
		state.Runs = append(state.Runs, run)
	}
	return state
}

// finished is a benchmark whose results are written.
func finished() BenchmarkState {
	state := testState()
	state = endedRuns(state, 0, len(state.Slots), validEnding)
	state.Benchmark.Status.FinishedAt = stamp(0)
	state.Results = []StoredExperiment{{
		ConfigMap: ResultsName(state.Benchmark.Name, state.Experiment), Experiment: state.Experiment,
		Fingerprint: fingerprint(state), Verdict: "Passed", StoredAt: noon}}
	state.History = HistoryState{Exists: true, Folded: []string{FoldKey(state.Results[0])}}
	return state
}

func kinds(actions []BenchmarkAction) []string {
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

func runKinds(actions []RunAction) []string {
	names := []string{}
	for _, action := range actions {
		name := string(action.Kind)
		switch action.Kind {
		case StartPhase, StoreResult:
			name = fmt.Sprintf("%s %d", name, action.Phase)
		case StartCompanion, EndCompanion:
			name = fmt.Sprintf("%s %d %s", name, action.Phase, action.Companion)
		}
		names = append(names, name)
	}
	return names
}

func validResult(name string) *StoredResult {
	return &StoredResult{ConfigMap: name, Digest: "sha256:" + name, Outcome: results.OutcomeValid, StoredAt: noon}
}
