package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/controllers/write"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// act carries out the decision. Each action that changes a pool first proves, from ZFS itself, that the pool is ours.
func (r *Reconciler) act(ctx context.Context, state *observed, actions []pools.Action) error {
	for _, action := range actions {
		var err error
		switch action.Kind {
		case pools.AddPoolFinalizer:
			err = client.IgnoreNotFound(write.Finalizer(ctx, r.Client, state.Pool, controllerutil.AddFinalizer))
		case pools.RecordDisks:
			err = guard.Record(ctx, r.Client, state.Pool, action.Disks)
		case pools.CreatePool:
			err = r.attempt(ctx, state.Pool, func() error { return r.create(ctx, state.Pool, action) })
		case pools.ImportPool:
			err = r.attempt(ctx, state.Pool, func() error { return r.importPool(ctx, state, action.GUID) })
		case pools.ReimportPool:
			err = r.attempt(ctx, state.Pool, func() error { return r.reimport(ctx, state, action.GUID) })
		case pools.GrowPool:
			err = r.grow(ctx, state, action)
		case pools.AttachDisk:
			err = r.attach(ctx, state, action)
		case pools.DetachDisk:
			err = r.detach(ctx, state, action)
		case pools.OnlineDisk:
			err = r.online(ctx, state, action)
		case pools.SetPoolProperties:
			err = r.setProperties(ctx, state.Pool, action)
		case pools.CreateDataset:
			err = r.createDataset(ctx, state.Pool, action)
		case pools.MountDataset:
			err = r.mountDataset(ctx, state.Pool, action)
		case pools.UnmountDataset:
			err = r.unmountDataset(ctx, state.Pool, action)
		case pools.DestroyDataset:
			err = r.destroyDataset(ctx, state.Pool, action)
		case pools.DestroyPool:
			err = r.destroy(ctx, state, action.GUID)
		case pools.ClearPoolLabels:
			err = r.clearLabels(ctx, state.Pool, action)
		case pools.ClearLeftLabels:
			err = r.clearLeft(ctx, state, action)
		case pools.RemovePoolFinalizer:
			err = r.letGo(ctx, state, action.Stays)
		}
		if err != nil {
			return fmt.Errorf("%s for BenchmarkPool %s: %w", action.Kind, state.Pool.Name, err)
		}
	}
	return nil
}

// letGo removes the mount point folders of the pool's datasets, and then the finalizer. A folder that cannot be removed is empty or belongs
// to others, so it is no reason to keep the object. The folders of a pool that stays behind stay too.
func (r *Reconciler) letGo(ctx context.Context, state *observed, stays string) error {
	if stays != "" {
		return r.leave(ctx, state.Pool, stays)
	}
	points := naming.MountPoints(state.Pool)
	if state.Live != nil {
		points = nil
	}
	for _, point := range points {
		if err := r.Disks.RemoveFolders(naming.VolumesFolder, point); err != nil {
			log.FromContext(ctx).Info("a folder of the pool is left on the node", "folder", point, "because", err.Error())
		}
	}
	r.forgetAttempts(ctx, state.Pool)
	return client.IgnoreNotFound(write.Finalizer(ctx, r.Client, state.Pool, controllerutil.RemoveFinalizer))
}

// attempt records on the node that the pool is created or imported. If that fails and the pool is not imported, the node has survived it.
func (r *Reconciler) attempt(ctx context.Context, pool *v1alpha1.BenchmarkPool, command func() error) error {
	failed := r.Attempts.Try(pool.UID, command)
	if failed == nil {
		return nil
	}
	live, err := r.ZFS.Pools(ctx)
	if err != nil || slices.ContainsFunc(live, func(p zfs.PoolSummary) bool { return p.Name == naming.PoolName(pool) }) {
		return failed
	}
	_, err = r.Attempts.Survived(pool.UID)
	return errors.Join(failed, err)
}

func (r *Reconciler) forgetAttempts(ctx context.Context, pool *v1alpha1.BenchmarkPool) {
	if err := r.Attempts.Forget(pool.UID); err != nil {
		log.FromContext(ctx).Info("the record of the imports of the pool is left on the node", "because", err.Error())
	}
}

// unchanged checks that the object is still the one for which the plan was made, with the same spec and run, and not deleted.
func (r *Reconciler) unchanged(ctx context.Context, pool *v1alpha1.BenchmarkPool) error {
	var now v1alpha1.BenchmarkPool
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(pool), &now); err != nil {
		return fmt.Errorf("confirm that the object is still there: %w", err)
	}
	handedOn := now.Labels[v1alpha1.LabelReset] != pool.Labels[v1alpha1.LabelReset] ||
		now.Labels[v1alpha1.LabelRunUID] != pool.Labels[v1alpha1.LabelRunUID]
	if now.UID != pool.UID || now.Generation != pool.Generation || !now.DeletionTimestamp.IsZero() || handedOn {
		return errors.New("the object has just been changed")
	}
	return nil
}

func (r *Reconciler) create(ctx context.Context, pool *v1alpha1.BenchmarkPool, action pools.Action) error {
	still := func() error { return r.unchanged(ctx, pool) }
	create := func() error { return r.ZFS.CreatePool(ctx, action.Create) }
	return guard.OnDisks(r.Disks, pool.Spec.PoolTemplate, action.Disks, still, still, create)
}

func (r *Reconciler) grow(ctx context.Context, state *observed, action pools.Action) error {
	return r.onDisks(ctx, state, action, func() error {
		return r.ZFS.Add(ctx, action.Create.Name, action.Create.Ashift, action.Create.Layout)
	})
}

func (r *Reconciler) attach(ctx context.Context, state *observed, action pools.Action) error {
	return r.onDisks(ctx, state, action, func() error {
		return r.ZFS.Attach(ctx, naming.PoolName(state.Pool), action.Member, action.Device)
	})
}

// detach removes a disk from a mirror. ZFS refuses to detach the last one.
func (r *Reconciler) detach(ctx context.Context, state *observed, action pools.Action) error {
	pool := state.Pool
	if err := r.unchanged(ctx, pool); err != nil {
		return err
	}
	if err := r.answering(pool, state.Live); err != nil {
		return err
	}
	if err := guard.Prove(ctx, r.ZFS, pool, action.GUID); err != nil {
		return err
	}
	return r.ZFS.Detach(ctx, naming.PoolName(pool), action.Member)
}

// online brings a disk back to a pool that is to be destroyed.
func (r *Reconciler) online(ctx context.Context, state *observed, action pools.Action) error {
	if err := r.condemned(ctx, state.Pool); err != nil {
		return err
	}
	if err := r.answering(state.Pool, state.Live); err != nil {
		return err
	}
	if err := guard.Prove(ctx, r.ZFS, state.Pool, action.GUID); err != nil {
		return err
	}
	return r.ZFS.Online(ctx, state.Live.Name, action.Member)
}

// onDisks runs a command that takes disks for an existing pool.
func (r *Reconciler) onDisks(ctx context.Context, state *observed, action pools.Action, command func() error) error {
	pool := state.Pool
	still := func() error {
		if err := r.unchanged(ctx, pool); err != nil {
			return err
		}
		return r.answering(pool, state.Live)
	}
	prove := func() error { return guard.Prove(ctx, r.ZFS, pool, action.GUID) }
	return guard.OnDisks(r.Disks, pool.Spec.PoolTemplate, action.Disks, still, prove, command)
}

// importPool identifies the owner of a pool with a read-only import, which writes nothing to its disks, before the real import.
func (r *Reconciler) importPool(ctx context.Context, state *observed, guid string) error {
	pool := state.Pool
	options, err := r.importOptions(state, guid)
	if err != nil {
		return err
	}
	options.Look = true
	if err := r.ZFS.Import(ctx, options); err != nil {
		return err
	}
	proof := guard.Prove(ctx, r.ZFS, pool, guid)
	// The pool was imported read-only and without mounts, so its export changes nothing.
	if proof != nil {
		return errors.Join(fmt.Errorf("%w; to use it, %s", proof, pools.ImportByHand(guid)), r.ZFS.Export(ctx, naming.PoolName(pool)))
	}
	return r.reimport(ctx, state, guid)
}

// reimport imports for good a pool that the agent has imported only to look at it.
func (r *Reconciler) reimport(ctx context.Context, state *observed, guid string) error {
	pool := state.Pool
	options, err := r.importOptions(state, guid)
	if err != nil {
		return err
	}
	if err := guard.Vacate(ctx, r.ZFS, r.Disks, pool, guid); err != nil {
		return err
	}
	// A person may have imported it meanwhile.
	now := pools.LivePool{PoolSummary: zfs.PoolSummary{Name: naming.PoolName(pool)}}
	if now.Properties, err = r.ZFS.PoolProperties(ctx, now.Name, "readonly", "altroot"); err != nil {
		return err
	}
	if !now.Look() {
		return fmt.Errorf("pool %s was just imported by others", now.Name)
	}
	if err := r.ZFS.Export(ctx, naming.PoolName(pool)); err != nil {
		return err
	}
	if err := r.ZFS.Import(ctx, options); err != nil {
		return err
	}
	return guard.Prove(ctx, r.ZFS, pool, guid)
}

func (r *Reconciler) setProperties(ctx context.Context, pool *v1alpha1.BenchmarkPool, action pools.Action) error {
	for _, setting := range action.Settings {
		if err := guard.Prove(ctx, r.ZFS, pool, action.GUID); err != nil {
			return err
		}
		if setting.Name == "mountpoint" && setting.Value != "none" {
			if err := guard.Alone(ctx, r.ZFS, setting.Dataset); err != nil {
				return err
			}
		}
		var err error
		switch {
		case setting.Dataset == "":
			err = r.ZFS.SetPoolProperty(ctx, naming.PoolName(pool), setting.Name, setting.Value)
		case setting.Value == "":
			err = r.ZFS.InheritProperty(ctx, setting.Dataset, setting.Name)
		default:
			err = r.ZFS.SetProperty(ctx, setting.Dataset, setting.Name, setting.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) createDataset(ctx context.Context, pool *v1alpha1.BenchmarkPool, action pools.Action) error {
	if err := guard.Prove(ctx, r.ZFS, pool, action.GUID); err != nil {
		return err
	}
	return r.ZFS.CreateDataset(ctx, action.Dataset)
}

func (r *Reconciler) mountDataset(ctx context.Context, pool *v1alpha1.BenchmarkPool, action pools.Action) error {
	for _, dataset := range pool.Spec.Datasets {
		if naming.DatasetName(pool, dataset) == action.Dataset.Name {
			return guard.Mount(ctx, r.ZFS, r.Disks, pool, action.GUID, dataset)
		}
	}
	return fmt.Errorf("dataset %s does not belong to the object", action.Dataset.Name)
}

// unmountDataset unmounts a dataset from a wrong place. ZFS refuses that if the dataset is in use.
func (r *Reconciler) unmountDataset(ctx context.Context, pool *v1alpha1.BenchmarkPool, action pools.Action) error {
	if err := guard.Prove(ctx, r.ZFS, pool, action.GUID); err != nil {
		return err
	}
	return r.ZFS.Unmount(ctx, action.Dataset.Name)
}

// destroy destroys the pool and clears the labels of its disks. If the agent dies in between, the planner finds the labels by the recorded
// guids.
func (r *Reconciler) destroy(ctx context.Context, state *observed, guid string) error {
	leaves, auxiliary := state.Live.Status.Leaves(), pools.AuxiliaryGUIDs(state.Pool, state.Live)
	if err := r.answering(state.Pool, state.Live); err != nil {
		return err
	}
	if err := guard.Vacate(ctx, r.ZFS, r.Disks, state.Pool, guid); err != nil {
		return err
	}
	if err := r.nothingNew(ctx, state.Live); err != nil {
		return err
	}
	if err := r.condemned(ctx, state.Pool); err != nil {
		return err
	}
	// The proof of ownership comes last.
	if err := guard.Prove(ctx, r.ZFS, state.Pool, guid); err != nil {
		return err
	}
	if err := r.ZFS.DestroyPool(ctx, state.Live.Name); err != nil {
		return err
	}
	for _, leaf := range leaves {
		paths := pools.LeafPaths(leaf)
		if len(paths) == 0 {
			continue // a distributed spare of a draid, or a missing disk
		}
		if err := r.clearLabel(ctx, paths[0], guid, auxiliary); err != nil {
			return err
		}
	}
	return nil
}

// condemned checks that the pool is still to be destroyed: inspecting the pool takes time, during which a user may have decided to keep it.
func (r *Reconciler) condemned(ctx context.Context, pool *v1alpha1.BenchmarkPool) error {
	var now v1alpha1.BenchmarkPool
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(pool), &now); err != nil {
		return fmt.Errorf("confirm that pool %s is to be destroyed: %w", naming.PoolName(pool), err)
	}
	released, err := r.Releases.Recorded(pool.UID)
	if err != nil {
		return err
	}
	if now.UID != pool.UID || now.DeletionTimestamp.IsZero() || objects.LetsGo(&now) || released {
		return fmt.Errorf("pool %s is not destroyed: the object has just been changed or released", naming.PoolName(pool))
	}
	return nil
}

// nothingNew checks that a pool has no dataset or snapshot that the planner has not seen: it would be destroyed with the pool, and may be a
// user's volume. The planner sees it in the next turn.
func (r *Reconciler) nothingNew(ctx context.Context, live *pools.LivePool) error {
	now, err := r.ZFS.Datasets(ctx, live.Name)
	if err != nil {
		return fmt.Errorf("confirm what is on pool %s: %w", live.Name, err)
	}
	type object struct{ name, guid string }
	known := map[object]bool{}
	for _, dataset := range live.Datasets {
		known[object{dataset.Name, dataset.GUID}] = true
	}
	for _, snapshot := range live.Snapshots {
		known[object{name: snapshot}] = true
	}
	for _, dataset := range now {
		if !known[object{dataset.Name, dataset.GUID}] && !known[object{name: dataset.Name}] {
			return fmt.Errorf("pool %s is not destroyed: %s was just created on it", live.Name, dataset.Name)
		}
	}
	return nil
}

func (r *Reconciler) clearLabels(ctx context.Context, pool *v1alpha1.BenchmarkPool, action pools.Action) error {
	auxiliary := pools.AuxiliaryGUIDs(pool, nil)
	for _, disk := range action.Disks {
		if err := r.clearLabel(ctx, disk.Path, action.GUID, auxiliary); err != nil {
			return err
		}
	}
	return nil
}

// clearLabel clears the label that our destroyed pool has left on a disk, or that was left when the disk was taken out of the pool, if the
// disk carries no other label. Labels of spares and cache devices name no pool: they are recognized by the guid of the vdev.
func (r *Reconciler) clearLabel(ctx context.Context, path, guid string, auxiliary []string) error {
	disk, _ := r.Disks.Check(host.Wish{Path: path}) // ignore the refusal: a label causes one, but is expected here
	if len(disk.Pools) == 0 {
		return nil
	}
	for _, label := range disk.Pools {
		if !pools.OwnLabel(label, guid) && !pools.OwnAuxiliary(label, auxiliary) {
			return fmt.Errorf("disk %s carries a label of the %s pool %q (guid %d), which is not what pool %s leaves: its labels are left: %w",
				path, label.State, label.Name, label.GUID, guid, guard.ErrNotOurs)
		}
	}
	if !pools.OnlyLabels(disk) {
		return fmt.Errorf("disk %s has other contents than the labels of pool %s, or is in use: its labels are left: %w", path, guid,
			guard.ErrNotOurs)
	}
	if err := guard.Steady(r.Disks, []host.Disk{disk}, func() error { return r.ZFS.ClearLabel(ctx, path) }); err != nil {
		return err
	}
	if after, _ := r.Disks.Check(host.Wish{Path: path}); len(after.Pools) > 0 {
		return fmt.Errorf("disk %s still carries a label of pool %s after clearing it", path, guid)
	}
	return nil
}
