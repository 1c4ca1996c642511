package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// fieldOwner is the field manager of commands that change objects.
const fieldOwner = "kubectl-storagebench"

// applied is a StorageBenchmark as it is in the cluster now.
type applied struct {
	key types.NamespacedName
	// previousExperiment is the previous experiment, which the status may still describe. Empty if there is none.
	previousExperiment string
}

// applyAll applies the manifests in order, StorageBenchmarks last, so that a benchmark finds what it refers to.
func (a *App) applyAll(ctx context.Context, cluster *Cluster, connection Connection, manifests []*manifest, force bool) ([]applied, error) {
	if err := applicable(manifests, connection.Namespace); err != nil {
		return nil, err
	}
	for _, one := range manifests {
		if one.object.GetNamespace() == "" {
			one.object.SetNamespace(cluster.Namespace)
		}
		var before client.Object
		switch {
		case one.isConfigMap():
			before = &corev1.ConfigMap{}
		case one.isTarget():
			before = &v1alpha1.StorageTarget{}
		default:
			continue
		}
		if _, err := a.apply(ctx, cluster, one, before, force); err != nil {
			return nil, err
		}
	}
	var benchmarks []applied
	for _, one := range manifests {
		if !one.isBenchmark() {
			continue
		}
		var before v1alpha1.StorageBenchmark
		after, err := a.apply(ctx, cluster, one, &before, force)
		if err != nil {
			return benchmarks, err
		}
		benchmark := applied{key: client.ObjectKeyFromObject(one.object)}
		// A changed spec changes the generation, but a changed rerun annotation does not. A file without the annotation does not remove it,
		// so the annotation is compared after the object was applied.
		if before.Annotations[v1alpha1.AnnotationRerun] != after.GetAnnotations()[v1alpha1.AnnotationRerun] {
			benchmark.previousExperiment = before.Status.Experiment
		}
		benchmarks = append(benchmarks, benchmark)
	}
	return benchmarks, nil
}

// applicable refuses manifests that run cannot apply, before anything is written.
func applicable(manifests []*manifest, namespace string) error {
	found := false
	for _, one := range manifests {
		switch {
		case !one.isBenchmark() && !one.isConfigMap() && !one.isTarget():
			return exitf(ExitRefused, "%s: %s: run applies StorageBenchmarks, their StorageTargets and ConfigMaps only: "+
				"apply the others with kubectl", one.at("kind"), one)
		case one.object.GetName() == "":
			return exitf(ExitRefused, "%s: %s has no metadata.name: set it, so that the next run updates the same object", one.at("metadata"),
				one.object.GetKind())
		case namespace != "" && one.object.GetNamespace() != "" && one.object.GetNamespace() != namespace:
			return exitf(ExitRefused, "%s: %s is in namespace %s, but --namespace is %s: make them the same, or remove one",
				one.at("metadata.namespace"), one, one.object.GetNamespace(), namespace)
		}
		found = found || one.isBenchmark()
	}
	if !found {
		return exitf(ExitRefused, "%s: it contains no StorageBenchmark: use a file that does", manifests[0].file)
	}
	return nil
}

// apply applies one object, reports the result and returns the object as it is now. before is filled with the previous object.
func (a *App) apply(ctx context.Context, cluster *Cluster, one *manifest, before client.Object,
	force bool) (*unstructured.Unstructured, error) {
	key := client.ObjectKeyFromObject(one.object)
	doing := fmt.Sprintf("apply %s %s", one.object.GetKind(), key)
	err := cluster.Client.Get(ctx, key, before)
	if client.IgnoreNotFound(err) != nil || isUnknownKind(err) {
		return nil, explain(doing, err)
	}
	isNew := apierrors.IsNotFound(err)
	options := []client.ApplyOption{client.FieldOwner(fieldOwner)}
	if force {
		options = append(options, client.ForceOwnership)
	}
	object := one.object.DeepCopy()
	delete(object.Object, "status")
	if err := cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
		return nil, explain(doing, err)
	}
	word := "changed"
	switch {
	case isNew:
		word = "created"
	case object.GetResourceVersion() == before.GetResourceVersion():
		word = "unchanged"
	}
	a.say("%s %s %s", one.object.GetKind(), key, word)
	return object, nil
}
