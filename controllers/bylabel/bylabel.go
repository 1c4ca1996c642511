// Package bylabel finds the objects of one benchmark or run in the caches without looking at all others. A cache without an index looks at
// every object of the namespace and then compares the labels, so each reconcile would cost more with each benchmark in the namespace.
package bylabel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// indexed are the labels by which the cached objects of a kind are listed.
var indexed = map[string][]string{
	"BenchmarkRun":  {v1alpha1.LabelBenchmarkUID},
	"ConfigMap":     {v1alpha1.LabelBenchmarkUID, v1alpha1.LabelRun},
	"Pod":           {v1alpha1.LabelRun},
	"PoolOperation": {v1alpha1.LabelRunUID},
	"BenchmarkPool": {v1alpha1.LabelBenchmarkUID},
}

// Setup indexes the caches of a manager. The kinds of the agent are left out if the manager has no permissions for them.
func Setup(ctx context.Context, indexer client.FieldIndexer, withoutAgent bool) error {
	configMap := &metav1.PartialObjectMetadata{} // of ConfigMaps, only the metadata is cached
	configMap.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	kinds := map[string]client.Object{"BenchmarkRun": &v1alpha1.BenchmarkRun{}, "ConfigMap": configMap, "Pod": &corev1.Pod{}}
	if !withoutAgent {
		kinds["PoolOperation"], kinds["BenchmarkPool"] = &v1alpha1.PoolOperation{}, &v1alpha1.BenchmarkPool{}
	}
	for kind, object := range kinds {
		for _, label := range indexed[kind] {
			if err := indexer.IndexField(ctx, object, field(label), valueOf(label)); err != nil {
				return fmt.Errorf("index the kind %s by its label %s: %w", kind, label, err)
			}
		}
	}
	return nil
}

func field(label string) string { return "label:" + label }

func valueOf(label string) client.IndexerFunc {
	return func(object client.Object) []string {
		if value := object.GetLabels()[label]; value != "" {
			return []string{value}
		}
		return nil
	}
}

// Client is the client of a manager whose caches are indexed by Setup. A list that requires one value of an indexed label uses the index.
type Client struct{ client.Client }

// List lists cached objects.
func (c Client) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(list, c.Scheme())
	if err != nil {
		return err
	}
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if selector := selectorFor(kind.Kind, asked.LabelSelector); selector != nil && asked.FieldSelector == nil {
		options = append(slices.Clone(options), client.MatchingFieldsSelector{Selector: selector})
	}
	return c.Client.List(ctx, list, options...)
}

// selectorFor returns the field selector of the index that serves a label selector, or nil.
func selectorFor(listKind string, selector labels.Selector) fields.Selector {
	if selector == nil {
		return nil
	}
	for _, label := range indexed[strings.TrimSuffix(listKind, "List")] {
		if value, exact := selector.RequiresExactMatch(label); exact && value != "" {
			return fields.OneTermEqualSelector(field(label), value)
		}
	}
	return nil
}
