package runs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/storagebench/storagebench/internal/runs"
)

func owner(uid string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "storagebench.dev/v1alpha1", Kind: "BenchmarkRun", Name: "r", UID: types.UID(uid),
		Controller: ptr.To(controller)}
}

func TestClaimOf(t *testing.T) {
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
		want  runs.Claims
	}{
		{"none", nil, runs.Claims{}},
		{"pending", claim(corev1.ClaimPending, false, ours), runs.Claims{Exists: true, Problem: "p"}},
		{"not seen by the controller yet", claim("", false, ours), runs.Claims{Exists: true, Problem: "p"}},
		{"bound", claim(corev1.ClaimBound, false, ours), runs.Claims{Exists: true, Bound: true, Problem: "p"}},
		{"lost", claim(corev1.ClaimLost, false, ours), runs.Claims{Exists: true, Lost: true, Problem: "p"}},
		{"bound and going", claim(corev1.ClaimBound, true, ours), runs.Claims{Exists: true, Bound: true, Deleting: true, Problem: "p"}},
		{"unowned", claim(corev1.ClaimBound, false), runs.Claims{Foreign: true}},
		{"of another run of the same name", claim(corev1.ClaimBound, false, owner("earlier", true)), runs.Claims{Foreign: true}},
		{"owned but not controlled", claim(corev1.ClaimBound, false, owner("run-uid", false)), runs.Claims{Foreign: true}},
		{"foreign and going", claim(corev1.ClaimBound, true), runs.Claims{Foreign: true}},
		{"two owners, ours controls", claim(corev1.ClaimBound, false, owner("x", false), ours),
			runs.Claims{Exists: true, Bound: true, Problem: "p"}},
	} {
		if got := runs.ClaimOf(test.claim, "run-uid", "p"); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

func TestJoinClaims(t *testing.T) {
	whole, half := runs.Claims{Exists: true, Bound: true}, runs.Claims{Some: true}
	if got := runs.JoinClaims([]runs.Claims{whole, whole}); !got.Exists || !got.Bound || !got.Left() {
		t.Errorf("both: %+v", got)
	}
	if got := runs.JoinClaims([]runs.Claims{whole, {}}); got.Exists || !got.Left() {
		t.Errorf("one: %+v", got)
	}
	if got := runs.JoinClaims([]runs.Claims{{}, half}); got.Exists || !got.Left() {
		t.Errorf("what is below a claim: %+v", got)
	}
	if got := runs.JoinClaims([]runs.Claims{{}, {}}); got.Left() || got.Bound {
		t.Errorf("none: %+v", got)
	}
	if got := runs.JoinClaims([]runs.Claims{whole, {Exists: true, Lost: true, Problem: "p", Deleting: true}}); !got.Lost || got.Problem != "p" ||
		!got.Deleting || got.Bound {
		t.Errorf("one is lost: %+v", got)
	}
}
