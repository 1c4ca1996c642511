package naming

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestIsControlledBy: a reference to another API proves nothing, because the admission policy does not look at it.
func TestIsControlledBy(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	for name, c := range map[string]struct {
		owner metav1.OwnerReference
		want  bool
	}{
		"ours":          {metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), UID: "u", Controller: new(true)}, true},
		"another API":   {metav1.OwnerReference{APIVersion: "x.example/v1", UID: "u", Controller: new(true)}, false},
		"a similar API": {metav1.OwnerReference{APIVersion: "storagebench.development/v1", UID: "u", Controller: new(true)}, false},
		"no controller": {metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), UID: "u"}, false},
		"another run":   {metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), UID: "v", Controller: new(true)}, false},
	} {
		object := &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{c.owner}}
		if got := IsControlledBy(object, run); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
