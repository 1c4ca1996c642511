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
	"addVdev":         {run: (*Reconciler).addVdev},
	"clone":           {observe: (*Reconciler).observeClone, run: (*Reconciler).clone},
	"copy":            {observe: (*Reconciler).observeCopy, work: (*Reconciler).copy},
	"destroyDataset":  {observe: (*Reconciler).observeDestroyDataset, work: (*Reconciler).destroyDataset},
	"destroySnapshot": {observe: (*Reconciler).observeDestroySnapshot, work: (*Reconciler).destroySnapshot},
	"exportImport":    {observe: (*Reconciler).observeExport, run: (*Reconciler).exportImport},
	"layoutScore":     {work: (*Reconciler).layoutScore},
	"metaslabMap":     {work: (*Reconciler).metaslabMap},
	"moduleParameter": {run: (*Reconciler).setParameter, cleanUp: (*Reconciler).restoreParameter},
	"observe":         {work: (*Reconciler).watch, graceful: true},
	"offlineDevice": {observe: (*Reconciler).observeOffline, work: (*Reconciler).offlineDevice, graceful: true,
		cleanUp: (*Reconciler).bringBack},
	"removeVdev":    {run: (*Reconciler).removeVdev, stop: (*Reconciler).cancelRemoval},
	"replaceDevice": {run: (*Reconciler).replaceDevice},
	"replicate":     {observe: (*Reconciler).observeReplication, work: (*Reconciler).replicate, cleanUp: (*Reconciler).cleanUpReplication},
	"scrub":         {run: (*Reconciler).startScrub, stop: (*Reconciler).stopScrub},
	"setProperty":   {observe: (*Reconciler).observeProperties, run: (*Reconciler).setProperties, cleanUp: (*Reconciler).correctMark},
	"snapshot":      {observe: (*Reconciler).observeSnapshot, run: (*Reconciler).snapshot},
	"trim":          {run: (*Reconciler).startTrim, stop: (*Reconciler).cancelTrim},
}

// kindOf returns the kind of an operation. The planner begins none that this agent does not know.
func kindOf(state operations.State) kind { return kinds[operate.Name(state.Operation.Spec.Action)] }

func (r *Reconciler) observeSnapshot(ctx context.Context, state *operations.State) error {
	state.Snapshot.Name = state.Source.Name + "@" + string(state.Operation.Spec.Action.Snapshot.Name)
	return r.lookUp(ctx, state.Live.Name, &state.Source, &state.Snapshot)
}

func (r *Reconciler) observeDestroySnapshot(ctx context.Context, state *operations.State) error {
	state.Snapshot.Name = state.Source.Name + "@" + string(state.Operation.Spec.Action.DestroySnapshot.Name)
	return r.lookUp(ctx, state.Live.Name, &state.Source, &state.Snapshot)
}

func (r *Reconciler) observeClone(ctx context.Context, state *operations.State) error {
	action := state.Operation.Spec.Action.Clone
	state.Snapshot.Name = state.Source.Name + "@" + string(action.Snapshot)
	state.Target.Name = operations.OperationDataset(state.Pool, action.To)
	return r.lookUp(ctx, state.Live.Name, &state.Source, &state.Snapshot, &state.Target)
}

func (r *Reconciler) observeDestroyDataset(ctx context.Context, state *operations.State) error {
	if err := r.lookUp(ctx, state.Live.Name, &state.Source); err != nil {
		return err
	}
	return r.observeUse(state, state.Source.Name, operations.AwaitedPoints(*state)...)
}

func (r *Reconciler) observeExport(_ context.Context, state *operations.State) error {
	return r.observeUse(state, state.Live.Name, naming.MountPoints(state.Pool)...)
}

func (*Reconciler) observeOffline(_ context.Context, state *operations.State) error {
	if state.Offline() && (state.Job == nil || !state.Job.Running) {
		state.Leftovers = []string{string(state.Operation.Spec.Action.OfflineDevice.Device) + " is offline"}
	}
	return nil
}

func (r *Reconciler) snapshot(ctx context.Context, state operations.State, _ operations.Action) error {
	mark := map[string]string{naming.PropertyOperation: string(state.Operation.UID)}
	return r.timed(ctx, state, func() error {
		return r.ZFS.Snapshot(ctx, state.Snapshot.Name, state.Operation.Spec.Action.Snapshot.Recursive, mark)
	})
}

func (r *Reconciler) clone(ctx context.Context, state operations.State, _ operations.Action) error {
	return r.timed(ctx, state, func() error { return r.ZFS.Clone(ctx, state.Snapshot.Name, state.Target.Name, made(state)) })
}

func (r *Reconciler) startScrub(ctx context.Context, state operations.State, _ operations.Action) error {
	return r.proven(ctx, state, func() error { return r.ZFS.Scrub(ctx, state.Live.Name, zfs.ScrubStart) })
}

func (r *Reconciler) stopScrub(ctx context.Context, state operations.State, _ operations.Action) error {
	return r.proven(ctx, state, func() error { return r.ZFS.Scrub(ctx, state.Live.Name, zfs.ScrubStop) })
}

// startTrim and cancelTrim ask the disks first: the kernel waits for them while it holds the lock that the commands of all pools need.
func (r *Reconciler) startTrim(ctx context.Context, state operations.State, action operations.Action) error {
	return r.answered(ctx, state, func() error { return r.ZFS.Trim(ctx, state.Live.Name, action.Member, zfs.TrimStart) })
}

func (r *Reconciler) cancelTrim(ctx context.Context, state operations.State, action operations.Action) error {
	return r.answered(ctx, state, func() error { return r.ZFS.Trim(ctx, state.Live.Name, action.Member, zfs.TrimCancel) })
}

func (r *Reconciler) removeVdev(ctx context.Context, state operations.State, action operations.Action) error {
	return r.answered(ctx, state, func() error { return r.ZFS.RemoveVdev(ctx, state.Live.Name, action.Member) })
}

func (r *Reconciler) cancelRemoval(ctx context.Context, state operations.State, _ operations.Action) error {
	return r.proven(ctx, state, func() error { return r.ZFS.CancelRemoval(ctx, state.Live.Name) })
}

func (r *Reconciler) addVdev(ctx context.Context, state operations.State, action operations.Action) error {
	added := operations.AddedLayout(state.Operation.Spec.Action.AddVdev.Vdev())
	return r.onDisks(ctx, state, action, func() error { return r.ZFS.Add(ctx, state.Live.Name, int(state.Pool.Spec.Ashift), added) })
}

func (r *Reconciler) replaceDevice(ctx context.Context, state operations.State, action operations.Action) error {
	with := string(state.Operation.Spec.Action.ReplaceDevice.With)
	return r.onDisks(ctx, state, action, func() error { return r.ZFS.Replace(ctx, state.Live.Name, action.Member, with) })
}
