package run

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// observeOperation reads the PoolOperation of a phase.
func (r *Reconciler) observeOperation(ctx context.Context, state *runs.State, i int, recorded bool) error {
	phase := state.Run.Spec.Phases[i]
	readers := []client.Reader{r.Client}
	if recorded {
		readers = append(readers, r.Live)
	}
	for _, reader := range readers {
		operation, err := readOperation(ctx, reader, state.Run, naming.RunOperationName(state.Run, phase))
		if err != nil {
			return err
		}
		if operation != nil {
			return state.Phases[i].ExecuteByOperation(state.Run, phase, operation)
		}
	}
	return nil
}

// readOperation reads an operation of a run. It returns nil if the run has none of that name.
func readOperation(ctx context.Context, reader client.Reader, run *v1alpha1.BenchmarkRun, name string) (*v1alpha1.PoolOperation, error) {
	var operation v1alpha1.PoolOperation
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, &operation); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read PoolOperation %s: %w", name, err)
	}
	if !ofRun(&operation, run) { // also if it was not found
		return nil, nil
	}
	return &operation, nil
}

// deleteOperations deletes the operations of a run. Their agent ends running ones.
func (r *Reconciler) deleteOperations(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	if run.Spec.Target.ZFS == nil {
		return nil
	}
	known, err := r.operations(ctx, run)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if err := r.deleteClusterWide(ctx, run, name, &v1alpha1.PoolOperation{}); err != nil {
			return err
		}
	}
	return nil
}
