package sim

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// garbage is the graph of owners and what they own.
type garbage struct {
	*pass
	objects []*metav1.PartialObjectMetadata
	byUID   map[types.UID]*metav1.PartialObjectMetadata
	owned   map[types.UID][]*metav1.PartialObjectMetadata
	exists  map[types.UID]bool // answers of the API server about owners that were not listed
}

// collect plays the garbage collector for Jobs, pods, claims, ConfigMaps, benchmarks and runs.
func (p *pass) collect(ctx context.Context) error {
	g := &garbage{
		pass: p, byUID: map[types.UID]*metav1.PartialObjectMetadata{},
		owned: map[types.UID][]*metav1.PartialObjectMetadata{}, exists: map[types.UID]bool{},
	}
	if err := g.gather(ctx); err != nil {
		return fmt.Errorf("look for garbage: %w", err)
	}
	for _, object := range g.objects {
		var err error
		if object.DeletionTimestamp != nil {
			err = g.letGo(ctx, object)
		} else if len(object.OwnerReferences) > 0 {
			err = g.judge(ctx, object)
		}
		if err != nil {
			return fmt.Errorf("collect %s %s/%s: %w", object.Kind, object.Namespace, object.Name, err)
		}
	}
	return nil
}

// gather builds the graph.
func (g *garbage) gather(ctx context.Context) error {
	for i := range g.seenJobs {
		g.add(batchv1.SchemeGroupVersion.WithKind("Job"), &g.seenJobs[i].ObjectMeta)
	}
	for i := range g.seenPods {
		g.add(corev1.SchemeGroupVersion.WithKind("Pod"), &g.seenPods[i].ObjectMeta)
	}
	for i := range g.seenClaims {
		g.add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), &g.seenClaims[i].ObjectMeta)
	}
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		v1alpha1.GroupVersion.WithKind("BenchmarkRun"),
		v1alpha1.GroupVersion.WithKind("StorageBenchmark"),
	}
	found := make([][]metav1.PartialObjectMetadata, len(kinds))
	reads := make([]func() error, len(kinds))
	for i, kind := range kinds {
		reads[i] = func() (err error) {
			var list metav1.PartialObjectMetadataList
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			found[i], err = gather(ctx, g.Cluster, &list, func() []metav1.PartialObjectMetadata { return list.Items })
			return err
		}
	}
	err := inParallel(reads...)
	for i, kind := range kinds {
		for k := range found[i] {
			g.add(kind, &found[i][k].ObjectMeta)
		}
	}
	return err
}

// add puts an object into the graph.
func (g *garbage) add(kind schema.GroupVersionKind, meta *metav1.ObjectMeta) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: *meta}
	object.SetGroupVersionKind(kind)
	g.objects = append(g.objects, object)
	g.byUID[object.UID] = object
	for _, owner := range object.OwnerReferences {
		g.owned[owner.UID] = append(g.owned[owner.UID], object)
	}
}

// letGo does what the finalizers of a deleted object require: orphaning, or foreground deletion.
func (g *garbage) letGo(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	switch {
	case slices.Contains(object.Finalizers, metav1.FinalizerOrphanDependents):
		for _, dependent := range g.owned[object.UID] {
			if err := g.disown(ctx, dependent, func(owner metav1.OwnerReference) bool { return owner.UID == object.UID }); err != nil {
				return err
			}
		}
		return g.dropFinalizer(ctx, object, metav1.FinalizerOrphanDependents)
	case slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents):
		return g.deleteDependents(ctx, object)
	}
	return nil
}

// deleteDependents continues a foreground deletion: dependents that block it are deleted or, if they have another owner
// that stays, taken from this one. With the last of them the object is deleted.
func (g *garbage) deleteDependents(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	blocked := false
	for _, dependent := range g.owned[object.UID] {
		if !blocks(dependent, object.UID) {
			continue
		}
		blocked = true
		if dependent.DeletionTimestamp != nil {
			continue
		}
		stays, err := g.hasOtherOwner(ctx, dependent, object.UID)
		if err != nil {
			return err
		}
		if stays {
			err = g.disown(ctx, dependent, func(owner metav1.OwnerReference) bool { return owner.UID == object.UID })
		} else {
			err = g.remove(ctx, dependent, len(g.owned[dependent.UID]) > 0)
		}
		if err != nil {
			return err
		}
	}
	if blocked {
		return nil
	}
	return g.dropFinalizer(ctx, object, metav1.FinalizerDeleteDependents)
}

// hasOtherOwner reports whether an object has another owner, one that is not itself deleted in the foreground.
func (g *garbage) hasOtherOwner(ctx context.Context, object *metav1.PartialObjectMetadata, than types.UID) (bool, error) {
	for _, owner := range object.OwnerReferences {
		if owner.UID == than {
			continue
		}
		if seen := g.byUID[owner.UID]; seen != nil && seen.DeletionTimestamp != nil &&
			slices.Contains(seen.Finalizers, metav1.FinalizerDeleteDependents) {
			continue
		}
		if there, err := g.there(ctx, object.Namespace, owner); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// blocks reports whether an object keeps its owner from being removed in a foreground deletion.
func blocks(object *metav1.PartialObjectMetadata, owner types.UID) bool {
	return slices.ContainsFunc(object.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.UID == owner && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
}

// judge deletes an object if all its owners are gone. Otherwise it removes the owners that are gone from the object.
func (g *garbage) judge(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	gone := map[types.UID]bool{}
	for _, owner := range object.OwnerReferences {
		there, err := g.there(ctx, object.Namespace, owner)
		if err != nil {
			return err
		}
		if !there {
			gone[owner.UID] = true
		}
	}
	switch len(gone) {
	case 0:
		return nil
	case len(object.OwnerReferences):
		return g.remove(ctx, object, slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents))
	}
	return g.disown(ctx, object, func(owner metav1.OwnerReference) bool { return gone[owner.UID] })
}

// there reports whether an owner exists. The API server is asked about one that was not listed, because the lists were not taken
// at the same moment.
func (g *garbage) there(ctx context.Context, namespace string, owner metav1.OwnerReference) (bool, error) {
	if g.byUID[owner.UID] != nil {
		return true, nil
	}
	if exists, known := g.exists[owner.UID]; known {
		return exists, nil
	}
	var object metav1.PartialObjectMetadata
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	mapping, err := g.client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return false, err
	}
	key := client.ObjectKey{Name: owner.Name}
	if mapping.Scope.Name() == apimeta.RESTScopeNameNamespace {
		key.Namespace = namespace
	}
	err = g.client.Get(ctx, key, &object)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	g.exists[owner.UID] = err == nil && object.UID == owner.UID
	return g.exists[owner.UID], nil
}

// remove deletes an object: in the foreground if it has dependents that its owner waits for, otherwise in the background.
func (g *garbage) remove(ctx context.Context, object *metav1.PartialObjectMetadata, foreground bool) error {
	policy := metav1.DeletePropagationBackground
	switch {
	case slices.Contains(object.Finalizers, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case foreground:
		policy = metav1.DeletePropagationForeground
	}
	return g.wrote(g.client.Delete(ctx, object, client.Preconditions{UID: &object.UID}, client.PropagationPolicy(policy)))
}

// disown removes owners from an object.
func (g *garbage) disown(ctx context.Context, object *metav1.PartialObjectMetadata, which func(metav1.OwnerReference) bool) error {
	before := object.DeepCopy()
	object.OwnerReferences = slices.DeleteFunc(slices.Clone(object.OwnerReferences), which)
	return g.wrote(g.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
