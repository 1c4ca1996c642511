package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func testRun() *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "lab", UID: "run-uid"},
		Spec: v1alpha1.BenchmarkRunSpec{Target: v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{
			Name: "fast", Size: v1alpha1.Size{Quantity: resource.MustParse("20Gi")}, VolumeMode: "Block", AccessMode: "ReadWriteOncePod"}}},
	}
}

func owner(uid string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "storagebench.dev/v1alpha1", Kind: "BenchmarkRun", Name: "r", UID: types.UID(uid),
		Controller: ptr.To(controller)}
}

func TestClaim(t *testing.T) {
	run := testRun()
	objects, err := class{}.Objects(run, RunVolumes(run)[0], Site{Labels: map[string]string{"a": "b"}, Owner: owner("run-uid", true)})
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	claim := objects[0].(*corev1.PersistentVolumeClaim)
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case claim.Name != "r" || claim.Namespace != "lab" || claim.Labels["a"] != "b":
		t.Errorf("wrong name or labels: %+v", claim.ObjectMeta)
	case *claim.Spec.StorageClassName != "fast" || *claim.Spec.VolumeMode != corev1.PersistentVolumeBlock || size.String() != "20Gi":
		t.Errorf("wrong spec: %+v", claim.Spec)
	case len(claim.Spec.AccessModes) != 1 || claim.Spec.AccessModes[0] != corev1.ReadWriteOncePod:
		t.Errorf("wrong access modes: %v", claim.Spec.AccessModes)
	}
}
