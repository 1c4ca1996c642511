package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/workload"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/results"
)

// The interval between two samples of a pool's counters. A sample costs some commands on the node, but only what lies between two
// samples is known.
const (
	observeShortest = 2 * time.Second
	observeLongest  = 5 * time.Second
)

// observeInterval is shorter for a short measurement. The duration of a scan is unknown.
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

// observeOperations reads the companions of the phases, and the operations that keep module parameters.
func (r *Reconciler) observeOperations(ctx context.Context, state *runs.State) error {
	if state.Run.Spec.Target.ZFS == nil {
		return nil
	}
	known, err := r.operations(ctx, state.Run)
	if err != nil {
		return err
	}
	find := func(name string, sure bool) (*v1alpha1.PoolOperation, error) {
		if known[name] != nil || !sure {
			return known[name], nil
		}
		return readOperation(ctx, r.Live, state.Run, name)
	}
	underway := len(state.Run.Status.Phases) > 0 && state.Run.DeletionTimestamp.IsZero()
	state.Parameters = map[string]*v1alpha1.PoolOperation{}
	for _, name := range runs.RunParameters(state.Run) {
		operation, err := find(runs.ParameterOperationName(state.Run, name), underway)
		if err != nil {
			return err
		}
		if operation != nil {
			state.Parameters[name] = operation
		}
	}
	for i, phase := range state.Run.Spec.Phases {
		state.Phases[i].Companions = map[runs.Companion]*v1alpha1.PoolOperation{}
		for _, companion := range runs.Companions(state.Run, phase) {
			// Absence determines what the result of a phase contains.
			operation, err := find(runs.CompanionName(state.Run, phase, companion), state.Phases[i].Job.Exists && state.Phases[i].Stored == nil)
			if err != nil {
				return err
			}
			if operation != nil {
				state.Phases[i].Companions[companion] = operation
			}
		}
	}
	return nil
}

// operations of a run by name. For a finished run, their absence is confirmed by the API server.
func (r *Reconciler) operations(ctx context.Context, run *v1alpha1.BenchmarkRun) (map[string]*v1alpha1.PoolOperation, error) {
	readers := []client.Reader{r.Client}
	if !run.DeletionTimestamp.IsZero() || meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionComplete) {
		readers = append(readers, r.Live)
	}
	for _, reader := range readers {
		var list v1alpha1.PoolOperationList
		if err := reader.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelRunUID: string(run.UID)}); err != nil {
			return nil, fmt.Errorf("list the PoolOperations of run %s/%s: %w", run.Namespace, run.Name, err)
		}
		if len(list.Items) == 0 {
			continue
		}
		found := map[string]*v1alpha1.PoolOperation{}
		for k := range list.Items {
			found[list.Items[k].Name] = &list.Items[k]
		}
		return found, nil
	}
	return nil, nil
}

// startCompanion creates the operation.
func (r *Reconciler) startCompanion(ctx context.Context, state *runs.State, i int, companion runs.Companion) error {
	phase := state.Run.Spec.Phases[i]
	action := v1alpha1.PoolAction{Observe: &v1alpha1.ObserveAction{Interval: lasting(observeInterval(phase))}}
	if companion == runs.Beside {
		action = *phase.Measure.Operate
	}
	operation := poolOperation(state.Run, phase, runs.CompanionName(state.Run, phase, companion), action, state.Pools.Datasets)
	operation.Spec.Deadline = lasting(phase.StartDeadline.Duration.Duration + phase.Deadline.Duration.Duration + operationSlack)
	return r.create(ctx, state.Run, operation)
}

// setParameters creates the operations that keep the module parameters during the run.
func (r *Reconciler) setParameters(ctx context.Context, state *runs.State) error {
	patience := operationSlack
	for _, phase := range state.Run.Spec.Phases {
		patience += phase.StartDeadline.Duration.Duration + phase.Deadline.Duration.Duration
	}
	for _, name := range runs.RunParameters(state.Run) {
		operation := &v1alpha1.PoolOperation{
			ObjectMeta: metav1.ObjectMeta{Name: runs.ParameterOperationName(state.Run, name), Labels: clusterLabelsFor(state.Run)},
			Spec: v1alpha1.PoolOperationSpec{
				NodeName: state.Run.Spec.NodeName, Pool: naming.RunPoolName(state.Run, naming.VolumeData),
				Action: v1alpha1.PoolAction{ModuleParameter: &v1alpha1.ModuleParameterAction{Name: name,
					Value: state.Run.Spec.Target.ZFS.ModuleParameters[name]}},
				Deadline: lasting(patience),
			},
		}
		if err := r.create(ctx, state.Run, operation); err != nil {
			return err
		}
	}
	return nil
}

func lasting(length time.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: metav1.Duration{Duration: length}}
}

// cancel requests the end of an operation.
func (r *Reconciler) cancel(ctx context.Context, operation *v1alpha1.PoolOperation) error {
	cancelled := operation.DeepCopy()
	cancelled.Spec.Cancel = true
	return client.IgnoreNotFound(r.Client.Patch(ctx, cancelled, client.MergeFromWithOptions(operation, client.MergeFromWithOptimisticLock{})))
}

// join adds the results of its companions to the result of a phase, and returns the observation to store with it.
func join(document *results.PhaseDocument, companions map[runs.Companion]*v1alpha1.PoolOperation,
	wanted []runs.Companion) (observed *v1alpha1.PoolOperation) {
	document.Metrics, document.Environment = maps.Clone(document.Metrics), maps.Clone(document.Environment)
	if document.Metrics == nil {
		document.Metrics = map[string]int64{}
	}
	if document.Environment == nil {
		document.Environment = map[string]string{}
	}
	for _, companion := range wanted {
		operation := companions[companion]
		if companion == runs.Beside {
			joinBeside(document, operation)
			continue
		}
		if missing := joinObservation(document, operation); missing != "" {
			document.Omit("what the pool's disks did: " + missing)
			continue
		}
		observed = operation
	}
	return observed
}

// joinObservation returns the reason why there are no pool metrics.
func joinObservation(document *results.PhaseDocument, operation *v1alpha1.PoolOperation) (missing string) {
	switch {
	case operation == nil:
		return "its PoolOperation was deleted"
	case operation.Status.Outcome == "":
		return "its agent did not finish the observation in time"
	case len(operation.Status.Data) == 0:
		ready := meta.FindStatusCondition(operation.Status.Conditions, v1alpha1.ConditionReady)
		return ptr.Deref(ready, metav1.Condition{Message: "its agent reported nothing"}).Message
	}
	series, err := poolseries.Unpack(operation.Status.Data, operation.Status.DataDigest)
	if err != nil {
		return err.Error()
	}
	for _, missing := range slices.Concat(series.Missing, series.Omitted) {
		document.Omit(missing)
	}
	if document.Outcome == results.OutcomeValid {
		maps.Copy(document.Metrics, series.Join(*document))
	}
	return ""
}

// joinBeside invalidates the result if the requested operation did not run during the workload.
func joinBeside(document *results.PhaseDocument, operation *v1alpha1.PoolOperation) {
	invalid := func(message string) {
		if document.Outcome == results.OutcomeValid {
			document.Outcome, document.Reason, document.Message = results.OutcomeInvalid, v1alpha1.ReasonOperationDidNotOverlap, message
		}
	}
	if operation == nil {
		invalid("the operation during the workload was deleted, or the workload ended before it could start")
		return
	}
	times := document.Times()
	share, problem := runs.BesideShare(operation, times[0].From, times[len(times)-1].To)
	if problem != "" {
		invalid(problem)
	}
	document.Environment["beside"] = operate.Name(operation.Spec.Action)
	document.Environment["beside.outcome"] = operation.Status.Outcome
	if runs.Lasts(operation.Spec.Action) {
		document.Metrics["besidePartsPerMillion"] = share
	}
	for name, value := range operationMetrics(operation.Status.Metrics) {
		if _, taken := document.Metrics[name]; !taken {
			document.Metrics[name] = value
		}
	}
}

// joined is the received document in its stored form: with the results of its companions, if it has any.
func joined(run *v1alpha1.BenchmarkRun, spec v1alpha1.Phase,
	phase runs.PhaseState) (document *results.PhaseDocument, text []byte, digest string, observed *v1alpha1.PoolOperation, err error) {
	wanted := runs.Companions(run, spec)
	if len(wanted) == 0 {
		return phase.Received, phase.ReceivedBytes, phase.ReceivedDigest, nil, nil
	}
	whole := *phase.Received
	observed = join(&whole, phase.Companions, wanted)
	if text, err = json.Marshal(whole); err != nil {
		return nil, nil, "", nil, err
	}
	return &whole, text, results.Digest(text), observed, nil
}
