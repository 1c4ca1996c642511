package run

import (
	"context"
	"encoding/json"
	"fmt"

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

// driverPage is how many volumes of a driver are read at once: a cluster may have thousands that do not belong to benchmarks.
const driverPage = 500

// listOf returns an empty list for objects of a driver. These are read live and never cached: a cluster may not have their kinds, and a
// cache for a missing kind would prevent the manager from starting.
func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	var list unstructured.UnstructuredList
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	return &list
}

// driverLeft returns the name of an object that the driver still has on the run's pool, or "" if there is none. The object does not name
// its claim, but the pool holds only volumes of this run. If the cluster does not have the driver's kinds, there are no such objects. For
// kinds that were removed while the manager runs, the API server returns 404 permanently.
func (r *Reconciler) driverLeft(ctx context.Context, run *v1alpha1.BenchmarkRun, name string, driver *volume.Driver) (string, error) {
	own := naming.RunPoolName(run, name)
	for next := ""; ; {
		page := listOf(driver.Volumes)
		if err := r.Live.List(ctx, page, client.Limit(driverPage), client.Continue(next)); err != nil {
			if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				return "", nil
			}
			return "", fmt.Errorf("look for what the driver has on pool %s: %w", own, err)
		}
		for i := range page.Items {
			pool, err := driver.PoolOf(page.Items[i].Object)
			if err != nil {
				return "", fmt.Errorf("read the pool of %s %s: %w", driver.Volumes.Kind, page.Items[i].GetName(), err)
			}
			if pool == own {
				return driver.Volumes.Kind + " " + page.Items[i].GetNamespace() + "/" + page.Items[i].GetName(), nil
			}
		}
		if next = page.GetContinue(); next == "" {
			return "", nil
		}
	}
}

// rescan makes a driver look for the new pool immediately, by changing the driver's object for the node.
func (r *Reconciler) rescan(ctx context.Context, run *v1alpha1.BenchmarkRun, name string, node *corev1.Node, driver *volume.Driver) error {
	id, err := driver.NodeID(node)
	if err != nil {
		return err
	}
	found, kind := listOf(driver.Nodes), driver.Nodes.Kind
	if err := r.Live.List(ctx, found, client.MatchingFields{metav1.ObjectNameField: id}); err != nil {
		return fmt.Errorf("look for %s %s of the driver: %w", kind, id, err)
	}
	if len(found.Items) == 0 {
		return fmt.Errorf("%s %s does not exist: is the agent of %s running on node %s? Otherwise write provisioner: %s", kind, id, driver.Title,
			node.Name, volume.WithoutDriver)
	}
	for i := range found.Items {
		if err := r.annotate(ctx, &found.Items[i], v1alpha1.AnnotationRescan, naming.RunPoolName(run, name)); err != nil {
			return err
		}
	}
	return nil
}

// reportDatasets requests that the agent report the properties of datasets that it has not created.
func (r *Reconciler) reportDatasets(ctx context.Context, state *runs.State) error {
	for name, path := range state.Pools.Unasked {
		var pool v1alpha1.BenchmarkPool
		if err := r.Live.Get(ctx, types.NamespacedName{Name: naming.RunPoolName(state.Run, name)}, &pool); err != nil {
			return fmt.Errorf("read the BenchmarkPool of volume %s: %w", name, err)
		}
		if !ofRun(&pool, state.Run) {
			continue
		}
		if err := r.annotate(ctx, &pool, v1alpha1.AnnotationReport, string(path)); err != nil {
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
