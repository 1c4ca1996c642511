package operation

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers/guard"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/zfs"
)

// observe reads the state of an operation.
func (r *Reconciler) observe(ctx context.Context, operation *v1alpha1.PoolOperation) (operations.State, error) {
	begun, _ := r.begun.Load(client.ObjectKeyFromObject(operation))
	state := operations.State{Operation: operation, Now: r.Clock.Now(), Agent: r.Agent, Begun: begun == operation.UID, Policy: r.Policy,
		Job: r.jobs.look(operation.UID)}
	if state.Late() {
		return state, nil
	}
	if err := r.observeParameter(&state); err != nil {
		return state, err
	}
	if operation.Status.Outcome != "" {
		return state, nil
	}
	if err := r.observePools(ctx, &state); err != nil {
		return state, err
	}
	if operation.Status.StartedAt == nil {
		var known v1alpha1.PoolOperationList
		if err := r.Client.List(ctx, &known); err != nil {
			return state, fmt.Errorf("list PoolOperations: %w", err)
		}
		if state.Others = known.Items; state.Queued() { // there may be many operations, and their order does not depend on ZFS
			return state, nil
		}
	}
	var err error
	if state.Live, err = r.livePool(ctx, state.Pool); err != nil {
		return state, err
	}
	if state.ToLive, err = r.livePool(ctx, state.ToPool); err != nil {
		return state, err
	}
	if state.Live == nil {
		return state, nil
	}
	if err := r.observeObjects(ctx, &state); err != nil {
		return state, err
	}
	return state, r.observeDisks(ctx, &state)
}

// observePools reads the BenchmarkPools that the action names, even for an operation that still waits: they are recorded when first
// seen.
func (r *Reconciler) observePools(ctx context.Context, state *operations.State) error {
	var err error
	if state.Pool, err = r.benchmarkPool(ctx, state.Operation.Spec.Pool); err != nil {
		return err
	}
	if to := operate.ToPool(&state.Operation.Spec.Action); to != "" {
		state.ToPool, err = r.benchmarkPool(ctx, to)
	}
	return err
}

// benchmarkPool reads a BenchmarkPool from the API server. It returns nil if there is none.
func (r *Reconciler) benchmarkPool(ctx context.Context, name string) (*v1alpha1.BenchmarkPool, error) {
	var pool v1alpha1.BenchmarkPool
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("read BenchmarkPool %s: %w", name, err)
		}
		return nil, nil
	}
	return &pool, nil
}

// livePool reads the imported pool of a BenchmarkPool. It returns nil if no imported pool carries its mark.
func (r *Reconciler) livePool(ctx context.Context, pool *v1alpha1.BenchmarkPool) (*operations.Pool, error) {
	if pool == nil || pool.Spec.NodeName != r.NodeName {
		return nil, nil
	}
	name := naming.PoolName(pool)
	imported, err := r.ZFS.Pools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the pools of node %s: %w", r.NodeName, err)
	}
	at := slices.IndexFunc(imported, func(p zfs.PoolSummary) bool { return p.Name == name })
	if at < 0 {
		return nil, nil
	}
	marks, err := r.ZFS.DatasetProperties(ctx, []string{naming.PropertyUID, pools.PropertySpec, operations.PropertyBegun}, name)
	if err != nil {
		return nil, fmt.Errorf("read the marks of pool %s: %w", name, err)
	}
	known := pools.LivePool{PoolSummary: imported[at], DatasetProperties: marks}
	if !known.OwnedBy(string(pool.UID)) {
		return nil, nil
	}
	live := &operations.Pool{PoolSummary: imported[at], Marks: marks}
	if err := r.observeImport(ctx, live); err != nil {
		return nil, err
	}
	version, err := r.ZFS.Version(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the version of ZFS: %w", err)
	}
	if live.Status, err = r.ZFS.Status(ctx, version, name); err != nil {
		return nil, fmt.Errorf("read pool %s: %w", name, err)
	}
	return live, nil
}

// observeImport reads how a live pool was imported.
func (r *Reconciler) observeImport(ctx context.Context, live *operations.Pool) error {
	properties, err := r.ZFS.PoolProperties(ctx, live.Name, "load_guid", "readonly")
	if err != nil {
		return fmt.Errorf("read pool %s: %w", live.Name, err)
	}
	for _, property := range properties {
		switch property.Name {
		case "load_guid":
			live.LoadGUID = property.Value
		case "readonly":
			live.ReadOnly = property.Value == "on"
		}
	}
	return nil
}

// observeDisks checks the disks of the action, and identifies those of the pool and those that others claim.
func (r *Reconciler) observeDisks(ctx context.Context, state *operations.State) error {
	devices := operations.OperationDevices(state.Operation.Spec.Action)
	if len(devices) == 0 {
		return nil
	}
	var err error
	if state.Rivals, err = guard.Rivals(ctx, r.Live, state.Pool); err != nil {
		return err
	}
	state.Disks = guard.Survey(r.Disks, state.Pool, r.Policy, devices, func(path string) bool {
		return r.Policy.Allows(state.Pool.Spec.Namespace, path)
	}, state.Live.Status.Leaves(), state.Rivals)
	return nil
}

// observeObjects reads the datasets and snapshots of the action, and the users of a pool or dataset that must be unused.
func (r *Reconciler) observeObjects(ctx context.Context, state *operations.State) error {
	dataset := operate.Dataset(&state.Operation.Spec.Action)
	if dataset != nil {
		state.Source.Name = operations.OperationDataset(state.Pool, *dataset)
	}
	if observe := kindOf(*state).observe; observe != nil {
		return observe(r, ctx, state)
	}
	if dataset == nil {
		return nil
	}
	return r.lookUp(ctx, state.Live.Name, &state.Source)
}

// observeUse finds the users of a pool or dataset that must be unused.
func (r *Reconciler) observeUse(state *operations.State, name string, own ...string) error {
	var err error
	if state.Users, err = r.Disks.PoolUsers(name, own...); err != nil {
		return fmt.Errorf("find the users of %s: %w", name, err)
	}
	return nil
}

// observeProperties reads the properties of a dataset, and whether its mark is right.
func (r *Reconciler) observeProperties(ctx context.Context, state *operations.State) error {
	err := r.lookUp(ctx, state.Live.Name, &state.Source)
	if err != nil || !state.Source.Exists {
		return err
	}
	if state.Properties, err = r.ZFS.DatasetProperties(ctx, []string{"all"}, state.Source.Name); err != nil {
		return fmt.Errorf("read the properties of %s: %w", state.Source.Name, err)
	}
	if state.Correction() != "" {
		state.Leftovers = []string{"a mark that names other properties than dataset " + state.Source.Name + " has"}
	}
	return nil
}

// lookUp reads datasets and snapshots of a pool by name, with the mark of the operation that created them.
func (r *Reconciler) lookUp(ctx context.Context, pool string, objects ...*operations.Object) error {
	all, err := r.ZFS.Datasets(ctx, pool)
	if err != nil {
		return fmt.Errorf("list the datasets of pool %s: %w", pool, err)
	}
	for _, object := range objects {
		at := slices.IndexFunc(all, func(d zfs.Dataset) bool { return d.Name == object.Name })
		if object.Name == "" || at < 0 {
			continue
		}
		mark, err := r.mark(ctx, object.Name)
		if err != nil {
			return err
		}
		name := object.Name
		*object = operations.Object{Name: name, Exists: true, Dataset: all[at], Mark: mark}
	}
	return nil
}

// mark returns the UID of the operation that created a dataset or snapshot. An inherited mark does not count.
func (r *Reconciler) mark(ctx context.Context, name string) (string, error) {
	properties, err := r.ZFS.DatasetProperties(ctx, []string{naming.PropertyOperation}, name)
	if err != nil {
		return "", fmt.Errorf("find the operation that created %s: %w", name, err)
	}
	for _, property := range properties {
		if property.Local() {
			return property.Value, nil
		}
	}
	return "", nil
}
