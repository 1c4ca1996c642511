package run

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/internal/runs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

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
			// The absence of a companion determines what the result of a phase contains, so the API server has to confirm it.
			operation, err := find(runs.CompanionName(state.Run, phase, companion), state.Phases[i].Executor.Exists && state.Phases[i].Stored == nil)
			if err != nil {
				return err
			}
			if operation != nil {
				state.Phases[i].Companions[companion] = operation
			}
		}
		if state.Phases[i].Companions[runs.Beside] != nil {
			r.Memory.Note(state.Run, seenFact(phase.Name), true)
		}
		state.Phases[i].BesideSeen = r.Memory.Noted(state.Run, seenFact(phase.Name))
	}
	return nil
}

// seenFact returns the name of the fact that the operation beside a phase has existed.
func seenFact(phase v1alpha1.PhaseName) string {
	return "the operation beside " + string(phase) + " has existed"
}

// operations returns the operations of a run by name. For a finished run, their absence is confirmed by the API server.
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

// cancel requests the end of an operation.
func (r *Reconciler) cancel(ctx context.Context, operation *v1alpha1.PoolOperation) error {
	cancelled := operation.DeepCopy()
	cancelled.Spec.Cancel = true
	return client.IgnoreNotFound(r.Client.Patch(ctx, cancelled, client.MergeFromWithOptions(operation, client.MergeFromWithOptimisticLock{})))
}

// setParameters creates the operations that keep the module parameters during the run.
func (r *Reconciler) setParameters(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	for _, operation := range runs.ParameterOperations(run) {
		if err := r.create(ctx, run, operation); err != nil {
			return err
		}
	}
	return nil
}
