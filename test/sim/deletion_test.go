package sim

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (l *lab) configMap(name string, owners ...*corev1.ConfigMap) *corev1.ConfigMap {
	l.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}
	for _, owner := range owners {
		object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: ptr.To(true),
		})
	}
	l.must(l.client.Create(l.Context(), object))
	return object
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	cases := []struct {
		policy metav1.DeletionPropagation
		kept   bool
	}{
		{metav1.DeletePropagationBackground, false}, {metav1.DeletePropagationForeground, false}, {metav1.DeletePropagationOrphan, true},
	}
	for _, c := range cases {
		t.Run(string(c.policy), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, Options{})
			owner, other := l.configMap("owner"), l.configMap("other")
			middle := l.configMap("middle", owner)
			l.configMap("leaf", middle)
			l.configMap("shared", owner, other)
			l.settle()
			l.must(l.client.Delete(t.Context(), owner, client.PropagationPolicy(c.policy)))
			l.settle()
			want := map[string]bool{"owner": false, "other": true, "middle": c.kept, "leaf": c.kept, "shared": true}
			for name, there := range want {
				if got := l.get(&corev1.ConfigMap{}, name); got != there {
					t.Errorf("%s is there: %v", name, got)
				}
			}
		})
	}
}

// TestRunningJobDeleted: nothing is left, even of a running workload.
func TestRunningJobDeleted(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			l, job := started(t, always(Script{Hold: true}))
			l.must(l.client.Delete(t.Context(), job, client.PropagationPolicy(policy)))
			l.settle()
			if executions := l.Executions(); len(executions) != 1 || executions[0].ExitCode != 143 {
				t.Errorf("executions are %+v", executions)
			}
			l.wantNothing()
		})
	}
}

// TestClaimInUse: a claim that is deleted stays as long as there is a pod that mounts it, even one that has ended.
func TestClaimInUse(t *testing.T) {
	l, job := started(t, Options{})
	l.must(l.client.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "data"}}))
	l.settle()
	var claim corev1.PersistentVolumeClaim
	if !l.get(&claim, "data") || claim.DeletionTimestamp == nil {
		t.Errorf("claim is %+v", claim)
	}
	l.wantNothing(job)
}

func TestJobDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	options := always(Script{Hold: true})
	options.Now = func() time.Time { return now }
	l := newLab(t, options)
	l.claim("fast")
	job := l.job("scan")
	before := job.DeepCopy()
	job.Spec.ActiveDeadlineSeconds = ptr.To[int64](60)
	l.must(l.client.Patch(t.Context(), job, client.MergeFrom(before)))
	l.settle()
	if pod := l.pod(); pod.Status.Phase != corev1.PodRunning {
		t.Fatalf("pod status is %+v", pod.Status)
	}
	now = now.Add(2 * time.Minute)
	l.settle()
	l.wantJob("scan", batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)
	l.wantNothing(job)
}

func TestClaims(t *testing.T) {
	t.Parallel()
	l := newLab(t, Options{})
	l.must(l.CreateStorageClassWithMode(t.Context(), "at-once", false, storagev1.VolumeBindingImmediate))

	l.claim("missing")
	l.settle()
	var events corev1.EventList
	l.must(l.client.List(t.Context(), &events, client.InNamespace(l.namespace)))
	if len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, `storageclass.storage.k8s.io "missing" not found`) {
		t.Errorf("events are %+v", events.Items)
	}
	l.wantNothing()

	l.SetClaims(func(*corev1.PersistentVolumeClaim) string { return "out of space" })
	l.claim("at-once")
	l.settle()
	var claim corev1.PersistentVolumeClaim
	if l.get(&claim, "data"); claim.Status.Phase != corev1.ClaimPending {
		t.Errorf("claim is %s", claim.Status.Phase)
	}
	l.SetClaims(nil)
	l.settle()
	if l.get(&claim, "data"); claim.Status.Phase != corev1.ClaimBound || claim.Status.Capacity.Storage().String() != "1Gi" {
		t.Errorf("claim is %+v", claim.Status)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName, Finalizers: nil}}
	l.must(l.client.Patch(t.Context(), volume, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	l.must(l.client.Delete(t.Context(), volume))
	l.settle()
	if l.get(&claim, "data"); claim.Status.Phase != corev1.ClaimLost {
		t.Errorf("claim is %s", claim.Status.Phase)
	}
	l.wantNothing()
}

// TestStaticVolume: a volume that names its claim is bound to it, and only released when the claim goes.
func TestStaticVolume(t *testing.T) {
	t.Parallel()
	l := newLab(t, Options{})
	l.must(l.CreateStorageClass(t.Context(), "fast", false))
	name := "static-" + l.namespace
	l.must(l.client.Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: "fast", ClaimRef: &corev1.ObjectReference{Namespace: l.namespace, Name: "data"},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		},
	}))
	l.claim("fast")
	l.settle()
	var claim corev1.PersistentVolumeClaim
	if l.get(&claim, "data"); claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != name {
		t.Errorf("claim is %+v", claim)
	}
	l.must(l.client.Delete(t.Context(), &claim))
	l.settle()
	var volume corev1.PersistentVolume
	l.must(l.client.Get(t.Context(), client.ObjectKey{Name: name}, &volume))
	if volume.Status.Phase != corev1.VolumeReleased {
		t.Errorf("volume is %s", volume.Status.Phase)
	}
	l.must(l.client.Delete(t.Context(), &volume))
	l.settle()
	l.wantNothing()
}

// TestRejectedPod: if admission refuses a pod, an event reports it, and the Job waits.
func TestRejectedPod(t *testing.T) {
	t.Parallel()
	l := newLab(t, Options{})
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}}
	l.must(l.client.Patch(t.Context(), namespace, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`))))
	l.untilRefused() // admission reads labels from a cache
	l.claim("fast")
	job := l.job("scan")
	l.settle()
	var events corev1.EventList
	l.must(l.client.List(t.Context(), &events, client.InNamespace(l.namespace)))
	if len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, "violates PodSecurity") || l.pod() != nil {
		t.Errorf("events are %+v", events.Items)
	}
	l.wantNothing(job)
}

// untilRefused waits until admission refuses a pod that the restricted level does not allow.
func (l *lab) untilRefused() {
	l.Helper()
	careless := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "careless", Namespace: l.namespace},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
	err := wait.PollUntilContextTimeout(l.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(l.client.Create(ctx, careless.DeepCopy(), client.DryRunAll)), nil
	})
	l.must(err)
}
