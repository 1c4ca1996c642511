package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/volume"
)

// observeStorage reads the claims of a run, and the pools and PersistentVolumes below them.
func (r *Reconciler) observeStorage(ctx context.Context, state *runs.State) error {
	var claims []runs.Claims
	persistent := map[string]string{}
	for _, wanted := range volume.RunVolumes(state.Run) {
		due := runs.MeaningOfMissingClaim(*state, wanted)
		if due == runs.NotDue && !ending(state.Run) {
			continue
		}
		claim, bound, err := r.observeClaim(ctx, state.Run, naming.ClaimName(state.Run, wanted.Name))
		if err != nil {
			return err
		}
		if wanted.Pool != nil && !claim.Exists {
			behind, err := r.observeBehind(ctx, state.Run, wanted)
			if err != nil {
				return err
			}
			claim = claim.WithLeftovers(behind)
		}
		claim.BindFirst = volume.Of(wanted).BindsFirst()
		persistent[wanted.Name] = bound
		if due == runs.ToCreate && !claim.Exists && !ending(state.Run) {
			state.Unclaimed = append(state.Unclaimed, wanted.Name)
			continue
		}
		claims = append(claims, claim)
	}
	state.Claims = runs.JoinClaims(claims)
	if state.Run.Spec.Target.ZFS == nil {
		return nil
	}
	return r.observePools(ctx, state, persistent)
}

// observeClaim reads a claim and its PersistentVolume. If the claim is absent or being deleted, it is read again from the API server,
// unless that does not matter: before the first phase, creating the claim shows whether it exists, and a teardown waits for the deletion
// anyway.
func (r *Reconciler) observeClaim(ctx context.Context, run *v1alpha1.BenchmarkRun,
	name string) (state runs.Claims, persistent string, err error) {
	key := types.NamespacedName{Namespace: run.Namespace, Name: name}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var claim corev1.PersistentVolumeClaim
		err := reader.Get(ctx, key, &claim)
		switch {
		case apierrors.IsNotFound(err):
			state = runs.Claims{}
		case err != nil:
			return state, "", fmt.Errorf("read PersistentVolumeClaim %s: %w", key, err)
		default:
			problem := ""
			if claim.Status.Phase != corev1.ClaimBound {
				problem, err = r.lastWarning(ctx, run.Namespace, "PersistentVolumeClaim", claim.Name)
			}
			if err != nil {
				return state, "", err
			}
			state = runs.ClaimOf(&claim, string(run.UID), problem)
		}
		expected := state.Deleting && ending(run) && !state.Foreign
		unmade := !state.Exists && run.Spec.Target.ZFS == nil && len(run.Status.Phases) == 0 && !ending(run)
		if state.Exists && !state.Deleting || expected || unmade {
			return state, claim.Spec.VolumeName, nil
		}
	}
	return state, "", nil
}

// observeBehind finds the leftover objects of a volume whose claim does not exist.
func (r *Reconciler) observeBehind(ctx context.Context, run *v1alpha1.BenchmarkRun, wanted volume.RunVolume) (runs.Claims, error) {
	provisioner := volume.Of(wanted)
	if driver := provisioner.Driver(); driver != nil {
		if left, err := r.driverLeft(ctx, run, wanted.Name, driver); err != nil || left != "" {
			return runs.Claims{Some: left != "", Deleting: true, Unwatched: left}, err
		}
	}
	found := provisioner.BackingObject()
	if err := r.Live.Get(ctx, types.NamespacedName{Name: naming.RunPoolName(run, wanted.Name)}, found); err != nil {
		return runs.Claims{}, client.IgnoreNotFound(err)
	}
	return runs.Claims{Some: ofRun(found, run), Deleting: !found.GetDeletionTimestamp().IsZero()}, nil
}

// observePools reads the pools of a run. Absence, deletion and missing readiness are confirmed by the API server.
func (r *Reconciler) observePools(ctx context.Context, state *runs.State, persistent map[string]string) error {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var pools []*v1alpha1.BenchmarkPool
		for _, wanted := range volume.Pools(volume.RunVolumes(state.Run)) {
			name := naming.RunPoolName(state.Run, wanted.Name)
			var pool v1alpha1.BenchmarkPool
			err := reader.Get(ctx, types.NamespacedName{Name: name}, &pool)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("read BenchmarkPool %s: %w", name, err)
			}
			if err != nil {
				pools = append(pools, nil)
				continue
			}
			pools = append(pools, &pool)
		}
		if state.Pools = runs.PoolsOf(state.Run, pools, persistent); state.Pools.Exist && !state.Pools.Deleting {
			return nil
		}
	}
	return r.observeEarlier(ctx, state)
}

// ofRun reports whether a cluster-scoped object was created for a run.
func ofRun(object client.Object, run *v1alpha1.BenchmarkRun) bool {
	return object.GetLabels()[v1alpha1.LabelRunUID] == string(run.UID)
}

// createPools creates the pools of the run. Existing ones stay as they are.
func (r *Reconciler) createPools(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	for _, wanted := range volume.Pools(volume.RunVolumes(run)) {
		if err := r.create(ctx, run, volume.Pool(run, wanted, runs.ClusterLabels(run))); err != nil {
			return err
		}
	}
	return nil
}

// createVolumes creates the claims, and the objects that they need, for the volumes of the target, and for volumes that phases have created
// and that are mounted.
func (r *Reconciler) createVolumes(ctx context.Context, state *runs.State) error {
	run := state.Run
	for _, wanted := range volume.RunVolumes(run) {
		switch {
		case wanted.MadeIn == "" && state.Claims.Exists,
			wanted.MadeIn != "" && (!slices.Contains(state.Unclaimed, wanted.Name) || state.Pools.Datasets[wanted.Name] == ""):
			continue
		}
		site, err := r.siteOf(ctx, run, wanted)
		if err != nil {
			return err
		}
		provisioner := volume.Of(wanted)
		objects, err := provisioner.Objects(run, wanted, site)
		if err != nil {
			return err
		}
		if driver := provisioner.Driver(); driver != nil {
			if err := r.rescan(ctx, run, wanted.Name, site.Node, driver); err != nil {
				return err
			}
		}
		for _, object := range objects {
			if err := r.create(ctx, run, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// siteOf reads the data that the objects of a volume need.
func (r *Reconciler) siteOf(ctx context.Context, run *v1alpha1.BenchmarkRun, wanted volume.RunVolume) (volume.Site, error) {
	site := volume.Site{Labels: runs.Labels(run), ClusterLabels: runs.ClusterLabels(run), Owner: ownerReference(run)}
	if wanted.Pool == nil {
		return site, nil
	}
	var node corev1.Node
	if err := r.Client.Get(ctx, types.NamespacedName{Name: run.Spec.NodeName}, &node); err != nil {
		return site, fmt.Errorf("read node %s: %w", run.Spec.NodeName, err)
	}
	var pool v1alpha1.BenchmarkPool
	if err := r.Client.Get(ctx, types.NamespacedName{Name: naming.RunPoolName(run, wanted.PoolOf)}, &pool); err != nil {
		return site, fmt.Errorf("read the BenchmarkPool of volume %s: %w", wanted.Name, err)
	}
	site.Node, site.PoolBytes = &node, pool.Status.SizeBytes
	return site, nil
}

// deleteVolumes deletes the run's own claims, and then the cluster-scoped objects created for them.
func (r *Reconciler) deleteVolumes(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	gone := true
	for _, wanted := range volume.RunVolumes(run) {
		left, err := r.deleteClaim(ctx, run, naming.ClaimName(run, wanted.Name))
		if err != nil {
			return err
		}
		gone = gone && !left
	}
	if !gone || run.Spec.Target.ZFS == nil {
		return nil
	}
	for _, wanted := range volume.RunVolumes(run) {
		if err := r.deleteClusterWide(ctx, run, naming.RunPoolName(run, wanted.Name), volume.Of(wanted).BackingObject()); err != nil {
			return err
		}
	}
	return nil
}

// deleteClaim deletes a claim of the run. The deletion is conditional on the UID and the version that were checked to be the run's. If the
// cached version is outdated, the claim is read live and checked again.
func (r *Reconciler) deleteClaim(ctx context.Context, run *v1alpha1.BenchmarkRun, name string) (left bool, err error) {
	key := types.NamespacedName{Namespace: run.Namespace, Name: name}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var claim corev1.PersistentVolumeClaim
		if err = reader.Get(ctx, key, &claim); apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		if !naming.IsControlledBy(&claim, run) {
			continue
		}
		if err = r.deleteExactly(ctx, &claim); !apierrors.IsConflict(err) {
			return true, err
		}
	}
	return false, client.IgnoreNotFound(err)
}

// deletePools deletes the run's own pools. Their agent destroys them.
func (r *Reconciler) deletePools(ctx context.Context, run *v1alpha1.BenchmarkRun) error {
	for _, wanted := range volume.Pools(volume.RunVolumes(run)) {
		if err := r.deleteClusterWide(ctx, run, naming.RunPoolName(run, wanted.Name), &v1alpha1.BenchmarkPool{}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) deleteClusterWide(ctx context.Context, run *v1alpha1.BenchmarkRun, name string, object client.Object) error {
	if err := r.Live.Get(ctx, types.NamespacedName{Name: name}, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !ofRun(object, run) {
		return nil
	}
	return r.deleteExactly(ctx, object)
}

// deleteExactly deletes an object if it is still the version that was read.
func (r *Reconciler) deleteExactly(ctx context.Context, object client.Object) error {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	return client.IgnoreNotFound(r.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}

// runOfClusterWide returns the run of a cluster-scoped object.
func runOfClusterWide(_ context.Context, object client.Object) []reconcile.Request {
	labels := object.GetLabels()
	if labels[v1alpha1.LabelRun] == "" || labels[v1alpha1.LabelNamespace] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: labels[v1alpha1.LabelNamespace],
		Name: labels[v1alpha1.LabelRun]}}}
}
