package runs

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

// The limits of the interval between two samples of a pool's counters. Each sample runs some commands on the node, but only the work
// between two samples is known.
const (
	observeShortest = 2 * time.Second
	observeLongest  = 5 * time.Second
)

// observeInterval is the sampling interval for a phase. It is shorter for a short measurement, and shortest for a scan, whose duration is
// unknown.
func observeInterval(phase v1alpha1.Phase) time.Duration {
	traits, measures := workload.PhaseTraits(&phase)
	switch {
	case !measures:
		return observeLongest
	case traits.Duration == 0:
		return observeShortest
	}
	return min(max(traits.Duration/10, observeShortest), observeLongest)
}

// operationSlack is how much longer than its phase a companion may take.
const operationSlack = 10 * time.Minute

// PhaseOperation is the operation of an operate phase.
func PhaseOperation(state State, i int) *v1alpha1.PoolOperation {
	phase := state.Run.Spec.Phases[i]
	return operationOn(state, phase, naming.RunOperationName(state.Run, phase), phase.Operate.PoolAction, phase.Deadline)
}

// CompanionOperation is the operation of a companion of a phase.
func CompanionOperation(state State, i int, companion Companion) *v1alpha1.PoolOperation {
	phase := state.Run.Spec.Phases[i]
	action := v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{Interval: lasting(observeInterval(phase))}}
	on := phase
	if other, _ := companion.Observes(); other != "" {
		on.Volume = other
	}
	if companion == Beside {
		action = *phase.Measure.Operate
	}
	if companion == Emptying {
		action = v1alpha1.PoolAction{ExportImport: &v1alpha1.ExportImportAction{}}
	}
	return operationOn(state, on, CompanionName(state.Run, phase, companion), action,
		lasting(phase.StartDeadline.Duration.Duration+phase.Deadline.Duration.Duration+operationSlack))
}

// ParameterOperations keep the module parameters of a run while its phases execute.
func ParameterOperations(run *v1alpha1.BenchmarkRun) []*v1alpha1.PoolOperation {
	patience := operationSlack
	for _, phase := range run.Spec.Phases {
		patience += phase.StartDeadline.Duration.Duration + phase.Deadline.Duration.Duration
	}
	var operations []*v1alpha1.PoolOperation
	for _, name := range RunParameters(run) {
		operations = append(operations, &v1alpha1.PoolOperation{
			ObjectMeta: metav1.ObjectMeta{Name: ParameterOperationName(run, name), Labels: ClusterLabels(run)},
			Spec: v1alpha1.PoolOperationSpec{
				NodeName: run.Spec.NodeName, Pool: naming.RunPoolName(run, naming.VolumeData),
				Action: v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: name,
					Value: run.Spec.Target.ZFS.ModuleParameters[name]}},
				Deadline: lasting(patience),
			},
		})
	}
	return operations
}

func lasting(length time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: length}}
}

// operationOn is an operation on the pool of a phase. The action of a phase names volumes of the target. Any such name is mapped to a pool
// of this run, never to another user's pool.
func operationOn(state State, phase v1alpha1.Phase, name string, action v1alpha1.PoolAction,
	deadline *v1alpha1.Duration) *v1alpha1.PoolOperation {
	run := state.Run
	action = *action.DeepCopy()
	on := PhaseVolume(run, phase).PoolOf
	nameMade(&action)
	if to := action.Replicate; to != nil {
		to.ToPool, to.ToVolume = naming.RunPoolName(run, HomeOf(run, to.ToVolume)), ""
	}
	if to := action.Copy; to != nil {
		copyTo(state, to, on)
	}
	labels := ClusterLabels(run)
	labels[v1alpha1.LabelPhase] = string(phase.Name)
	for _, one := range volume.On(volume.RunVolumes(run), on) {
		nameDataset(&action, one.Name, state.Pools.Datasets[one.Name])
	}
	return &v1alpha1.PoolOperation{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: v1alpha1.PoolOperationSpec{NodeName: run.Spec.NodeName, Pool: naming.RunPoolName(run, on), Action: action,
			Deadline: deadline},
	}
}

// nameMade sets the dataset of the volume that an action makes: it has the name of the volume.
func nameMade(action *v1alpha1.PoolAction) {
	name, _, _ := operate.As(action)
	if name == "" {
		return
	}
	path := naming.RunDataset(string(name))
	switch {
	case action.Clone != nil:
		action.Clone.To, action.Clone.As = path, ""
	case action.Replicate != nil:
		action.Replicate.To, action.Replicate.As = path, ""
	case action.Copy != nil:
		action.Copy.To, action.Copy.As = path, ""
	}
}

// copyTo sets the pool and the dataset that a copy writes to. Without a target volume, or with one on the pool of its phase, the copy stays
// within the pool.
func copyTo(state State, to *v1alpha1.CopyAction, on string) {
	pool := on
	if to.ToVolume != "" {
		pool = HomeOf(state.Run, to.ToVolume)
	}
	to.ToVolume, to.ToPool = "", ""
	if pool != on {
		to.ToPool = naming.RunPoolName(state.Run, pool)
	}
	for _, one := range volume.On(volume.RunVolumes(state.Run), pool) {
		if _, path, made := strings.Cut(state.Pools.Datasets[one.Name], "/"); made && to.To == naming.RunDataset(one.Name) {
			to.To = v1alpha1.DatasetPath(path)
			return
		}
	}
}

// nameDataset replaces the default dataset of a volume in an action by the path of the dataset that really holds it: a driver chooses its
// own name. A clone or a destruction keeps the default name, and so never reaches a driver's dataset. Validation rejects both, too.
func nameDataset(action *v1alpha1.PoolAction, volume, dataset string) {
	_, path, made := strings.Cut(dataset, "/")
	if !made || action.Clone != nil || action.DestroyDataset != nil {
		return
	}
	if named := operate.Dataset(action); named != nil && *named == naming.RunDataset(volume) {
		*named = v1alpha1.DatasetPath(path)
	}
}

// PhaseVolume is the volume of a phase.
func PhaseVolume(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase) volume.RunVolume {
	return named(run, phase.Volume)
}

// HomeOf is the volume that owns the pool of the named volume. An empty name means the first volume. A name that is not a volume of the run
// yields a pool of that name in this run, which belongs to no other run or user.
func HomeOf(run *v1alpha1.BenchmarkRun, name v1alpha1.VolumeName) string {
	if found := named(run, name); name == "" || found.Name == string(name) {
		return found.PoolOf
	}
	return string(name)
}

// named returns the volume of a run with the given name, or its first volume if there is none.
func named(run *v1alpha1.BenchmarkRun, name v1alpha1.VolumeName) volume.RunVolume {
	volumes := volume.RunVolumes(run)
	for _, wanted := range volumes {
		if wanted.Name == string(name) {
			return wanted
		}
	}
	return volumes[0]
}

// operationDocument is the result of an operate phase, in the format of the runner.
func operationDocument(run *v1alpha1.BenchmarkRun, phase v1alpha1.Phase, operation *v1alpha1.PoolOperation) results.PhaseDocument {
	status := operation.Status
	document := results.PhaseDocument{
		Version: results.PhaseVersion, Run: results.RunIdentity{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)},
		Phase: string(phase.Name), Kind: results.KindOperate, Outcome: results.OutcomeValid,
		StartedAt: operation.CreationTimestamp.UTC(), FinishedAt: operation.CreationTimestamp.UTC(),
		Metrics:     operationMetrics(status.Metrics),
		Environment: map[string]string{"operation": operate.Name(operation.Spec.Action), "operation.pool": operation.Spec.Pool},
	}
	if status.StartedAt != nil {
		document.StartedAt, document.FinishedAt = status.StartedAt.UTC(), status.StartedAt.UTC()
	}
	if status.FinishedAt != nil && status.FinishedAt.After(document.StartedAt) {
		document.FinishedAt = status.FinishedAt.UTC()
	}
	if took := tookOf(operation); took > 0 {
		document.Metrics["durationNanoseconds"] = int64(took)
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		document.Reason, document.Message = ready.Reason, ready.Message
	}
	if status.Outcome != v1alpha1.OutcomeSucceeded {
		document.Outcome = results.OutcomeInvalid
		if document.Reason == "" {
			document.Reason = v1alpha1.ReasonActionFailed
		}
	}
	return document
}

// tookOf returns how long an operation took, or 0 if its agent does not tell. The recorded times do not tell it: the recorded end is when
// an agent noticed it, and there may have been no agent before.
func tookOf(operation *v1alpha1.PoolOperation) time.Duration {
	action := operation.Spec.Action
	timed := action.Copy != nil || action.Snapshot != nil || action.Clone != nil
	if took, measured := operate.Measured(operation); measured || timed {
		return took // if nothing was measured, the agent was interrupted, and the operation may not have run all the time
	}
	took, _ := operate.Duration(operation)
	return took
}

// operationMetrics are the metrics that gates and reports use.
func operationMetrics(measured []v1alpha1.OperationMetric) map[string]int64 {
	metrics := map[string]int64{}
	for _, metric := range measured {
		if _, known := results.LookupMetric(metric.Name); known && metric.Value >= 0 {
			metrics[metric.Name] = metric.Value
		}
	}
	return metrics
}
