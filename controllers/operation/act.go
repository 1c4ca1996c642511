package operation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/controllers/write"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// act carries out the decision. Each command that changes something follows the proof that the pool is ours.
func (r *Reconciler) act(ctx context.Context, state *operations.State, actions []operations.Action) error {
	for _, action := range actions {
		var err error
		switch action.Kind {
		case operations.AddOperationFinalizer:
			err = client.IgnoreNotFound(write.Finalizer(ctx, r.Client, state.Operation, controllerutil.AddFinalizer))
		case operations.NoteBegun:
			err = r.noteBegun(ctx, *state, action)
		case operations.RecordDisks:
			err = guard.Record(ctx, r.Client, state.Pool, action.Disks)
		case operations.RunOperation:
			if err = r.run(ctx, *state, action); err != nil {
				err = runError{err}
			}
		case operations.StopOperation:
			err = r.stop(ctx, *state, action)
		case operations.CleanUpOperation:
			err = kindOf(*state).cleanUp(r, ctx, *state)
		case operations.RemoveOperationFinalizer:
			err = client.IgnoreNotFound(write.Finalizer(ctx, r.Client, state.Operation, controllerutil.RemoveFinalizer))
		}
		if err != nil {
			return fmt.Errorf("%s of PoolOperation %s (%s): %w", action.Kind, state.Operation.Name, operate.Name(state.Operation.Spec.Action), err)
		}
	}
	return nil
}

// retryable hides the kind of an error. Without it, a failed proof of ownership would look like a refused command, which is final, but the
// retryable may succeed next time.
func retryable(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

func (r *Reconciler) prove(ctx context.Context, state operations.State) error {
	return retryable(guard.Prove(ctx, r.ZFS, state.Pool, state.Live.GUID))
}

// proven runs a command on the pool, if it is ours.
func (r *Reconciler) proven(ctx context.Context, state operations.State, command func() error) error {
	if err := r.prove(ctx, state); err != nil {
		return err
	}
	return command()
}

// timed runs a command that is the whole work of its operation, and records how long it took.
func (r *Reconciler) timed(ctx context.Context, state operations.State, command func() error) error {
	return r.proven(ctx, state, func() error {
		took, err := r.stopwatch(command)
		if err != nil || took <= 0 {
			return err
		}
		now := r.Clock.Now()
		r.jobs.keep(state.Operation, operations.Result{WorkedUntil: now,
			Metrics: []v1alpha1.OperationMetric{{Name: operate.MetricDurationNanoseconds, Value: took.Nanoseconds()}}}, now)
		return nil
	})
}

// stopwatch runs a command and returns how long it took, by the monotonic clock.
func (r *Reconciler) stopwatch(command func() error) (time.Duration, error) {
	began := r.Clock.Now()
	err := command()
	return r.Clock.Since(began), err
}

// answered runs a command that waits for the disks of the pool, if the disks respond and the pool is ours.
func (r *Reconciler) answered(ctx context.Context, state operations.State, command func() error) error {
	if err := r.answering(state); err != nil {
		return err
	}
	return r.proven(ctx, state, command)
}

// made returns the properties of a dataset that the operation creates: its mark, and those that keep it unmounted. They are needed because
// its parent may be mounted where a pod can write.
func made(state operations.State) map[string]string {
	properties := map[string]string{naming.PropertyOperation: string(state.Operation.UID)}
	if state.Source.Type == "filesystem" {
		maps.Copy(properties, zfs.Unmounted())
	}
	return properties
}

// run does what the spec requests, or starts it in the background.
func (r *Reconciler) run(ctx context.Context, state operations.State, action operations.Action) error {
	kind := kindOf(state)
	if kind.run != nil {
		return kind.run(r, ctx, state, action)
	}
	do := func(ctx context.Context, j *job) (operations.Result, error) { return kind.work(r, ctx, state, j) }
	return r.jobs.start(state.Operation, r.Clock, work{graceful: kind.graceful, do: do})
}

// noteBegun marks the pool that the operation is about to change, if all of its pools are ours.
func (r *Reconciler) noteBegun(ctx context.Context, state operations.State, action operations.Action) error {
	if err := r.prove(ctx, state); err != nil {
		return err
	}
	if err := guard.Prove(ctx, r.ZFS, action.Pool, action.GUID); err != nil {
		return err
	}
	return r.ZFS.SetProperty(ctx, naming.PoolName(action.Pool), operations.PropertyBegun, action.Mark)
}

// onDisks runs a command that takes disks.
func (r *Reconciler) onDisks(ctx context.Context, state operations.State, action operations.Action, command func() error) error {
	still := func() error {
		if err := r.wanted(ctx, state); err != nil {
			return err
		}
		return r.answering(state)
	}
	prove := func() error { return r.prove(ctx, state) }
	return guard.OnDisks(r.Disks, state.Pool.Spec.PoolTemplate, action.Disks, still, prove, command)
}

// wanted checks that the pool and the operation still exist and are still wanted: a user may have deleted one of them, or cancelled the
// operation, during the wait for the disks.
func (r *Reconciler) wanted(ctx context.Context, state operations.State) error {
	var pool v1alpha1.BenchmarkPool
	var operation v1alpha1.PoolOperation
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(state.Pool), &pool); err != nil {
		return fmt.Errorf("confirm that the pool is still wanted: %w", err)
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(state.Operation), &operation); err != nil {
		return fmt.Errorf("confirm that the operation is still wanted: %w", err)
	}
	if pool.UID != state.Pool.UID || !pool.DeletionTimestamp.IsZero() {
		return fmt.Errorf("BenchmarkPool %s has just been deleted", state.Pool.Name)
	}
	if operation.UID != state.Operation.UID || !operation.DeletionTimestamp.IsZero() || operation.Spec.Cancel {
		return errors.New("the operation has just been deleted or cancelled")
	}
	return nil
}

// exportImport exports the pool and imports it again. If the agent dies in between, the pool controller imports it.
func (r *Reconciler) exportImport(ctx context.Context, state operations.State, _ operations.Action) error {
	if err := r.answering(state); err != nil {
		return err
	}
	options := r.importOptions(state)
	if len(options.Devices) < len(pools.Disks(state.Live.Status)) {
		return fmt.Errorf("pool %s has disks without a path by which the agent may import it again: grant them", state.Live.Name)
	}
	if err := retryable(guard.Vacate(ctx, r.ZFS, r.Disks, state.Pool, state.Live.GUID)); err != nil {
		return err
	}
	if err := retryable(r.sameImport(ctx, state.Live)); err != nil {
		return err
	}
	err := r.Attempts.Try(state.Pool.UID, func() error {
		if err := r.ZFS.Export(ctx, state.Live.Name); err != nil {
			return err
		}
		// From here on, no refusal is final, because the pool has to be imported again.
		return retryable(r.ZFS.Import(ctx, options))
	})
	if err != nil {
		return err
	}
	for _, dataset := range state.Pool.Spec.Datasets {
		placed, err := r.placed(ctx, state, dataset)
		if err == nil && placed {
			err = guard.Mount(ctx, r.ZFS, r.Disks, state.Pool, state.Live.GUID, dataset)
		}
		if err != nil {
			return retryable(err)
		}
	}
	return nil
}

// sameImport proves that the pool was not imported again since it was observed. A person may have done so read-only, to look at it.
func (r *Reconciler) sameImport(ctx context.Context, was *operations.Pool) error {
	now := operations.Pool{PoolSummary: was.PoolSummary}
	if err := r.observeImport(ctx, &now); err != nil {
		return err
	}
	if now.LoadGUID != was.LoadGUID || now.ReadOnly {
		return fmt.Errorf("pool %s was just imported by others", was.Name)
	}
	return nil
}

// placed reports whether a dataset is to be mounted. An awaited dataset is mounted only if the agent has set its mount point.
func (r *Reconciler) placed(ctx context.Context, state operations.State, dataset v1alpha1.PoolDataset) (bool, error) {
	if !dataset.Awaited {
		return dataset.Mounted, nil
	}
	found := operations.Object{Name: naming.DatasetName(state.Pool, dataset)}
	err := r.lookUp(ctx, state.Live.Name, &found)
	return found.Mark != "" && found.MountPoint == naming.MountPoint(naming.PoolName(state.Pool), dataset.Path), err
}

// setProperties sets the properties of the action, and corrects the mark if ZFS has refused some.
func (r *Reconciler) setProperties(ctx context.Context, state operations.State, _ operations.Action) error {
	err := r.proven(ctx, state, func() error { return r.ZFS.SetProperties(ctx, state.Source.Name, state.Setting()) })
	if err == nil {
		return nil
	}
	if wrong := r.correctMark(ctx, state); wrong != nil {
		return retryable(errors.Join(err, wrong)) // the refusal is final once the mark is right
	}
	return err
}

// correctMark corrects the mark of a dataset if it records values that the dataset does not have. Otherwise the agent would report that the
// pool differs from them.
func (r *Reconciler) correctMark(ctx context.Context, state operations.State) error {
	if err := r.observeProperties(ctx, &state); err != nil {
		return err
	}
	mark := state.Correction()
	if mark == "" {
		return nil
	}
	return r.proven(ctx, state, func() error { return r.ZFS.SetProperty(ctx, state.Source.Name, pools.PropertyChanged, mark) })
}

// unmountAwaited unmounts an awaited dataset that the agent itself has mounted. Any other use is an error.
func (r *Reconciler) unmountAwaited(ctx context.Context, state operations.State) error {
	own := operations.AwaitedPoints(state)
	if len(own) == 0 {
		return nil
	}
	if err := guard.Unused(r.Disks, state.Source.Name, own...); err != nil {
		return err
	}
	now := operations.Object{Name: state.Source.Name}
	if err := r.lookUp(ctx, state.Live.Name, &now); err != nil {
		return err
	}
	if !now.Exists || now.GUID != state.Source.GUID || !now.Mounted || !slices.Contains(own, now.MountPoint) {
		return nil
	}
	return r.ZFS.Unmount(ctx, now.Name)
}

// destroyDataset destroys exactly the dataset that was recorded at the start of the operation, if it is unused.
func (r *Reconciler) destroyDataset(ctx context.Context, state operations.State, _ *job) (operations.Result, error) {
	name := state.Source.Name
	if err := r.prove(ctx, state); err != nil {
		return operations.Result{}, err
	}
	if err := retryable(r.unmountAwaited(ctx, state)); err != nil {
		return operations.Result{}, err
	}
	if err := retryable(guard.Unused(r.Disks, name)); err != nil {
		return operations.Result{}, err
	}
	return r.destroy(ctx, name, state.Source, func() error {
		return r.ZFS.DestroyDataset(ctx, name, state.Operation.Spec.Action.DestroyDataset.Recursive)
	})
}

// destroySnapshot destroys exactly the snapshot that was recorded at the start of the operation.
func (r *Reconciler) destroySnapshot(ctx context.Context, state operations.State, _ *job) (operations.Result, error) {
	if err := r.prove(ctx, state); err != nil {
		return operations.Result{}, err
	}
	return r.destroy(ctx, state.Source.Name, state.Snapshot, func() error { return r.ZFS.DestroySnapshot(ctx, state.Snapshot.Name, false) })
}

// destroy runs the command that destroys a dataset, or a snapshot of it, if the object still has its guid.
func (r *Reconciler) destroy(ctx context.Context, dataset string, was operations.Object, command func() error) (operations.Result, error) {
	now, err := r.ZFS.Datasets(ctx, dataset)
	if err != nil {
		return operations.Result{}, retryable(err)
	}
	if !slices.ContainsFunc(now, func(d zfs.Dataset) bool { return d.Name == was.Name && d.GUID == was.GUID }) {
		return operations.Result{}, fmt.Errorf("%s is not the one with guid %s that was to be destroyed", was.Name, was.GUID)
	}
	took, err := r.stopwatch(command)
	if err != nil || took <= 0 {
		return operations.Result{}, err
	}
	return operations.Result{Metrics: []v1alpha1.OperationMetric{{Name: operate.MetricCommand, Value: took.Nanoseconds()}}}, nil
}

// stop stops the work early. The planner calls it only if ZFS or the agent can do that.
func (r *Reconciler) stop(ctx context.Context, state operations.State, action operations.Action) error {
	kind := kindOf(state)
	if kind.stop == nil {
		r.jobs.stop(state.Operation.UID)
		return nil
	}
	err := kind.stop(r, ctx, state, action)
	if errors.Is(err, zfs.NotRunning) {
		return nil // the work has just ended by itself
	}
	return err
}
