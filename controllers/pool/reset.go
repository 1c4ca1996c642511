package pool

import (
	"context"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
)

// destroyDataset destroys the dataset of the previous run on a kept pool, and nothing below it: without recursion, ZFS refuses to destroy a
// dataset with snapshots or children.
func (r *Reconciler) destroyDataset(ctx context.Context, pool *v1alpha1.BenchmarkPool, action pools.Action) error {
	name, own := action.Dataset.Name, naming.MountPoints(pool)
	prove := func() error { return guard.ProveDataset(ctx, r.ZFS, pool, action.GUID, name, action.DatasetGUID) }
	if err := r.unchanged(ctx, pool); err != nil {
		return err
	}
	if err := guard.Unused(r.Disks, name, own...); err != nil {
		return err
	}
	if err := prove(); err != nil {
		return err
	}
	now, err := r.ZFS.Datasets(ctx, name)
	if err != nil {
		return err
	}
	if len(now) > 0 && now[0].Name == name && now[0].Mounted && slices.Contains(own, now[0].MountPoint) {
		if err := r.ZFS.Unmount(ctx, name); err != nil {
			return err
		}
	}
	if err := guard.Unused(r.Disks, name); err != nil {
		return err
	}
	if err := prove(); err != nil {
		return err
	}
	return r.ZFS.DestroyDataset(ctx, name, false)
}
