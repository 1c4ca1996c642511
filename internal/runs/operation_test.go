package runs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storagebench/storagebench/internal/naming"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
	"github.com/storagebench/storagebench/internal/results"
)

func operateRun(action v1alpha1.PoolAction) *v1alpha1.BenchmarkRun {
	run := fillRun()
	run.Spec.Target = v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Volumes: []v1alpha1.AdditionalVolume{{Name: "log"}}}}
	run.Spec.Phases[0].Fill, run.Spec.Phases[0].Operate = nil, &v1alpha1.OperatePhase{PoolAction: action}
	return run
}

func operateOperation(run *v1alpha1.BenchmarkRun) *v1alpha1.PoolOperation {
	return PhaseOperation(State{Run: run}, 0)
}

func TestOperationOfAPhase(t *testing.T) {
	run := operateRun(v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "data", ToVolume: "log", To: "copy"}})
	operation := operateOperation(run)
	if operation.Spec.Pool != naming.RunPoolName(run, "data") || operation.Spec.Action.Replicate.ToPool != naming.RunPoolName(run, "log") ||
		operation.Spec.NodeName != "n1" {
		t.Errorf("operation %+v", operation.Spec)
	}
	if operation.Spec.Action.Replicate.ToVolume != "" {
		t.Error("the operation names a volume, which only phases know")
	}
	if run.Spec.Phases[0].Operate.Replicate.ToVolume != "log" {
		t.Error("the run was changed")
	}
	if operation.Labels[v1alpha1.LabelRunUID] != "run-uid" || operation.Labels[v1alpha1.LabelNamespace] != "lab" || operation.Labels[v1alpha1.LabelPhase] != "fill" {
		t.Errorf("labels %v", operation.Labels)
	}
	// A run that an earlier manager created may use a name that is not one of its volumes.
	run.Spec.Phases[0].Operate.Replicate.ToVolume = "bench0"
	if got := operateOperation(run).Spec.Action.Replicate.ToPool; got != naming.RunPoolName(run, "bench0") {
		t.Errorf("another user's pool %s is named", got)
	}
	run.Spec.Phases[0].Volume = "log"
	if got := operateOperation(run).Spec.Pool; got != naming.RunPoolName(run, "log") {
		t.Errorf("a phase on volume log works on %s", got)
	}
	run.Spec.Target.ZFS.Volumes[0].PoolOf, run.Spec.Phases[0].Operate.Replicate.Dataset = "data", "log"
	if got := operateOperation(run).Spec; got.Pool != naming.RunPoolName(run, "data") || got.Action.Replicate.Dataset != "log" {
		t.Errorf("a phase on volume log, which lies on the pool of data, works on %s of %s", got.Action.Replicate.Dataset, got.Pool)
	}
}

// TestOperationPlaysItsPhase follows the operation of a phase from its creation to its outcome.
func TestOperationPlaysItsPhase(t *testing.T) {
	run := operateRun(v1alpha1.PoolAction{LayoutScore: &v1alpha1.LayoutScoreAction{Dataset: "data"}})
	operation := operateOperation(run)
	operation.UID, operation.CreationTimestamp = "op", metav1.NewTime(time.Unix(1000, 0))
	look := func() PhaseState {
		t.Helper()
		var state PhaseState
		if err := state.ExecuteByOperation(run, run.Spec.Phases[0], operation); err != nil {
			t.Fatal(err)
		}
		return state
	}
	if state := look(); !state.Operation || !state.Executor.Exists || state.Executor.UID != "op" || state.Pod.Started != nil || state.Received != nil {
		t.Errorf("made: %+v", state)
	}
	kstatus.SetProgressing(&operation.Status.Conditions, 1, v1alpha1.ReasonOperationRunning, "at work")
	operation.Status.StartedAt = &metav1.Time{Time: time.Unix(1010, 0)}
	if state := look(); state.Pod.Started == nil || state.Executor.Message != "Running: at work" || state.Received != nil {
		t.Errorf("begun: %+v", state)
	}
	operation.Status.Outcome, operation.Status.FinishedAt = v1alpha1.OutcomeSucceeded, &metav1.Time{Time: time.Unix(1040, 0)}
	operation.Status.Metrics = []v1alpha1.OperationMetric{{Name: "layoutScorePartsPerMillion", Value: 970_123}, {Name: "segments", Value: 3},
		{Name: "copiedBytes", Value: 5}, {Name: "sentBytes", Value: -1}, {Name: "durationSeconds", Value: 30}}
	state := look()
	want := map[string]int64{"layoutScorePartsPerMillion": 970_123, "copiedBytes": 5, "durationNanoseconds": int64(30 * time.Second)}
	if diff := cmp.Diff(want, state.Received.Metrics); diff != "" {
		t.Errorf("metrics (-want +got)\n%s", diff)
	}
	if err := state.Received.Validate(); err != nil || state.Received.Outcome != results.OutcomeValid ||
		state.Received.Kind != results.KindOperate {
		t.Errorf("document %+v: %v", state.Received, err)
	}
	if _, _, _, err := results.StoredPhase(state.ReceivedBytes, state.ReceivedDigest); err != nil {
		t.Error(err)
	}
	operation.Status.Metrics = nil
	for name, c := range map[string]struct {
		tells   int64
		seconds int
		want    time.Duration
	}{
		"as ZFS tells it":       {27, 30, 27 * time.Second},
		"less than it can tell": {0, 1, 0},
		"not told":              {-1, 60, 0},
		"ended at once":         {-1, 0, 0},
	} {
		operation.Status.FinishedAt = &metav1.Time{Time: operation.Status.StartedAt.Add(time.Duration(c.seconds) * time.Second)}
		operation.Status.Metrics = []v1alpha1.OperationMetric{{Name: "durationSeconds", Value: c.tells}}
		got, known := look().Received.Metrics["durationNanoseconds"]
		if time.Duration(got) != c.want || known != (c.want > 0) {
			t.Errorf("%s: %d, %v", name, got, known)
		}
	}
	operation.Status.Metrics = []v1alpha1.OperationMetric{{Name: "durationNanoseconds", Value: 40e6}, {Name: "commandNanoseconds", Value: 30e6}}
	if got := look().Received.Metrics; got["durationNanoseconds"] != 40e6 || got["commandNanoseconds"] != 30e6 {
		t.Errorf("as measured: %v", got)
	}
	for _, outcome := range []string{v1alpha1.OutcomeFailed, v1alpha1.OutcomeCancelled} {
		operation.Status.Outcome = outcome
		if state := look(); state.Received.Outcome != results.OutcomeInvalid || state.Received.Validate() != nil || !state.Executor.Failed {
			t.Errorf("%s: %+v", outcome, state.Received)
		}
	}
}

// TestDurationOfAnInterruptedOperation: if the agent died after its command, it measured nothing and was away for most of the minute, so
// the duration is unknown. The same is true if another agent saw the end.
func TestDurationOfAnInterruptedOperation(t *testing.T) {
	for name, c := range map[string]struct {
		action   v1alpha1.PoolAction
		measured int64
		want     time.Duration
	}{
		"a snapshot":          {v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{}}, 0, 0},
		"a clone":             {v1alpha1.PoolAction{Clone: &v1alpha1.CloneAction{}}, 0, 0},
		"a copy":              {v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{}}, 0, 0},
		"a measured snapshot": {v1alpha1.PoolAction{Snapshot: &v1alpha1.SnapshotAction{}}, 40e6, 40 * time.Millisecond},
		"what ends by itself": {v1alpha1.PoolAction{Trim: &v1alpha1.TrimAction{}}, 0, 0},
	} {
		run := operateRun(c.action)
		operation := operateOperation(run)
		operation.UID, operation.CreationTimestamp = "op", metav1.NewTime(time.Unix(1000, 0))
		operation.Status.Outcome, operation.Status.StartedAt = v1alpha1.OutcomeSucceeded, &metav1.Time{Time: time.Unix(1010, 0)}
		operation.Status.FinishedAt = &metav1.Time{Time: time.Unix(1070, 0)}
		if c.measured > 0 {
			operation.Status.Metrics = []v1alpha1.OperationMetric{{Name: "durationNanoseconds", Value: c.measured}}
		}
		var state PhaseState
		if err := state.ExecuteByOperation(run, run.Spec.Phases[0], operation); err != nil {
			t.Fatal(err)
		}
		got, known := state.Received.Metrics["durationNanoseconds"]
		if time.Duration(got) != c.want || known != (c.want > 0) {
			t.Errorf("%s: %s, told: %v", name, time.Duration(got), known)
		}
	}
}

// TestOperationNamesTheDataset: a driver chooses the name of the dataset that holds a volume, and the operations of phases use that name.
func TestOperationNamesTheDataset(t *testing.T) {
	run := operateRun(v1alpha1.PoolAction{Copy: &v1alpha1.CopyAction{Dataset: "data", To: "copy"}})
	pool := naming.RunPoolName(run, "data")
	for dataset, want := range map[string]v1alpha1.DatasetPath{pool + "/parent/pvc-1": "parent/pvc-1", pool + "/data": "data", "": "data"} {
		state := State{Run: run, Pools: Pools{Datasets: map[string]string{"data": dataset, "log": naming.RunPoolName(run, "log") + "/log"}}}
		if got := PhaseOperation(state, 0).Spec.Action.Copy; got.Dataset != want || got.To != "copy" {
			t.Errorf("volume data is in %q: the copy is of %s to %s", dataset, got.Dataset, got.To)
		}
	}
	run.Spec.Phases[0].Volume = "log" // the dataset data on the pool of log is not the volume data
	state := State{Run: run, Pools: Pools{Datasets: map[string]string{"data": pool + "/parent/pvc-1"}}}
	if got := PhaseOperation(state, 0).Spec.Action.Copy.Dataset; got != "data" {
		t.Errorf("an operation on another pool was changed: %s", got)
	}
}

// TestWhereACopyGoes: a copy goes only to pools of its run, whatever names the phase uses.
func TestWhereACopyGoes(t *testing.T) {
	datasets := map[string]string{"data": "sb-1/data", "log": "sb-2/parent/pvc-7"}
	for name, c := range map[string]struct {
		action   v1alpha1.CopyAction
		toVolume string
		to       v1alpha1.DatasetPath
	}{
		"within":              {v1alpha1.CopyAction{Dataset: "data", To: "copy"}, "", "copy"},
		"to its own volume":   {v1alpha1.CopyAction{Dataset: "x", ToVolume: "data", To: "data"}, "", "data"},
		"to another":          {v1alpha1.CopyAction{Dataset: "data", ToVolume: "log", To: "copy"}, "log", "copy"},
		"onto a driver's":     {v1alpha1.CopyAction{Dataset: "data", ToVolume: "log", To: "log"}, "log", "parent/pvc-7"},
		"to one beside it":    {v1alpha1.CopyAction{Dataset: "data", ToVolume: "wal", To: "wal"}, "", "wal"},
		"to one beside that":  {v1alpha1.CopyAction{Dataset: "data", ToVolume: "old", To: "old"}, "log", "old"},
		"to a pool of others": {v1alpha1.CopyAction{Dataset: "data", ToPool: "bench0", To: "copy"}, "", "copy"},
	} {
		run := operateRun(v1alpha1.PoolAction{Copy: &c.action})
		run.Spec.Target.ZFS.Volumes = append(run.Spec.Target.ZFS.Volumes, v1alpha1.AdditionalVolume{Name: "wal", PoolOf: "data"},
			v1alpha1.AdditionalVolume{Name: "old", PoolOf: "log"})
		state := State{Run: run}
		state.Pools.Datasets = datasets
		got, pool := PhaseOperation(state, 0).Spec.Action.Copy, ""
		if c.toVolume != "" {
			pool = naming.RunPoolName(run, c.toVolume)
		}
		if got.ToPool != pool || got.ToVolume != "" || got.To != c.to {
			t.Errorf("%s: it goes to %+v, want dataset %s on pool %q", name, got, c.to, pool)
		}
	}
}
