package bylabel

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// indexer collects indexes.
type indexer map[string]client.IndexerFunc

func (i indexer) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i[fmt.Sprintf("%T %s", object, field)] = of
	return nil
}

func TestSetup(t *testing.T) {
	for withoutAgent, want := range map[bool]int{true: 4, false: 6} {
		made := indexer{}
		if err := Setup(t.Context(), made, withoutAgent); err != nil {
			t.Fatal(err)
		}
		if len(made) != want {
			t.Errorf("without agent %t: %d indexes, want %d: %v", withoutAgent, len(made), want, made)
		}
	}
	made := indexer{}
	if err := Setup(t.Context(), made, true); err != nil {
		t.Fatal(err)
	}
	of := made["*v1.Pod "+field(v1alpha1.LabelRun)]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelRun: "r1", "app": "x"}}}
	if got := of(pod); len(got) != 1 || got[0] != "r1" {
		t.Errorf("a pod is found by %q, want its run", got)
	}
	if got := of(&corev1.Pod{}); len(got) != 0 {
		t.Errorf("a pod without a label is found by %q", got)
	}
}

// TestListsUseTheIndex: a list by an indexed label asks the cache for the objects with that value only.
func TestListsUseTheIndex(t *testing.T) {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	field := ""
	c := Client{fake.NewClientBuilder().WithScheme(known).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, options ...client.ListOption) error {
			asked := client.ListOptions{}
			asked.ApplyOptions(options)
			if field = ""; asked.FieldSelector != nil {
				field = asked.FieldSelector.String()
			}
			return nil
		}}).Build()}
	configMaps := &metav1.PartialObjectMetadataList{}
	configMaps.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	selector, err := labels.Parse(v1alpha1.LabelBenchmarkUID + "=u1,!" + v1alpha1.LabelRun)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct {
		list    client.ObjectList
		options []client.ListOption
		want    string
	}{
		"runs": {&v1alpha1.BenchmarkRunList{}, []client.ListOption{client.InNamespace("a"), client.MatchingLabels{v1alpha1.LabelBenchmarkUID: "u1"}},
			"label:storagebench.dev/benchmark-uid=u1"},
		"results of a benchmark": {configMaps, []client.ListOption{client.MatchingLabelsSelector{Selector: selector}},
			"label:storagebench.dev/benchmark-uid=u1"},
		"results of a run": {configMaps, []client.ListOption{client.MatchingLabels{v1alpha1.LabelRun: "r1"}}, "label:storagebench.dev/run=r1"},
		"pods":             {&corev1.PodList{}, []client.ListOption{client.MatchingLabels{v1alpha1.LabelRun: "r1"}}, "label:storagebench.dev/run=r1"},
		"operations": {&v1alpha1.PoolOperationList{}, []client.ListOption{client.MatchingLabels{v1alpha1.LabelRunUID: "u1"}},
			"label:storagebench.dev/run-uid=u1"},
		"kept pools": {&v1alpha1.BenchmarkPoolList{}, []client.ListOption{client.MatchingLabels{v1alpha1.LabelBenchmarkUID: "u1"},
			client.HasLabels{v1alpha1.LabelReset}}, "label:storagebench.dev/benchmark-uid=u1"},
		"another label":   {&corev1.PodList{}, []client.ListOption{client.MatchingLabels{"app": "x"}}, ""},
		"another kind":    {&corev1.NodeList{}, []client.ListOption{client.MatchingLabels{v1alpha1.LabelRun: "r1"}}, ""},
		"no value":        {&corev1.PodList{}, []client.ListOption{client.HasLabels{v1alpha1.LabelRun}}, ""},
		"everything":      {&corev1.PodList{}, nil, ""},
		"a field already": {&corev1.PodList{}, []client.ListOption{client.MatchingLabels{v1alpha1.LabelRun: "r1"}, client.MatchingFields{"a": "b"}}, "a=b"},
	} {
		if err := c.List(t.Context(), one.list, one.options...); err != nil || field != one.want {
			t.Errorf("%s: listed by %q (%v), want %q", name, field, err, one.want)
		}
	}
}
