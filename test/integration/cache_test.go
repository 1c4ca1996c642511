package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/controllers"
)

// TestCacheKeepsLittle: of a tenant's ConfigMaps with our labels and large annotations, the manager's cache keeps only what the manager
// reads. controllers/trim measures how much memory that is.
func TestCacheKeepsLittle(t *testing.T) {
	const count, size = 20, 250 << 10
	l := newLab(t, nil)
	for i := range count {
		l.must(l.live.Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespaces[0], Name: fmt.Sprintf("filler-%d", i),
				Labels:      map[string]string{v1alpha1.LabelBenchmark: "b", v1alpha1.LabelBenchmarkUID: "u", "team": "a"},
				Annotations: map[string]string{"note": strings.Repeat("x", size), v1alpha1.AnnotationVerdict: "Passed"}}}))
	}
	scheme, err := controllers.Scheme()
	l.must(err)
	options, err := controllers.Cache(controllers.Options{LeaseNamespace: l.namespaces[0], Namespaces: l.namespaces})
	l.must(err)
	options.Scheme = scheme
	memory, err := cache.New(config, options)
	l.must(err)
	l.background("the cache", memory.Start)
	gomega.NewWithT(t).Expect(memory.WaitForCacheSync(t.Context())).To(gomega.BeTrue())
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	l.must(memory.List(t.Context(), &all, client.InNamespace(l.namespaces[0])))
	g := gomega.NewWithT(t)
	g.Expect(all.Items).To(gomega.HaveLen(count))
	for _, item := range all.Items {
		g.Expect(item.Annotations).To(gomega.Equal(map[string]string{v1alpha1.AnnotationVerdict: "Passed"}))
		g.Expect(item.Labels).To(gomega.HaveLen(2))
		g.Expect(item.ManagedFields).To(gomega.BeEmpty())
	}
}
