package operation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

const (
	// rebuildPatience is how long ZFS may take to begin a rebuild. If nothing was written while the disk was offline, ZFS begins none.
	rebuildPatience = 10 * time.Second
	// rebuildPause is the pause between two checks for the rebuild.
	rebuildPause = 100 * time.Millisecond
)

// offlineDevice takes a disk offline for a while, brings it back, and waits until ZFS has rebuilt the data that the disk has missed. It
// also brings the disk back if it has to end early.
func (r *Reconciler) offlineDevice(ctx context.Context, state operations.State, j *job) (operations.Result, error) {
	action, began := state.Operation.Spec.Action.OfflineDevice, r.Clock.Now()
	leaf, found := state.Offlined(state.Live.Status)
	if !found {
		return operations.Result{}, fmt.Errorf("%s is not in pool %s any more: %w", action.Device, state.Live.Name, operations.ErrPermanent)
	}
	if err := r.answered(ctx, state, func() error { return r.ZFS.Offline(ctx, state.Live.Name, pools.MemberName(leaf)) }); err != nil {
		return operations.Result{}, err
	}
	left, length := r.Clock.Now(), action.Duration.Duration.Duration
	j.report(v1alpha1.OperationProgress{Message: fmt.Sprintf("%s is offline for %s", action.Device, length)})
	timer := r.Clock.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-j.stop:
	case <-ctx.Done():
	}
	away, back := r.Clock.Since(left), r.Clock.Now()
	// From here on, all errors are permanent: a retry would take the disk offline again.
	if err := r.bringBack(context.WithoutCancel(ctx), state); err != nil {
		return operations.Result{}, errors.Join(err, operations.ErrPermanent)
	}
	j.report(v1alpha1.OperationProgress{Message: fmt.Sprintf("ZFS rebuilds what %s has missed", action.Device)})
	rebuild, took, err := r.awaitRebuild(ctx, state, back)
	if err != nil {
		return operations.Result{}, errors.Join(err, operations.ErrPermanent)
	}
	metrics := []v1alpha1.OperationMetric{{Name: operate.MetricDurationNanoseconds, Value: r.Clock.Since(began).Nanoseconds()},
		{Name: "offlineNanoseconds", Value: away.Nanoseconds()}, {Name: "resilveredBytes", Value: rebuild.RepairedBytes},
		{Name: "errorsFound", Value: rebuild.Errors}}
	if took > 0 {
		metrics = append(metrics, v1alpha1.OperationMetric{Name: "resilverNanoseconds", Value: took.Nanoseconds()})
	}
	return operations.Result{Metrics: metrics, WorkedUntil: r.Clock.Now(),
		Message: fmt.Sprintf("%s was offline and has all data again: %d bytes were rebuilt", action.Device, rebuild.RepairedBytes)}, nil
}

// bringBack brings the disk of the operation online again.
func (r *Reconciler) bringBack(ctx context.Context, state operations.State) error {
	leaf, found := state.Offlined(state.Live.Status)
	if !found {
		return nil
	}
	return r.answered(ctx, state, func() error { return r.ZFS.Online(ctx, state.Live.Name, pools.MemberName(leaf)) })
}

// awaitRebuild waits for the end of the rebuild, and returns how long it took after the command that brought the disk back.
func (r *Reconciler) awaitRebuild(ctx context.Context, state operations.State, back time.Time) (zfs.Progress, time.Duration, error) {
	version, err := r.ZFS.Version(ctx)
	if err != nil {
		return zfs.Progress{}, 0, err
	}
	for {
		took := r.Clock.Since(back) // if AwaitResilver was called, the rebuild has just ended
		status, err := r.ZFS.Status(ctx, version, state.Live.Name)
		if err != nil {
			return zfs.Progress{}, 0, err
		}
		if leaf, found := state.Offlined(status); !found || !leaf.State.Good() {
			return zfs.Progress{}, 0, fmt.Errorf("%s did not come back to pool %s, it is %q: see 'zpool status' on the node, and replace it",
				state.Operation.Spec.Action.OfflineDevice.Device, state.Live.Name, leaf.State)
		}
		rebuild := state.Rebuild(status)
		switch {
		case rebuild == nil && took > rebuildPatience:
			return zfs.Progress{}, 0, nil
		case rebuild != nil && rebuild.State == zfs.Finished:
			return *rebuild, took, nil
		}
		select {
		case <-ctx.Done():
			return zfs.Progress{}, 0, ctx.Err()
		case <-r.Clock.After(rebuildPause):
		}
		if rebuild != nil && rebuild.State == zfs.Running {
			if err := r.ZFS.AwaitResilver(ctx, state.Live.Name); err != nil && !errors.Is(err, zfs.Timeout) {
				return zfs.Progress{}, 0, err
			}
		}
	}
}
