package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/plan"
	"github.com/storagebench/storagebench/internal/zfs"
	"github.com/storagebench/storagebench/internal/zfs/device"
)

// observed is what the planner decides on, and what only the status tells.
type observed struct {
	plan.PoolState
	version zfs.Version
	// ashifts of vdevs by their name in the tree, where this version of OpenZFS tells.
	ashifts map[string]string
}

// observe gathers all that is known of a pool. That it is not there is concluded only from a list that was printed:
// programs also say "no such file" when they cannot reach the kernel.
func (r *Reconciler) observe(ctx context.Context, pool *v1alpha1.BenchmarkPool) (observed, error) {
	state := observed{PoolState: plan.PoolState{Pool: pool, Policy: r.Policy}}
	var err error
	if state.version, err = r.ZFS.Version(ctx); err != nil {
		return state, fmt.Errorf("ask for the version of ZFS: %w", err)
	}
	pools, err := r.ZFS.Pools(ctx)
	if err != nil {
		return state, fmt.Errorf("list the pools of node %s: %w", r.NodeName, err)
	}
	deleting := !pool.DeletionTimestamp.IsZero()
	at := slices.IndexFunc(pools, func(p zfs.PoolSummary) bool { return p.Name == plan.PoolName(pool) })
	if at < 0 {
		if state.Importable, err = r.ZFS.Importable(ctx); err != nil {
			return state, fmt.Errorf("look for pools that are not imported: %w", err)
		}
		return state, r.observeDisks(ctx, &state)
	}
	if err := r.observeLive(ctx, &state, pools[at]); err != nil {
		return state, fmt.Errorf("look at pool %s: %w", pools[at].Name, err)
	}
	if !state.Live.OwnedBy(string(pool.UID)) {
		// A pool that is being deleted may have left labels elsewhere.
		if deleting {
			return state, r.observeDisks(ctx, &state)
		}
		return state, nil
	}
	if deleting {
		if state.Users, err = r.Disks.PoolUsers(state.Live.Name); err != nil {
			return state, fmt.Errorf("find out who uses pool %s: %w", state.Live.Name, err)
		}
		return state, nil
	}
	if plan.SameWords(pool, state.Live) {
		return state, nil
	}
	return state, r.observeDisks(ctx, &state)
}

func (r *Reconciler) observeLive(ctx context.Context, state *observed, summary zfs.PoolSummary) error {
	live := &plan.LivePool{PoolSummary: summary}
	state.Live = live
	var err error
	if live.Status, err = r.ZFS.Status(ctx, state.version, summary.Name); err != nil {
		return err
	}
	if live.Properties, err = r.ZFS.PoolProperties(ctx, summary.Name, "all"); err != nil {
		return err
	}
	all, err := r.ZFS.Datasets(ctx, summary.Name)
	if err != nil {
		return err
	}
	live.Datasets = slices.DeleteFunc(all, func(d zfs.Dataset) bool { return d.Type == "snapshot" })
	objects := []string{summary.Name}
	for _, dataset := range state.Pool.Spec.Datasets {
		name := plan.DatasetName(state.Pool, dataset)
		if slices.ContainsFunc(live.Datasets, func(d zfs.Dataset) bool { return d.Name == name }) {
			objects = append(objects, name)
		}
	}
	if live.DatasetProperties, err = r.ZFS.DatasetProperties(ctx, []string{"all"}, objects...); err != nil {
		return err
	}
	if !state.version.VdevProperties() {
		return nil
	}
	ashifts, err := r.ZFS.VdevProperties(ctx, summary.Name, "ashift")
	state.ashifts = map[string]string{}
	for _, property := range ashifts {
		state.ashifts[property.Object] = property.Value
	}
	return err
}

// observeDisks looks at the disks of the spec, of the live pool and of the other BenchmarkPools of the node, which are
// read from the API server: who has the older claim must not depend on a cache that lags.
func (r *Reconciler) observeDisks(ctx context.Context, state *observed) error {
	var pools v1alpha1.BenchmarkPoolList
	if err := r.Live.List(ctx, &pools); err != nil {
		return fmt.Errorf("list BenchmarkPools: %w", err)
	}
	for _, other := range pools.Items {
		if other.Spec.NodeName == r.NodeName && other.UID != state.Pool.UID {
			state.Rivals = append(state.Rivals, other)
		}
	}
	state.Disks = map[string]plan.PoolDisk{}
	for _, path := range plan.SpecDevices(state.Pool) {
		state.Disks[path] = r.look(path, state.Pool.Spec.PoolTemplate)
	}
	var others []string
	if state.Live != nil {
		for _, leaf := range state.Live.Status.Leaves() {
			others = append(others, plan.LeafPaths(leaf)...)
		}
	}
	for i := range state.Rivals {
		others = append(others, plan.SpecDevices(&state.Rivals[i])...)
	}
	for _, path := range others {
		if _, seen := state.Disks[path]; !seen && strings.HasPrefix(path, "/dev/disk/") {
			state.Disks[path] = r.look(path, v1alpha1.PoolTemplate{})
		}
	}
	return nil
}

// look checks a disk, as one for reuse if the spec names its serial number and its old contents are in the way.
func (r *Reconciler) look(path string, template v1alpha1.PoolTemplate) plan.PoolDisk {
	wish := device.Wish{Path: path, MinBytes: minBytes(template)}
	disk, refusal := r.Disks.Check(wish)
	if refusal == nil || template.Reuse == nil || !slices.Contains(template.Reuse.Serials, disk.Serial) {
		return plan.PoolDisk{Disk: disk, Refusal: refusal}
	}
	wish.Reuse = disk.Serial
	disk, refusal = r.Disks.Check(wish)
	if refusal != nil {
		return plan.PoolDisk{Disk: disk, Refusal: refusal}
	}
	return plan.PoolDisk{Disk: disk, Reuse: wish.Reuse}
}

func minBytes(template v1alpha1.PoolTemplate) int64 {
	if template.MinDeviceSize == nil {
		return 0
	}
	return template.MinDeviceSize.Value()
}

// errNotOurs says that a pool does not carry this object's mark, or is another than was looked at.
var errNotOurs = errors.New("the pool is not this BenchmarkPool's")

// prove reads from ZFS, at this moment, whose a pool is and that it is the one that was meant.
func (r *Reconciler) prove(ctx context.Context, pool *v1alpha1.BenchmarkPool, guid string) error {
	name := plan.PoolName(pool)
	summary, err := r.ZFS.Pool(ctx, name)
	if err != nil {
		return fmt.Errorf("confirm which pool %s is: %w", name, err)
	}
	if summary.GUID != guid {
		return fmt.Errorf("pool %s has guid %s, meant was %s: %w", name, summary.GUID, guid, errNotOurs)
	}
	marks, err := r.ZFS.DatasetProperties(ctx, []string{plan.PropertyUID}, name)
	if err != nil {
		return fmt.Errorf("confirm whose pool %s is: %w", name, err)
	}
	live := plan.LivePool{PoolSummary: summary, DatasetProperties: marks}
	if !live.OwnedBy(string(pool.UID)) {
		return fmt.Errorf("pool %s (guid %s) does not carry %s=%s: %w", name, guid, plan.PropertyUID, pool.UID, errNotOurs)
	}
	return nil
}
