package run

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/volume"
)

// The kinds of the driver are read live and never cached: a cluster may not have them, and a cache of a missing kind would prevent
// the manager from starting.
func driverKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: volume.DriverGroup, Version: volume.DriverVersion, Kind: kind}
}

// drivenLeft names the ZFSVolume that the driver still has on the run's pool. A ZFSVolume does not know its claim, but that pool
// holds only ours. Without these kinds there are no such objects: kinds that are removed while the manager runs give a permanent
// 404.
func (r *Reconciler) drivenLeft(ctx context.Context, run *v1alpha1.BenchmarkRun, name string) (string, error) {
	var volumes unstructured.UnstructuredList
	volumes.SetGroupVersionKind(driverKind("ZFSVolumeList"))
	if err := r.Live.List(ctx, &volumes); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("look for what the driver has on pool %s: %w", naming.RunPoolName(run, name), err)
	}
	for i := range volumes.Items {
		on, _, err := unstructured.NestedString(volumes.Items[i].Object, "spec", "poolName")
		if err != nil {
			return "", fmt.Errorf("read the pool of ZFSVolume %s: %w", volumes.Items[i].GetName(), err)
		}
		if pool, _, _ := strings.Cut(on, "/"); pool == naming.RunPoolName(run, name) {
			return "ZFSVolume " + volumes.Items[i].GetNamespace() + "/" + volumes.Items[i].GetName(), nil
		}
	}
	return "", nil
}

// rescan makes the driver look for the new pool immediately instead of once a minute: it does so when its ZFSNode changes.
func (r *Reconciler) rescan(ctx context.Context, run *v1alpha1.BenchmarkRun, name string, node *corev1.Node) error {
	id, err := volume.NodeID(node)
	if err != nil {
		return err
	}
	var found unstructured.UnstructuredList
	found.SetGroupVersionKind(driverKind("ZFSNodeList"))
	if err := r.Live.List(ctx, &found, client.MatchingFields{metav1.ObjectNameField: id}); err != nil {
		return fmt.Errorf("look for ZFSNode %s of the driver: %w", id, err)
	}
	if len(found.Items) == 0 {
		return fmt.Errorf("ZFSNode %s does not exist: is the agent of the OpenEBS ZFS LocalPV driver running on node %s? "+
			"Otherwise write provisioner: Local", id, node.Name)
	}
	for i := range found.Items {
		if err := r.annotate(ctx, &found.Items[i], v1alpha1.AnnotationRescan, naming.RunPoolName(run, name)); err != nil {
			return err
		}
	}
	return nil
}

// reportDatasets requests that the agent reports the properties of the driver's datasets.
func (r *Reconciler) reportDatasets(ctx context.Context, state *runs.State) error {
	for name, dataset := range state.Pools.Datasets {
		var pool v1alpha1.BenchmarkPool
		if err := r.Live.Get(ctx, types.NamespacedName{Name: naming.RunPoolName(state.Run, name)}, &pool); err != nil {
			return fmt.Errorf("read the BenchmarkPool of volume %s: %w", name, err)
		}
		if !ofRun(&pool, state.Run) {
			continue
		}
		if err := r.annotate(ctx, &pool, v1alpha1.AnnotationReport, string(volume.DrivenPath(path.Base(dataset)))); err != nil {
			return err
		}
	}
	return nil
}

// annotate sets an annotation of an object. It writes nothing if the annotation is already set.
func (r *Reconciler) annotate(ctx context.Context, object client.Object, name, value string) error {
	if object.GetAnnotations()[name] == value {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{name: value}}})
	if err != nil {
		return err
	}
	if err := r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("annotate %s with %s: %w", object.GetName(), name, err)
	}
	return nil
}

// renameVolume redirects an operation on the volume of a phase to the dataset that a driver created for it.
func renameVolume(operation *v1alpha1.PoolOperationSpec, datasets map[string]string) {
	for _, dataset := range datasets {
		pool, below, _ := strings.Cut(dataset, "/")
		if operation.Pool != pool {
			continue
		}
		action := &operation.Action
		for _, named := range []*v1alpha1.DatasetPath{
			at(action.Snapshot, func(a *v1alpha1.SnapshotAction) *v1alpha1.DatasetPath { return &a.Dataset }),
			at(action.Replicate, func(a *v1alpha1.ReplicateAction) *v1alpha1.DatasetPath { return &a.Dataset }),
			at(action.Copy, func(a *v1alpha1.CopyAction) *v1alpha1.DatasetPath { return &a.Dataset }),
			at(action.LayoutScore, func(a *v1alpha1.LayoutScoreAction) *v1alpha1.DatasetPath { return &a.Dataset }),
		} {
			if named != nil && *named == naming.RunDataset {
				*named = v1alpha1.DatasetPath(below)
			}
		}
	}
}

// at is a field of an action that may not be there.
func at[T any](action *T, field func(*T) *v1alpha1.DatasetPath) *v1alpha1.DatasetPath {
	if action == nil {
		return nil
	}
	return field(action)
}
