package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/host"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs"
)

// observed is the planner's State, with data that only the status and the actions need.
type observed struct {
	pools.State
	// ashifts are the ashifts of vdevs by their name in the tree, if this OpenZFS version reports them.
	ashifts map[string]string
	// lookedOn are the disks on which the agent has searched for a pool that is not imported.
	lookedOn []string
	// gone are the disks that the status names and the live pool does not have.
	gone []string
	// cleared holds, for each disk that has left the pool and whose label was to be cleared, the error, or nil if it was cleared.
	cleared map[string]error
}

// observe reads the state of a pool. It concludes that the pool is absent only from a successful list: programs also print "no such file"
// when they cannot reach the kernel.
func (r *Reconciler) observe(ctx context.Context, pool *v1alpha1.BenchmarkPool) (observed, error) {
	state := observed{State: pools.State{Pool: pool, Policy: r.Policy, Multihost: r.Multihost}}
	var err error
	deleting := !pool.DeletionTimestamp.IsZero()
	if deleting {
		if state.Released, err = r.Releases.Recorded(pool.UID); err != nil {
			return state, err
		}
	}
	if state.Version, err = r.ZFS.Version(ctx); err != nil {
		return state, fmt.Errorf("read the version of ZFS: %w", err)
	}
	live, err := r.ZFS.Pools(ctx)
	if err != nil {
		return state, fmt.Errorf("list the pools of node %s: %w", r.NodeName, err)
	}
	at := slices.IndexFunc(live, func(p zfs.PoolSummary) bool { return p.Name == naming.PoolName(pool) })
	if at < 0 {
		if state.HostName, err = r.ZFS.HostName(ctx); err != nil {
			return state, fmt.Errorf("read the host name that node %s writes into labels: %w", r.NodeName, err)
		}
		if state.Stopped, err = r.Attempts.Survived(pool.UID); err != nil {
			return state, err
		}
		return state, r.observeAbsent(ctx, &state)
	}
	if err := r.observeLive(ctx, &state, live[at]); err != nil {
		return state, fmt.Errorf("read pool %s: %w", live[at].Name, err)
	}
	if !state.Live.OwnedBy(string(pool.UID)) {
		// If the object is being deleted, its pool may have left labels on the disks. Otherwise, the advice to the user depends on whether
		// the disks are free.
		return state, r.observeDisks(ctx, &state)
	}
	if err := r.observeMounts(&state); err != nil {
		return state, err
	}
	if err := r.observeOperations(ctx, &state); err != nil {
		return state, err
	}
	for _, vdev := range pools.Gone(pool, state.Live) {
		state.gone = append(state.gone, vdev.Name)
	}
	if state.Live.Look() {
		return state, r.observeLook(ctx, &state)
	}
	if deleting {
		if state.Users, err = r.Disks.PoolUsers(state.Live.Name, naming.MountPoints(pool)...); err != nil {
			return state, fmt.Errorf("find the users of pool %s: %w", state.Live.Name, err)
		}
		return state, r.observeGone(ctx, &state)
	}
	if outdated := state.OutdatedDataset(); outdated != nil {
		if state.Users, err = r.Disks.PoolUsers(outdated.Name, naming.MountPoints(pool)...); err != nil {
			return state, fmt.Errorf("find the users of dataset %s: %w", outdated.Name, err)
		}
	}
	if pools.SameDisks(pool, state.Live) {
		return state, r.observeGone(ctx, &state)
	}
	return state, r.observeDisks(ctx, &state)
}

// observeGone checks only the disks that have left the live pool.
func (r *Reconciler) observeGone(ctx context.Context, state *observed) error {
	if len(state.gone) == 0 {
		return nil
	}
	return r.survey(ctx, state, state.gone)
}

// observeLook reads the labels of a pool that the agent has imported only to look at it: they say whether another host has it.
func (r *Reconciler) observeLook(ctx context.Context, state *observed) error {
	var err error
	if state.HostName, err = r.ZFS.HostName(ctx); err != nil {
		return fmt.Errorf("read the host name that node %s writes into labels: %w", r.NodeName, err)
	}
	return r.survey(ctx, state, objects.ClaimedDevices(state.Pool))
}

// observeAbsent searches for the pool on its disks. It checks them first: ZFS would search a silent disk forever, and block every other
// pool of the node meanwhile. And the kernel reads in each pool that it finds: a broken one may stop the node.
func (r *Reconciler) observeAbsent(ctx context.Context, state *observed) error {
	claimed := objects.ClaimedDevices(state.Pool)
	err := r.survey(ctx, state, claimed)
	if err != nil {
		return err
	}
	for _, path := range guard.StablePaths(claimed) {
		if errors.Is(state.Disks[path].Refusal, host.Silent) {
			return nil
		}
		if r.Policy.MayOpen(state.Pool, path) {
			state.lookedOn = append(state.lookedOn, path)
		}
	}
	if !slices.ContainsFunc(state.lookedOn, func(path string) bool { return !state.Disks[path].Blank() }) {
		return nil
	}
	if state.Unsearched = state.StopsNode(); state.Unsearched {
		return nil
	}
	return r.Attempts.Search(state.Pool.UID, func() error {
		if state.Importable, err = r.ZFS.Importable(ctx, naming.PoolName(state.Pool), state.lookedOn); err != nil {
			return fmt.Errorf("look for pools that are not imported: %w", err)
		}
		return nil
	})
}

// observeMounts compares the mounts that ZFS reports with those of the node.
func (r *Reconciler) observeMounts(state *observed) error {
	var err error
	if state.Nested, err = r.Disks.NestedMounts(state.Live.Name, naming.MountedPoints(state.Pool)...); err != nil {
		return fmt.Errorf("look for mounts within the datasets of pool %s: %w", state.Live.Name, err)
	}
	for _, dataset := range state.Pool.Spec.Datasets {
		name, point := naming.DatasetName(state.Pool, dataset), naming.MountPoint(state.Live.Name, dataset.Path)
		if !dataset.Mounted || !slices.ContainsFunc(state.Live.Datasets, func(d zfs.Dataset) bool {
			return d.Name == name && d.Mounted && d.MountPoint == point
		}) {
			continue
		}
		placed, err := r.Disks.Mounted(naming.VolumesFolder, point, name)
		if err != nil {
			return fmt.Errorf("look at the mount point of dataset %s: %w", name, err)
		}
		if !placed {
			state.Unplaced = append(state.Unplaced, name)
		}
	}
	return nil
}

// observeOperations finds the operations that may have created datasets that the spec awaits, and the disks that operations have taken
// offline. The cache may hold many operations, so they are not copied, and not even listed if there is nothing to find.
func (r *Reconciler) observeOperations(ctx context.Context, state *observed) error {
	awaits, inOrder := state.Unfinished(), state.Live.Status.Health().Good()
	if !awaits && inOrder {
		return nil
	}
	var list v1alpha1.PoolOperationList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list PoolOperations on BenchmarkPool %s: %w", state.Pool.Name, err)
	}
	state.Finished = map[string]bool{}
	for i := range list.Items {
		operation, uid := &list.Items[i], string(state.Pool.UID)
		if operation.Spec.NodeName != r.NodeName {
			continue
		}
		if operation.Status.Outcome == v1alpha1.OutcomeSucceeded &&
			slices.Contains([]string{operation.Status.PoolUID, operation.Status.ToPoolUID}, uid) {
			state.Finished[string(operation.UID)] = true
		}
		state.Offlined = append(state.Offlined, offlined(operation, state.Pool)...)
	}
	return nil
}

func (r *Reconciler) observeLive(ctx context.Context, state *observed, summary zfs.PoolSummary) error {
	live := &pools.LivePool{PoolSummary: summary}
	state.Live = live
	var err error
	if live.Status, err = r.ZFS.Status(ctx, state.Version, summary.Name); err != nil {
		return err
	}
	if err = r.ZFS.AuxiliaryGUIDs(ctx, &live.Status); err != nil {
		return err
	}
	if live.Properties, err = r.ZFS.PoolProperties(ctx, summary.Name, "all"); err != nil {
		return err
	}
	all, err := r.ZFS.Datasets(ctx, summary.Name)
	if err != nil {
		return err
	}
	for _, dataset := range all {
		if dataset.Type == "snapshot" {
			live.Snapshots = append(live.Snapshots, dataset.Name)
		}
	}
	live.Datasets = slices.DeleteFunc(all, func(d zfs.Dataset) bool { return d.Type == "snapshot" })
	objects, named := []string{summary.Name}, []string{}
	for _, dataset := range state.Pool.Spec.Datasets {
		named = append(named, naming.DatasetName(state.Pool, dataset))
	}
	if reported := pools.ReportedDataset(state.Pool); !slices.Contains(named, reported) {
		named = append(named, reported)
	}
	for _, name := range named {
		if slices.ContainsFunc(live.Datasets, func(d zfs.Dataset) bool { return d.Name == name }) {
			objects = append(objects, name)
		}
	}
	if live.DatasetProperties, err = r.ZFS.DatasetProperties(ctx, []string{"all"}, objects...); err != nil {
		return err
	}
	if err := r.observeMarks(ctx, state, objects); err != nil {
		return err
	}
	if !state.Version.VdevProperties() {
		return nil
	}
	ashifts, err := r.ZFS.VdevProperties(ctx, summary.Name, "ashift")
	state.ashifts = map[string]string{}
	for _, property := range ashifts {
		state.ashifts[property.Object] = property.Value
	}
	return err
}

// observeMarks finds out which other datasets operations have created. These matter only when the pool is to be destroyed.
func (r *Reconciler) observeMarks(ctx context.Context, state *observed, known []string) error {
	var others []string
	for _, dataset := range state.Live.Datasets {
		if !slices.Contains(known, dataset.Name) {
			others = append(others, dataset.Name)
		}
	}
	if len(others) == 0 || state.Pool.DeletionTimestamp.IsZero() {
		return nil
	}
	marks, err := r.ZFS.DatasetProperties(ctx, []string{naming.PropertyOperation}, others...)
	state.Live.DatasetProperties = append(state.Live.DatasetProperties, marks...)
	return err
}

// observeDisks checks the disks of the spec, those that have left the live pool and, for the remains of a pool, its last known disks, and
// finds the disks of the live pool and of the other BenchmarkPools of the node.
func (r *Reconciler) observeDisks(ctx context.Context, state *observed) error {
	wanted := objects.SpecDevices(state.Pool)
	if !state.Pool.DeletionTimestamp.IsZero() {
		wanted = objects.ClaimedDevices(state.Pool)
	}
	for _, path := range state.gone {
		if !slices.Contains(wanted, path) {
			wanted = append(wanted, path)
		}
	}
	return r.survey(ctx, state, wanted)
}

// survey checks some disks, and finds the disks of the live pool and of the other BenchmarkPools.
func (r *Reconciler) survey(ctx context.Context, state *observed, wanted []string) error {
	var err error
	if state.Rivals, err = guard.Rivals(ctx, r.Live, state.Pool); err != nil {
		return err
	}
	var leaves []zfs.VdevStatus
	if state.Live != nil {
		leaves = state.Live.Status.Leaves()
	}
	pool := state.Pool
	granted := func(path string) bool { // a disk that has left the pool is not opened without a grant
		return r.Policy.MayOpen(pool, path) && (!slices.Contains(state.gone, path) || r.Policy.Allows(pool.Spec.Namespace, path))
	}
	state.Disks = guard.Survey(r.Disks, pool, r.Policy, wanted, granted, leaves, state.Rivals)
	return nil
}
