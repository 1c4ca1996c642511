package design

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// layout has the parts of one volume of a zfs target that a variant can change. Only the volume data has several pools: the target's pool
// and those in perNode, which would otherwise stay unchanged. A volume on the pool of another volume has none; poolOf names the other
// volume.
type layout struct {
	pools   []*v1alpha1.PoolTemplate
	dataset **v1alpha1.DatasetTemplate
	poolOf  string
}

// lacksPool says where to change the pool of a volume that lies on the pool of another volume.
func (l layout) lacksPool(name string) string {
	where := "pool"
	if l.poolOf != naming.VolumeData {
		where = "volumes." + l.poolOf + ".pool"
	}
	return fmt.Sprintf("volume %s lies on the pool of volume %s, and this changes the pool of both: write %s in place of volumes.%s.pool",
		name, l.poolOf, where, name)
}

// dataOf is the layout of the volume data.
func dataOf(zfs *v1alpha1.ZFSTarget) layout {
	data := layout{pools: []*v1alpha1.PoolTemplate{&zfs.Pool}, dataset: &zfs.Dataset}
	for i := range zfs.PerNode {
		data.pools = append(data.pools, &zfs.PerNode[i].Pool)
	}
	return data
}

// layoutOf finds a volume of a target by its name.
func layoutOf(zfs *v1alpha1.ZFSTarget, name string) (layout, error) {
	if name == naming.VolumeData {
		return dataOf(zfs), nil
	}
	for i := range zfs.Volumes {
		if volume := &zfs.Volumes[i]; string(volume.Name) == name {
			found := layout{dataset: &volume.Dataset, poolOf: string(volume.PoolOf)}
			if volume.Pool != nil {
				found.pools = []*v1alpha1.PoolTemplate{volume.Pool}
			}
			return found, nil
		}
	}
	return layout{}, fmt.Errorf("there is no volume %q: write one of %s", name, strings.Join(volumeNames(zfs), ", "))
}

// overrideVolumes applies the overrides of a variant to the volumes of its target.
func overrideVolumes(zfs *v1alpha1.ZFSTarget, variant v1alpha1.Variant) error {
	if pool := variant.Pool; pool != nil && len(zfs.PerNode) > 0 && namesDevices(pool) {
		return Refuse(v1alpha1.ReasonSpecInvalid, "variant %q replaces devices of the pool, and target.zfs.perNode sets other devices for node "+
			"%s: give the variant its own target, with perNode", variant.Name, zfs.PerNode[0].NodeName)
	}
	dataOf(zfs).override(variant.Pool, variant.Dataset)
	for _, override := range variant.Volumes {
		volume, err := layoutOf(zfs, string(override.Name))
		if err != nil {
			return Refuse(v1alpha1.ReasonSpecInvalid, "volumes of variant %q: %v", variant.Name, err)
		}
		if override.Pool != nil && volume.poolOf != "" {
			return Refuse(v1alpha1.ReasonSpecInvalid, "volumes of variant %q: %s", variant.Name, volume.lacksPool(string(override.Name)))
		}
		volume.override(override.Pool, override.Dataset)
	}
	return nil
}

// namesDevices reports whether an override has disks. An empty list has none: it removes the disks on every node.
func namesDevices(pool *v1alpha1.PoolOverride) bool {
	return len(pool.Vdevs)+len(pool.Log)+len(pool.Cache)+len(pool.Special) > 0
}

func (l layout) override(pool *v1alpha1.PoolOverride, dataset *v1alpha1.DatasetOverride) {
	for _, one := range l.pools {
		overridePool(one, pool)
	}
	overrideDataset(l.dataset, dataset)
}

// setVolume sets a path below volumes, such as log.pool.ashift.
func setVolume(zfs *v1alpha1.ZFSTarget, path, value string) error {
	name, rest, _ := strings.Cut(path, ".")
	volume, err := layoutOf(zfs, name)
	if err != nil {
		return err
	}
	if volume.poolOf != "" && strings.HasPrefix(rest, "pool.") {
		return errors.New(volume.lacksPool(name))
	}
	return volume.set(rest, value)
}

// set sets one field by its path below the volume: pool.ashift, pool.properties.NAME or dataset.NAME.
func (l layout) set(path, value string) error {
	head, field, _ := strings.Cut(path, ".")
	switch head {
	case "pool":
		for _, pool := range l.pools {
			if err := setPool(pool, field, value); err != nil {
				return err
			}
		}
		return nil
	case "dataset":
		if *l.dataset == nil {
			*l.dataset = &v1alpha1.DatasetTemplate{Type: "Filesystem"}
		}
		(*l.dataset).Properties = merged((*l.dataset).Properties, v1alpha1.Properties{field: v1alpha1.PropertyValue(value)})
		return nil
	default:
		return fmt.Errorf("a volume has pool and dataset, not %q: write volumes.VOLUME.pool.ashift or volumes.VOLUME.dataset.NAME", head)
	}
}

// sameField returns an error for two spellings of one field: the second would win, but the name of the variant would show both.
func sameField(paths []string) error {
	for _, path := range paths {
		short, long := strings.CutPrefix(path, "volumes."+naming.VolumeData+".")
		if long && slices.Contains(paths, short) {
			return Refuse(v1alpha1.ReasonMatrixInvalid, "the paths %q and %q set the same field: remove one of them", short, path)
		}
	}
	return nil
}
