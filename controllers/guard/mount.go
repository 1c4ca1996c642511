package guard

import (
	"context"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Mount mounts a dataset of the spec at its mount point on the node, and creates the folder for pods in it. The mount point is opened
// without following links, and made unwritable before. In the end, Mount verifies that it is this dataset that is mounted there.
func Mount(ctx context.Context, host *zfs.Client, disks Disks, pool *v1alpha1.BenchmarkPool, guid string,
	dataset v1alpha1.PoolDataset) error {
	name, point := naming.DatasetName(pool, dataset), naming.MountPoint(naming.PoolName(pool), dataset.Path)
	if err := Alone(ctx, host, name); err != nil {
		return err
	}
	found, err := host.Datasets(ctx, name)
	if err != nil {
		return fmt.Errorf("look for dataset %s before mounting it: %w", name, err)
	}
	if len(found) == 0 || found[0].Name != name {
		return fmt.Errorf("dataset %s does not exist, so it cannot be mounted", name)
	}
	mounted := found[0].Mounted
	if err := proveMade(ctx, host, name, dataset); err != nil {
		return err
	}
	if !mounted {
		if err := disks.MakeMountPoint(naming.VolumesFolder, point); err != nil {
			return err
		}
	}
	if err := Prove(ctx, host, pool, guid); err != nil {
		return err
	}
	if !mounted {
		if err := host.Mount(ctx, name); err != nil {
			return err
		}
	}
	err = disks.MakeVolumeFolder(naming.VolumesFolder, point, name)
	if err == nil || mounted {
		return err
	}
	if undone := host.Unmount(ctx, name); undone != nil {
		return fmt.Errorf("%w; and it stays mounted: %w", err, undone)
	}
	return err
}

// proveMade proves, from the current state of ZFS, that an operation created a dataset that the spec awaits.
func proveMade(ctx context.Context, host *zfs.Client, name string, dataset v1alpha1.PoolDataset) error {
	if !dataset.Awaited {
		return nil
	}
	marks, err := host.DatasetProperties(ctx, []string{naming.PropertyOperation}, name)
	if err != nil {
		return fmt.Errorf("confirm who has created dataset %s: %w", name, err)
	}
	if live := (&pools.LivePool{DatasetProperties: marks}); live.MadeByOperation(name) == "" {
		return fmt.Errorf("dataset %s does not carry %s of its own: it is not mounted: %w", name, naming.PropertyOperation, ErrNotOurs)
	}
	return nil
}

// Alone checks that no child dataset would be mounted together with a dataset, or get a new mount point: the child would be mounted where
// pods write.
func Alone(ctx context.Context, host *zfs.Client, name string) error {
	all, err := host.Datasets(ctx, name)
	if err != nil {
		return fmt.Errorf("look for datasets below %s: %w", name, err)
	}
	var below []string
	for _, dataset := range all {
		if dataset.Type == "filesystem" && strings.HasPrefix(dataset.Name, name+"/") {
			below = append(below, dataset.Name)
		}
	}
	if len(below) == 0 {
		return nil
	}
	properties, err := host.DatasetProperties(ctx, []string{"canmount", "mountpoint"}, below...)
	if err != nil {
		return fmt.Errorf("look at the mount points below %s: %w", name, err)
	}
	stays := map[string]bool{}
	for _, property := range properties {
		switch {
		case property.Name == "canmount" && property.Value != "on":
			stays[property.Object] = true
		case property.Name == "mountpoint" && property.Local() && (property.Value == "none" || property.Value == "legacy"):
			stays[property.Object] = true
		}
	}
	for _, dataset := range below {
		if !stays[dataset] {
			return fmt.Errorf("dataset %s would be mounted below %s, where pods write: set its canmount=noauto, or destroy it", dataset, name)
		}
	}
	return nil
}

// unmounted proves, from the mounts of the node, that nothing of a pool is still mounted at or below the agent's mount points.
func unmounted(disks Disks, pool *v1alpha1.BenchmarkPool, own []string) error {
	name := naming.PoolName(pool)
	nested, err := disks.NestedMounts(name, own...)
	if err == nil && len(nested) > 0 {
		err = fmt.Errorf("still mounted below a mount point of pool %s: %s", name, strings.Join(nested, ", "))
	}
	return err
}
