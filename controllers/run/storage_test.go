package run

import (
	"testing"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/volume"

	corev1 "k8s.io/api/core/v1"

	storagev1 "k8s.io/api/storage/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestLeftBehindANamesake: a user deleted the run's claim and created another one with its name. The objects that were created for the
// run's claim are deleted nevertheless, the other claim stays, and the run does not wait for its deletion.
func TestLeftBehindANamesake(t *testing.T) {
	local, driven := drivenRun(), drivenRun()
	local.Spec.Target.ZFS.Dataset.Provisioner = volume.ProvisionerLocal
	name := naming.RunPoolName(local, "data")
	labelled := func(run *v1alpha1.BenchmarkRun) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: runs.ClusterLabels(run)}
	}
	protected := labelled(local)
	protected.Finalizers = []string{"kubernetes.io/pv-protection"} // the namesake is bound to it
	for title, test := range map[string]struct {
		run    *v1alpha1.BenchmarkRun
		behind client.Object
		left   bool
	}{
		"a PersistentVolume":        {local, &corev1.PersistentVolume{ObjectMeta: labelled(local)}, true},
		"one that the namesake has": {local, &corev1.PersistentVolume{ObjectMeta: protected}, true},
		"a StorageClass":            {driven, &storagev1.StorageClass{ObjectMeta: labelled(driven)}, true},
		"a user's PersistentVolume": {local, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}, false},
		"nothing of the name":       {local, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, false},
	} {
		namesake := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: test.run.Namespace,
			Name: naming.ClaimName(test.run, "data")},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		r := drivenReconciler(t, true, namesake, test.behind)
		look := func() runs.Claims {
			t.Helper()
			state := runs.State{Run: test.run}
			if err := r.observeStorage(t.Context(), &state); err != nil {
				t.Fatal(err)
			}
			if !state.Claims.Foreign || state.Claims.Exists || state.Claims.Deleting {
				t.Errorf("%s: %+v", title, state.Claims)
			}
			return state.Claims
		}
		if got := look(); got.Left() != test.left {
			t.Errorf("%s: %+v, left should be %v", title, got, test.left)
		}
		if err := r.deleteVolumes(t.Context(), test.run); err != nil {
			t.Fatal(err)
		}
		if got := look(); got.Left() {
			t.Errorf("%s: waited for is %+v", title, got)
		}
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(namesake), namesake); err != nil || !namesake.DeletionTimestamp.IsZero() {
			t.Errorf("%s: the other claim: %+v %v", title, namesake.ObjectMeta, err)
		}
		err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(test.behind), test.behind)
		if deleted := apierrors.IsNotFound(err) || !test.behind.GetDeletionTimestamp().IsZero(); deleted != test.left {
			t.Errorf("%s: deleted is %v: %v", title, deleted, err)
		}
	}
}

// TestADriverMayStillHaveItBehindANamesake: the pool stays until the driver has released its volume.
func TestADriverMayStillHaveItBehindANamesake(t *testing.T) {
	run := drivenRun()
	namesake := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: naming.ClaimName(run, "data")}}
	r := drivenReconciler(t, true, namesake, driverObject("ZFSVolume", "pvc-1", naming.RunPoolName(run, "data")+"/parent"))
	state := runs.State{Run: run}
	if err := r.observeStorage(t.Context(), &state); err != nil {
		t.Fatal(err)
	}
	if got := state.Claims; !got.Foreign || !got.Left() || !got.Deleting || got.Unwatched != "ZFSVolume openebs/pvc-1" {
		t.Errorf("%+v", got)
	}
}
