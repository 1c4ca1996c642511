package operation

import (
	"context"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// command changes something for an operation.
type command func(r *Reconciler, ctx context.Context, state operations.State, action operations.Action) error

// kind is how the agent carries out an operation: either run or work does what the spec requests.
type kind struct {
	// observe reads what the operation uses besides its pool and its disks. If nil, that is its dataset, if it has one.
	observe func(r *Reconciler, ctx context.Context, state *operations.State) error
	// run does it at once, or starts it if ZFS does it in the background.
	run command
	// work does it in the background of the agent. graceful says that it ends by itself after a stop.
	work     func(r *Reconciler, ctx context.Context, state operations.State, j *job) (operations.Result, error)
	graceful bool
	// stop stops what ZFS does in the background.
	stop command
	// cleanUp removes the leftovers that observe has found.
	cleanUp func(r *Reconciler, ctx context.Context, state operations.State) error
}

// kinds are the operations, by the field of PoolAction that requests them.
var kinds = map[string]kind{
	"addVdev":         {run: addVdev},
	"clone":           {observe: observeClone, run: clone},
	"copy":            {observe: (*Reconciler).observeCopy, work: (*Reconciler).copy},
	"destroyDataset":  {observe: observeDestroyDataset, work: (*Reconciler).destroyDataset},
	"destroySnapshot": {observe: observeDestroySnapshot, work: (*Reconciler).destroySnapshot},
	"exportImport":    {observe: observeExport, run: (*Reconciler).exportImport},
	"layoutScore":     {work: (*Reconciler).layoutScore},
	"metaslabMap":     {work: (*Reconciler).metaslabMap},
	"moduleParameter": {run: (*Reconciler).setParameter, cleanUp: (*Reconciler).restoreParameter},
	"observe":         {work: (*Reconciler).watch, graceful: true},
	"offlineDevice":   {observe: observeOffline, work: (*Reconciler).offlineDevice, graceful: true, cleanUp: (*Reconciler).bringBack},
	"removeVdev":      {run: removeVdev, stop: cancelRemoval},
	"replaceDevice":   {run: replaceDevice},
	"replicate":       {observe: (*Reconciler).observeReplication, work: (*Reconciler).replicate, cleanUp: (*Reconciler).cleanUpReplication},
	"scrub":           {run: scrubbing(zfs.ScrubStart), stop: scrubbing(zfs.ScrubStop)},
	"setProperty":     {observe: (*Reconciler).observeProperties, run: (*Reconciler).setProperties, cleanUp: (*Reconciler).correctMark},
	"snapshot":        {observe: observeSnapshot, run: snapshot},
	"trim":            {run: trimming(zfs.TrimStart), stop: trimming(zfs.TrimCancel)},
}

// kindOf returns the kind of an operation. The planner begins none that this agent does not know.
func kindOf(state operations.State) kind { return kinds[operate.Name(state.Operation.Spec.Action)] }

func observeSnapshot(r *Reconciler, ctx context.Context, state *operations.State) error {
	state.Snapshot.Name = state.Source.Name + "@" + string(state.Operation.Spec.Action.Snapshot.Name)
	return r.lookUp(ctx, state.Live.Name, &state.Source, &state.Snapshot)
}

func observeDestroySnapshot(r *Reconciler, ctx context.Context, state *operations.State) error {
	state.Snapshot.Name = state.Source.Name + "@" + string(state.Operation.Spec.Action.DestroySnapshot.Name)
	return r.lookUp(ctx, state.Live.Name, &state.Source, &state.Snapshot)
}

func observeClone(r *Reconciler, ctx context.Context, state *operations.State) error {
	action := state.Operation.Spec.Action.Clone
	state.Snapshot.Name = state.Source.Name + "@" + string(action.Snapshot)
	state.Target.Name = operations.OperationDataset(state.Pool, action.To)
	return r.lookUp(ctx, state.Live.Name, &state.Source, &state.Snapshot, &state.Target)
}

func observeDestroyDataset(r *Reconciler, ctx context.Context, state *operations.State) error {
	if err := r.lookUp(ctx, state.Live.Name, &state.Source); err != nil {
		return err
	}
	return r.observeUse(state, state.Source.Name, operations.AwaitedPoints(*state)...)
}

func observeExport(r *Reconciler, _ context.Context, state *operations.State) error {
	return r.observeUse(state, state.Live.Name, naming.MountPoints(state.Pool)...)
}

func observeOffline(_ *Reconciler, _ context.Context, state *operations.State) error {
	if state.Offline() && (state.Job == nil || !state.Job.Running) {
		state.Leftovers = []string{string(state.Operation.Spec.Action.OfflineDevice.Device) + " is offline"}
	}
	return nil
}

func snapshot(r *Reconciler, ctx context.Context, state operations.State, _ operations.Action) error {
	mark := map[string]string{naming.PropertyOperation: string(state.Operation.UID)}
	return r.timed(ctx, state, func() error {
		return r.ZFS.Snapshot(ctx, state.Snapshot.Name, state.Operation.Spec.Action.Snapshot.Recursive, mark)
	})
}

func clone(r *Reconciler, ctx context.Context, state operations.State, _ operations.Action) error {
	return r.timed(ctx, state, func() error { return r.ZFS.Clone(ctx, state.Snapshot.Name, state.Target.Name, made(state)) })
}

func scrubbing(act zfs.ScrubAct) command {
	return func(r *Reconciler, ctx context.Context, state operations.State, _ operations.Action) error {
		return r.proven(ctx, state, func() error { return r.ZFS.Scrub(ctx, state.Live.Name, act) })
	}
}

func trimming(act zfs.TrimAct) command {
	return func(r *Reconciler, ctx context.Context, state operations.State, action operations.Action) error {
		return r.proven(ctx, state, func() error { return r.ZFS.Trim(ctx, state.Live.Name, action.Member, act) })
	}
}

func removeVdev(r *Reconciler, ctx context.Context, state operations.State, action operations.Action) error {
	return r.answered(ctx, state, func() error { return r.ZFS.RemoveVdev(ctx, state.Live.Name, action.Member) })
}

func cancelRemoval(r *Reconciler, ctx context.Context, state operations.State, _ operations.Action) error {
	return r.proven(ctx, state, func() error { return r.ZFS.CancelRemoval(ctx, state.Live.Name) })
}

func addVdev(r *Reconciler, ctx context.Context, state operations.State, action operations.Action) error {
	added := operations.AddedLayout(state.Operation.Spec.Action.AddVdev.Vdev())
	return r.onDisks(ctx, state, action, func() error { return r.ZFS.Add(ctx, state.Live.Name, int(state.Pool.Spec.Ashift), added) })
}

func replaceDevice(r *Reconciler, ctx context.Context, state operations.State, action operations.Action) error {
	with := string(state.Operation.Spec.Action.ReplaceDevice.With)
	return r.onDisks(ctx, state, action, func() error { return r.ZFS.Replace(ctx, state.Live.Name, action.Member, with) })
}
