package write

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

func TestFinalizer(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	seen := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "bench0"}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(seen).Build()
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(seen), seen); err != nil {
		t.Fatal(err)
	}
	stale := seen.DeepCopy()
	seen.Status.GUID = "what is known at hand"

	if err := Finalizer(t.Context(), cluster, seen, controllerutil.AddFinalizer); err != nil || seen.Status.GUID == "" {
		t.Fatalf("%+v, %v", seen, err)
	}
	if err := Finalizer(t.Context(), cluster, stale, controllerutil.AddFinalizer); !apierrors.IsConflict(err) {
		t.Errorf("an older version was changed: %v", err)
	}
	// The given object is up to date, so it can be changed again.
	if err := Finalizer(t.Context(), cluster, seen, controllerutil.RemoveFinalizer); err != nil {
		t.Fatal(err)
	}
	version := seen.ResourceVersion
	if err := Finalizer(t.Context(), cluster, seen, controllerutil.RemoveFinalizer); err != nil || seen.ResourceVersion != version {
		t.Errorf("nothing was to be changed: %v, version %s after %s", err, seen.ResourceVersion, version)
	}
}

func TestAnnounce(t *testing.T) {
	ready := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	stalled := metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}
	for _, test := range []struct {
		name          string
		before, after []metav1.Condition
		want          string
	}{
		{name: "nothing known yet"},
		{name: "first", after: []metav1.Condition{ready("PoolReady", "it is")}, want: "Normal PoolReady it is"},
		{name: "same reason", before: []metav1.Condition{ready("PoolReady", "it is")},
			after: []metav1.Condition{ready("PoolReady", "it still is")}},
		{name: "stalled", before: []metav1.Condition{ready("PoolReady", "it is")}, after: []metav1.Condition{ready("PoolConflict", "100% taken"),
			stalled},
			want: "Warning PoolConflict 100% taken"},
		{name: "failed for now", after: []metav1.Condition{ready(v1alpha1.ReasonActionFailed, "zpool: no")},
			want: "Warning ActionFailed zpool: no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			Announce(recorder, &v1alpha1.BenchmarkPool{}, test.before, test.after)
			got := ""
			select {
			case got = <-recorder.Events:
			default:
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
