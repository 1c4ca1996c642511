package zfs

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// destroyTimeout is for commands that may walk many snapshots.
const destroyTimeout = 30 * time.Minute

// DatasetSpec describes a file system or volume to create.
type DatasetSpec struct {
	Name string
	// VolumeBytes of a volume; 0 makes a file system.
	VolumeBytes int64
	// Sparse volumes reserve no space.
	Sparse bool
	// Properties, including user properties.
	Properties map[string]string
}

// CreateDataset makes a file system or a volume. It does not mount a file system.
func (c *Client) CreateDataset(ctx context.Context, spec DatasetSpec) error {
	properties, err := propertyOptions("-o", spec.Properties)
	if err := cmp.Or(err, checkDataset(spec.Name), without(spec.Properties, nodeProperties...)); err != nil {
		return err
	}
	args := []string{"create"}
	switch {
	case spec.VolumeBytes < 0:
		return invalid("volume of %d bytes: use a size above 0", spec.VolumeBytes)
	case spec.VolumeBytes > 0:
		if spec.Sparse {
			args = append(args, "-s")
		}
		args = append(args, "-V", strconv.FormatInt(spec.VolumeBytes, 10))
	default:
		args = append(args, "-u")
	}
	return c.do(ctx, zfs(slices.Concat(args, properties, []string{spec.Name})...))
}

// DestroyDataset destroys a dataset below a pool; with recursion, its children and snapshots too. Clones outside of the dataset are never
// destroyed: they prevent the destruction of the dataset.
func (c *Client) DestroyDataset(ctx context.Context, name string, recursive bool) error {
	if err := checkDataset(name); err != nil {
		return err
	}
	if !strings.Contains(name, "/") {
		return invalid("dataset %q is a pool's root: destroy the pool, or use a dataset below it", name)
	}
	return c.destroy(ctx, name, recursive)
}

// DestroySnapshot destroys a snapshot; with recursion, also the snapshots of that name of all children.
func (c *Client) DestroySnapshot(ctx context.Context, name string, recursive bool) error {
	if err := checkSnapshot(name); err != nil {
		return err
	}
	return c.destroy(ctx, name, recursive)
}

func (c *Client) destroy(ctx context.Context, name string, recursive bool) error {
	args := []string{"destroy"}
	if recursive {
		args = append(args, "-r")
	}
	command := zfs(append(args, name)...)
	command.Timeout = destroyTimeout
	return c.do(ctx, command)
}

// Snapshot takes a snapshot; with recursion, also of all children, at the same moment.
func (c *Client) Snapshot(ctx context.Context, name string, recursive bool, properties map[string]string) error {
	options, err := propertyOptions("-o", properties)
	if err := cmp.Or(err, checkSnapshot(name)); err != nil {
		return err
	}
	args := []string{"snapshot"}
	if recursive {
		args = append(args, "-r")
	}
	return c.do(ctx, zfs(slices.Concat(args, options, []string{name})...))
}

// Unmounted returns the properties of a file system that ZFS never mounts by itself, wherever it is in the pool: neither when it is
// created, nor when a property of its parent changes, nor with 'zfs mount -a'. The properties do not apply to volumes.
func Unmounted() map[string]string {
	return map[string]string{"canmount": "noauto", "mountpoint": "none"}
}

// Clone makes a dataset from a snapshot. ZFS mounts a clone at once if the properties say so: give a file system those of Unmounted.
func (c *Client) Clone(ctx context.Context, snapshot, to string, properties map[string]string) error {
	options, err := propertyOptions("-o", properties)
	if err := cmp.Or(err, checkSnapshot(snapshot), checkDataset(to)); err != nil {
		return err
	}
	return c.do(ctx, zfs(slices.Concat([]string{"clone"}, options, []string{snapshot, to})...))
}

// mountOptions apply to everything that is mounted: it contains data, but neither programs nor devices.
const mountOptions = "nosuid,nodev,noexec"

// Mount mounts a file system at its mount point.
func (c *Client) Mount(ctx context.Context, dataset string) error {
	return c.onDataset(ctx, dataset, "mount", "-o", mountOptions)
}

// Unmount unmounts a file system, unless it is in use.
func (c *Client) Unmount(ctx context.Context, dataset string) error {
	return c.onDataset(ctx, dataset, "unmount")
}

func (c *Client) onDataset(ctx context.Context, dataset string, args ...string) error {
	if err := checkDataset(dataset); err != nil {
		return err
	}
	return c.do(ctx, zfs(append(args, dataset)...))
}

// SetProperty sets one property of a dataset or snapshot.
func (c *Client) SetProperty(ctx context.Context, object, name, value string) error {
	if err := cmp.Or(checkEither(object), checkProperty(name), checkValue(name, value),
		without(map[string]string{name: value}, nodeProperties...)); err != nil {
		return err
	}
	return c.do(ctx, zfs("set", name+"="+value, object))
}

// SetProperties sets properties of a dataset in one command, and ZFS sets them in one transaction group. ZFS checks each of them
// separately: after an error, some may be set and others not. SetProperties refuses properties that ZFS sets in a transaction of their own.
func (c *Client) SetProperties(ctx context.Context, dataset string, properties map[string]string) error {
	values, err := propertyOptions("", properties)
	if err := cmp.Or(err, checkDataset(dataset), without(properties, nodeProperties...), without(properties, oneByOne...)); err != nil {
		return err
	}
	args := slices.DeleteFunc(values, func(argument string) bool { return argument == "" })
	return c.do(ctx, zfs(slices.Concat([]string{"set"}, args, []string{dataset})...))
}

// oneByOne are the properties that ZFS sets in a transaction of their own.
var oneByOne = []string{"quota", "refquota", "reservation", "refreservation", "volsize", "filesystem_limit", "snapshot_limit", "version",
	"mountpoint", "canmount", "zoned"}

// InheritProperty clears a property that was set on an object, so that it is inherited again.
func (c *Client) InheritProperty(ctx context.Context, object, name string) error {
	if err := cmp.Or(checkEither(object), checkProperty(name)); err != nil {
		return err
	}
	return c.do(ctx, zfs("inherit", name, object))
}

// Dataset is a line of zfs list.
type Dataset struct {
	Name string
	// Type is filesystem, volume or snapshot.
	Type      string
	GUID      string
	UsedBytes int64
	// ReservedBytes are those of UsedBytes that hold no data: what refreservation of the dataset, and of all below it, keeps free for them.
	ReservedBytes   int64
	AvailableBytes  int64
	ReferencedBytes int64
	// Mounted says whether the dataset is mounted in the node's own namespace. It can be false while a pod still uses the dataset.
	Mounted    bool
	MountPoint string
	// Origin is the snapshot of a clone.
	Origin string
}

var datasetColumns = []string{"name", "type", "guid", "used", "available", "referenced", "mounted", "mountpoint", "origin",
	"usedbyrefreservation"}

// Datasets lists a dataset and everything below it, including snapshots.
func (c *Client) Datasets(ctx context.Context, root string) ([]Dataset, error) {
	if err := checkDataset(root); err != nil {
		return nil, err
	}
	command := zfs("list", "-Hp", "-r", "-t", "filesystem,volume,snapshot", "-o", strings.Join(datasetColumns, ","), root)
	output, err := c.run.Run(ctx, command)
	if err != nil {
		return nil, err
	}
	return parseDatasets(command.String(), string(output))
}

func parseDatasets(command, output string) ([]Dataset, error) {
	var datasets []Dataset
	err := eachRow(command, output, len(datasetColumns), func(fields []string) error {
		dataset := Dataset{Name: fields[0], Type: fields[1], GUID: fields[2], Mounted: fields[6] == "yes",
			MountPoint: unset(fields[7]), Origin: unset(fields[8])}
		for at, value := range map[int]*int64{3: &dataset.UsedBytes, 4: &dataset.AvailableBytes, 5: &dataset.ReferencedBytes,
			9: &dataset.ReservedBytes} {
			read, err := number(fields[at])
			if err != nil {
				return malformed(command, "a whole number as "+datasetColumns[at], fields[at])
			}
			*value = read
		}
		datasets = append(datasets, dataset)
		return nil
	})
	addReserved(datasets)
	return datasets, err
}

// addReserved adds what is reserved for a dataset to all datasets above it, because it is part of their used bytes too.
func addReserved(datasets []Dataset) {
	places, own := map[string]int{}, make([]int64, len(datasets))
	for at, dataset := range datasets {
		places[dataset.Name], own[at] = at, dataset.ReservedBytes
	}
	for at, dataset := range datasets {
		for above := path.Dir(dataset.Name); above != "." && own[at] > 0; above = path.Dir(above) {
			if place, listed := places[above]; listed {
				datasets[place].ReservedBytes += own[at]
			}
		}
	}
}

func unset(value string) string {
	if value == "-" || value == "none" {
		return ""
	}
	return value
}
