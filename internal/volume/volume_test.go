package volume

import (
	"testing"

	"github.com/storagebench/storagebench/internal/naming"

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
	claim := Claim(testRun(), map[string]string{"a": "b"}, owner("run-uid", true))
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	switch {
	case claim.Name != naming.VolumeName("r") || claim.Namespace != "lab" || claim.Labels["a"] != "b":
		t.Errorf("wrong name or labels: %+v", claim.ObjectMeta)
	case *claim.Spec.StorageClassName != "fast" || *claim.Spec.VolumeMode != corev1.PersistentVolumeBlock || size.String() != "20Gi":
		t.Errorf("wrong spec: %+v", claim.Spec)
	case len(claim.Spec.AccessModes) != 1 || claim.Spec.AccessModes[0] != corev1.ReadWriteOncePod:
		t.Errorf("wrong access modes: %v", claim.Spec.AccessModes)
	}
	if state := State(claim, "run-uid", "p"); state != (VolumeState{Exists: true, Problem: "p"}) {
		t.Errorf("its own claim reads as %+v", state)
	}
}

func TestState(t *testing.T) {
	now := metav1.Now()
	claim := func(phase corev1.PersistentVolumeClaimPhase, deleting bool, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owners},
			Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
		if deleting {
			claim.DeletionTimestamp = &now
		}
		return claim
	}
	ours := owner("run-uid", true)
	for _, test := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		want  VolumeState
	}{
		{"none", nil, VolumeState{}},
		{"pending", claim(corev1.ClaimPending, false, ours), VolumeState{Exists: true, Problem: "p"}},
		{"not seen by the controller yet", claim("", false, ours), VolumeState{Exists: true, Problem: "p"}},
		{"bound", claim(corev1.ClaimBound, false, ours), VolumeState{Exists: true, Bound: true, Problem: "p"}},
		{"lost", claim(corev1.ClaimLost, false, ours), VolumeState{Exists: true, Lost: true, Problem: "p"}},
		{"bound and going", claim(corev1.ClaimBound, true, ours), VolumeState{Exists: true, Bound: true, Deleting: true, Problem: "p"}},
		{"unowned", claim(corev1.ClaimBound, false), VolumeState{Foreign: true}},
		{"of another run of the same name", claim(corev1.ClaimBound, false, owner("earlier", true)), VolumeState{Foreign: true}},
		{"owned but not controlled", claim(corev1.ClaimBound, false, owner("run-uid", false)), VolumeState{Foreign: true}},
		{"foreign and going", claim(corev1.ClaimBound, true), VolumeState{Foreign: true}},
		{"two owners, ours controls", claim(corev1.ClaimBound, false, owner("x", false), ours),
			VolumeState{Exists: true, Bound: true, Problem: "p"}},
	} {
		if got := State(test.claim, "run-uid", "p"); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
