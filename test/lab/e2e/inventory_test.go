package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

const crdResource = "customresourcedefinitions.apiextensions.k8s.io"

// The cluster itself makes and removes objects of these kinds, and in these namespaces, at any time.
var (
	restlessKinds      = []string{"events", "events.events.k8s.io", "componentstatuses"}
	restlessNamespaces = []string{"kube-system", "kube-node-lease", "local-path-storage"}
)

// inventory lists all objects of the cluster, of every kind, as RESOURCE.GROUP [NAMESPACE/]NAME.
func inventory(ctx context.Context) ([]string, error) {
	kinds, err := clients.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, list := range kinds {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range list.APIResources {
			resource := version.WithResource(kind.Name)
			if !slices.Contains(kind.Verbs, "list") || slices.Contains(restlessKinds, resource.GroupResource().String()) {
				continue
			}
			objects, err := reader.Resource(resource).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
			}
			for _, object := range objects.Items {
				if !slices.Contains(restlessNamespaces, object.Namespace) {
					found = append(found, resource.GroupResource().String()+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"))
				}
			}
		}
	}
	return found, nil
}

// without returns the entries that only the first list has.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return slices.Contains(other, one) })
}
