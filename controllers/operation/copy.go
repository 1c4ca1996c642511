package operation

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// observeCopy reads both sides of a copy.
func (r *Reconciler) observeCopy(ctx context.Context, state *operations.State) error {
	if err := r.lookUp(ctx, state.Live.Name, &state.Source); err != nil {
		return err
	}
	pool, live := state.Destination()
	if live == nil {
		return nil
	}
	state.Target.Name = operations.OperationDataset(pool, state.Operation.Spec.Action.Copy.To)
	if err := r.lookUp(ctx, live.Name, &state.Target); err != nil {
		return err
	}
	return r.observeTarget(state)
}

// proveCopy proves that both pools are ours, and that the target is the one that the operation started with.
func (r *Reconciler) proveCopy(ctx context.Context, state operations.State) error {
	if err := r.prove(ctx, state); err != nil {
		return err
	}
	pool, live := state.Destination()
	if live == nil {
		return fmt.Errorf("the pool of BenchmarkPool %s is not imported", pool.Name)
	}
	if other := state.OtherTarget(); other != "" {
		return fmt.Errorf("%s: %w", other, operations.ErrPermanent)
	}
	return retryable(guard.Prove(ctx, r.ZFS, pool, live.GUID))
}

// copy continues where an earlier agent stopped: complete files stay, and incomplete ones are removed. With overwrite, all files are
// written again. copy first walks through the source, so that nothing is changed if the source cannot be copied.
func (r *Reconciler) copy(ctx context.Context, state operations.State, j *job) (operations.Result, error) {
	from, err := r.open(state.Source.Name, true)
	if err != nil {
		return operations.Result{}, err
	}
	defer func() { _ = from.Close() }() // opened read-only
	const bufferBytes = 1 << 20
	copier := &copying{from: from, half: ".storagebench-copy-" + string(state.Operation.UID), target: state.Target.Name, job: j,
		buffer: make([]byte, bufferBytes), now: r.Clock.Now, overwrite: state.Operation.Spec.Action.Copy.Overwrite}
	var result operations.Result
	if err = copier.sum(ctx); err == nil {
		result, err = r.copyTo(ctx, state, copier)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = errors.Join(err, operations.ErrPermanent)
	}
	if err != nil {
		return operations.Result{}, fmt.Errorf("copy the files of %s to %s: %w", state.Source.Name, state.Target.Name, err)
	}
	return result, nil
}

// copyTo copies to the target, and creates it if it does not exist.
func (r *Reconciler) copyTo(ctx context.Context, state operations.State, copier *copying) (operations.Result, error) {
	if err := r.proveCopy(ctx, state); err != nil {
		return operations.Result{}, err
	}
	if !state.Target.Exists {
		properties := made(state)
		for name, value := range state.Operation.Spec.Action.Copy.Properties {
			properties[name] = string(value)
		}
		if err := r.ZFS.CreateDataset(ctx, zfs.DatasetSpec{Name: state.Target.Name, Properties: properties}); err != nil {
			return operations.Result{}, err
		}
	}
	to, err := r.open(state.Target.Name, false)
	if err != nil {
		return operations.Result{}, err
	}
	copier.to = to
	var result operations.Result
	if err = r.opened(ctx, state); err == nil {
		result, err = r.measured(ctx, state, copier)
	}
	return result, errors.Join(err, to.Close())
}

// opened proves that the target, now that it is open and can no longer be destroyed, is the one that the operation started with or has
// created. The target was looked up before the walk through the source, which takes minutes.
func (r *Reconciler) opened(ctx context.Context, state operations.State) error {
	_, live := state.Destination()
	state.Target = operations.Object{Name: state.Target.Name}
	if err := r.lookUp(ctx, live.Name, &state.Target); err != nil {
		return err
	}
	other := state.OtherTarget()
	if other == "" && !state.Target.Exists {
		other = "dataset " + state.Target.Name + " was renamed meanwhile"
	}
	if other != "" {
		return fmt.Errorf("%s: %w", other, operations.ErrPermanent)
	}
	return nil
}

// measured copies the files, and reads the counters of the pools before and after. Before the second reading it syncs the pool, so that
// everything is on the disks.
func (r *Reconciler) measured(ctx context.Context, state operations.State, copier *copying) (operations.Result, error) {
	_, to := state.Destination()
	disks := r.meters(state.Live, to)
	unknown := errors.Join(r.ZFS.Sync(ctx, to.Name), disks.look(ctx))
	began := r.Clock.Now()
	if err := errors.Join(copier.all(ctx), ctx.Err()); err != nil {
		return operations.Result{}, err
	}
	if err := r.ZFS.Sync(ctx, to.Name); err != nil {
		return operations.Result{}, err
	}
	took := r.Clock.Since(began)
	result := copier.result(state)
	result.WorkedUntil = began.Add(took)
	unknown = errors.Join(unknown, disks.look(ctx))
	switch interrupted := copier.found > 0 || state.Interrupted(); {
	case copier.bytes == 0 || took <= 0:
		return result, nil
	case interrupted:
		result.Message += "; it was interrupted and restarted, so its rate is unknown"
		return result, nil
	case unknown != nil:
		result.Message += "; what the disks did is unknown: " + unknown.Error()
	default:
		result.Metrics = append(result.Metrics, disks.perCopied(copier.bytes)...)
	}
	result.Metrics = append(result.Metrics, v1alpha1.OperationMetric{Name: operate.MetricDurationNanoseconds, Value: int64(took)},
		v1alpha1.OperationMetric{Name: "copiedBytesPerSecond", Value: int64(float64(copier.bytes) / took.Seconds())})
	return result, nil
}

// result returns a description and the metrics of what was copied.
func (c *copying) result(state operations.State) operations.Result {
	message := fmt.Sprintf("%d files of %s are copied to %s; %d others (links, devices, sockets) were skipped", c.files, state.Source.Name,
		state.Target.Name, c.other)
	if c.overwritten > 0 {
		message += fmt.Sprintf("; %d of the files were there before and are overwritten", c.overwritten)
	}
	return operations.Result{Message: message,
		Metrics: []v1alpha1.OperationMetric{{Name: "copiedBytes", Value: c.bytes}, {Name: "copiedFiles", Value: c.files},
			{Name: "copiedFolders", Value: c.folders}, {Name: "skippedEntries", Value: c.other}, {Name: "overwrittenFiles", Value: c.overwritten}}}
}
