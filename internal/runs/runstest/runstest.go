// Package runstest provides runs for tests, and checks the invariants of every decision about a run.
package runstest

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
)

// Benchmark has two variants, two repetitions and two phases.
func Benchmark() *v1alpha1.StorageBenchmark {
	return &v1alpha1.StorageBenchmark{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ageing", Namespace: "lab", UID: OwnUID, Generation: 1, Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.StorageBenchmarkSpec{
			Target: Target(), Variants: []v1alpha1.Variant{{Name: "a"}, {Name: "b"}},
			Phases:      []v1alpha1.Phase{Phase("fill"), Phase("scan")},
			Repetitions: 2, Order: v1alpha1.OrderInterleaved, MaxAttempts: 2, Retain: v1alpha1.RetainNever,
		},
	}
}

// ZFSSpec is a spec with one variant on a pool of one disk, which it fills and scans.
func ZFSSpec() *v1alpha1.StorageBenchmarkSpec {
	return &v1alpha1.StorageBenchmarkSpec{
		Repetitions: 1,
		Target: v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{
			Pool:    v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Type: "stripe", Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/a"}}}},
			Dataset: &v1alpha1.DatasetTemplate{Type: "Filesystem"},
		}},
		Phases: []v1alpha1.Phase{
			{Name: "fill", Fill: &v1alpha1.FillPhase{To: "50%"}},
			{Name: "scan", Measure: &v1alpha1.MeasurePhase{Workload: v1alpha1.Workload{Scan: &v1alpha1.ScanWorkload{}}}},
		},
	}
}

// Operation returns an operation with the status that its agent has written. Times are relative to noon. Zero means not yet.
func Operation(action v1alpha1.PoolAction, outcome string, started, finished time.Duration) *v1alpha1.PoolOperation {
	operation := &v1alpha1.PoolOperation{Spec: v1alpha1.PoolOperationSpec{NodeName: "n1", Action: action}}
	operation.Status.Outcome = outcome
	if started != 0 {
		operation.Status.StartedAt, operation.Status.Progress = Stamp(started), &v1alpha1.OperationProgress{}
	}
	if finished != 0 {
		operation.Status.FinishedAt = Stamp(finished)
	}
	return operation
}

// Noon is when most tests take place.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// OwnUID is the UID of the benchmark that the runs belong to.
const OwnUID = "11111111-2222-3333-4444-555555555555"

// After returns the time that is d after noon.
func After(d time.Duration) *time.Time {
	return new(Noon.Add(d))
}

// Stamp is After as a metav1.Time.
func Stamp(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: Noon.Add(d)}
}

// Lasting is a duration of the API.
func Lasting(d time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: d}}
}

// Phase is a phase that fills the volume.
func Phase(name string) v1alpha1.Phase {
	return v1alpha1.Phase{
		Name: v1alpha1.PhaseName(name), Volume: "data", Deadline: Lasting(time.Hour), StartDeadline: Lasting(10 * time.Minute),
		Fill: &v1alpha1.FillPhase{To: "80%"},
	}
}

// Target is a claim on a StorageClass.
func Target() v1alpha1.Target {
	return v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{
		Name: "fast", Size: v1alpha1.Size{Quantity: resource.MustParse("1Gi")}, VolumeMode: "Filesystem", AccessMode: "ReadWriteOnce"}}
}

// Record writes the outcome of a run into its status. settled adds that it has been torn down.
func Record(run *v1alpha1.BenchmarkRun, ending runs.Ending, settled bool) {
	valid := metav1.ConditionFalse
	if ending.Valid {
		valid = metav1.ConditionTrue
	}
	run.Status.Retryable = ending.Retryable
	kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionComplete, metav1.ConditionTrue, ending.Reason, ending.Message)
	kstatus.Set(&run.Status.Conditions, 1, v1alpha1.ConditionValid, valid, ending.Reason, ending.Message)
	if settled {
		kstatus.SetReady(&run.Status.Conditions, 1, ending.Reason, ending.Message)
	} else {
		kstatus.SetProgressing(&run.Status.Conditions, 1, v1alpha1.ReasonTearingDown, "cleaning up")
	}
}

// The possible endings of a run: with a result, with a temporary problem, and with a permanent problem.
var (
	ValidEnding   = runs.Ending{Valid: true, Reason: v1alpha1.ReasonMeasured, Message: "measured"}
	InvalidEnding = runs.Ending{Reason: v1alpha1.ReasonPodEvicted, Message: "evicted", Retryable: true}
	UselessEnding = runs.Ending{Reason: v1alpha1.ReasonImagePullFailed, Message: "no such image"}
)

// Kinds returns readable names of the actions.
func Kinds(actions []runs.Action) []string {
	names := []string{}
	for _, action := range actions {
		name := string(action.Kind)
		switch action.Kind {
		case runs.StartPhase, runs.StoreResult, runs.TellEnd:
			name = fmt.Sprintf("%s %d", name, action.Phase)
		case runs.StartCompanion, runs.EndCompanion:
			name = fmt.Sprintf("%s %d %s", name, action.Phase, action.Companion)
		}
		names = append(names, name)
	}
	return names
}

// Result is a result that is stored in a ConfigMap.
func Result(name string) *runs.StoredResult {
	return &runs.StoredResult{ConfigMap: name, Digest: "sha256:" + name, Outcome: results.OutcomeValid, StoredAt: Noon}
}

// Thief is the UID of another benchmark that has taken the node.
const Thief = "thief-uid"

// Problem returns the first violation of an invariant by a decision, or "" if there is none.
func Problem(state runs.State, decision runs.Decision) string {
	if len(decision.Actions) == 0 && (decision.Reason == "" || decision.Message == "") {
		return "nothing is said and nothing done"
	}
	jobs := len(state.Parameters)
	for _, phase := range state.Phases {
		if phase.Executor.Exists {
			jobs++
		}
		jobs += len(phase.Companions)
	}
	count := map[runs.ActionKind]int{}
	for _, action := range decision.Actions {
		count[action.Kind]++
		switch {
		case action.Kind == runs.StartPhase && (state.Phases[action.Phase].Executor.Exists || state.LeaseHolder != state.Owner ||
			state.LeaseHolder == ""):
			return "a phase is started twice, or without the node"
		case action.Kind == runs.StartPhase && len(runs.Companions(state.Run, state.Run.Spec.Phases[action.Phase])) > 0 &&
			(state.Phases[action.Phase].Companions[runs.Observation] == nil ||
				!runs.HasBegun(state.Phases[action.Phase].Companions[runs.Observation])):
			return "a phase is started unobserved"
		case action.Kind == runs.StartPhase && runs.Empties(state.Run, state.Run.Spec.Phases[action.Phase]) &&
			(state.Phases[action.Phase].Companions[runs.Emptying] == nil ||
				state.Phases[action.Phase].Companions[runs.Emptying].Status.Outcome != v1alpha1.OutcomeSucceeded):
			return "a phase is started before its caches are empty"
		case action.Kind == runs.StartCompanion && state.Phases[action.Phase].Companions[action.Companion] != nil:
			return "a companion is started twice"
		case action.Kind == runs.EndCompanion && (runs.HasEnded(state.Phases[action.Phase].Companions[action.Companion]) ||
			state.Phases[action.Phase].Companions[action.Companion].Spec.Cancel):
			return "a companion is ended that has ended"
		case action.Kind == runs.StartPhase && state.Claims.BindFirst &&
			(!state.Claims.Bound || len(state.Pools.Unread)+len(state.Pools.Differing) > 0):
			return "a phase is started on a volume that was not checked"
		case action.Kind == runs.CreateVolumes && (state.Claims.Exists && len(state.Unclaimed) == 0 || state.Claims.Foreign):
			return "a volume is made that there is"
		case action.Kind == runs.CreateVolumes && state.Pools.Needed && !state.Pools.Ready:
			return "a volume is made before its pool is ready"
		case action.Kind == runs.DeletePools && (jobs > 0 || state.Pods > 0 || state.Claims.Left()):
			return "pools are deleted under a volume"
		case action.Kind == runs.DeleteVolumes && (jobs > 0 || state.Pods > 0 || !state.Claims.Left()):
			return "the volume is deleted under a pod, or there is none"
		case action.Kind == runs.RemoveRunFinalizer && (jobs > 0 || state.Pods > 0 || state.Claims.Left() || state.Pools.Some ||
			state.Run.DeletionTimestamp.IsZero()):
			return "the finalizer is removed too early"
		case action.Kind == runs.StoreResult && (state.Phases[action.Phase].Stored != nil || state.Phases[action.Phase].Received == nil):
			return "a result is stored that is stored, or is not there"
		}
	}
	making, unmaking := count[runs.CreatePools]+count[runs.CreateVolumes]+count[runs.StartPhase]+count[runs.StoreResult],
		count[runs.DeleteJobsAndOperations]+count[runs.DeleteVolumes]+count[runs.DeletePools]+count[runs.RemoveRunFinalizer]
	switch {
	case count[runs.StartPhase] > 1 || count[runs.StoreResult] > 1 || count[runs.StartPhase]+count[runs.StoreResult] > 1:
		return "two phases at once"
	case making > 0 && unmaking > 0, making > 0 && decision.Ending != nil, unmaking > 1:
		return "making and unmaking in one decision"
	case decision.Settled && (decision.Ending == nil && state.Run.DeletionTimestamp.IsZero() || making > 0):
		return "settled without an end"
	case decision.Ending != nil && !decision.Ending.Valid && decision.Ending.Message == "":
		return "an ending without a message"
	}
	if decision.Ending != nil && decision.Ending.Valid && runs.RecordedEnding(state.Run) == nil {
		for _, phase := range state.Phases {
			if phase.Stored == nil || phase.Stored.Outcome != results.OutcomeValid {
				return "a run is valid without a valid result of every phase"
			}
		}
	}
	return ""
}

// Run is the first run of a benchmark with the phases fill and scan, as the controller creates it.
func Run() *v1alpha1.BenchmarkRun {
	const name = "ageing-0a1b2c3d-000"
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: "uid-" + name,
			CreationTimestamp: metav1.Time{Time: Noon.Add(-time.Hour)}, Finalizers: []string{v1alpha1.FinalizerTeardown}},
		Spec: v1alpha1.BenchmarkRunSpec{
			Benchmark: "ageing", Experiment: "0a1b2c3d", Variant: "a", Repetition: 1, Attempt: 1, Seed: 1, NodeName: "n1", RunnerImage: "runner:1",
			Target: Target(), Phases: []v1alpha1.Phase{Phase("fill"), Phase("scan")}, Retain: v1alpha1.RetainNever,
		},
	}
}

// Underway is a run whose first phase has been running since noon-10m. Its volume is bound and its benchmark holds the node.
func Underway() runs.State {
	run := Run()
	run.Status.Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", ExecutorUID: "job-0"}}
	timings := runs.DefaultTimings()
	timings.TeardownGrace = 0 // it has its own tests
	return runs.State{Now: Noon, Timings: timings, Run: run, Owner: OwnUID, LeaseHolder: OwnUID, LeaseHolderName: "lab/ageing",
		Claims: runs.Claims{Exists: true, Bound: true}, Pods: 1,
		Phases: []runs.PhaseState{{
			Executor: runs.ExecutorState{Exists: true, UID: "job-0", Created: Noon.Add(-11 * time.Minute)},
			Pod:      runs.PodState{Exists: true, Name: "pod", Started: After(-10 * time.Minute)},
		}, {}}}
}
