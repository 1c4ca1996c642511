package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/internal/runs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	clocktesting "k8s.io/utils/clock/testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// TestWhatCannotBeSeenIsSaid: the status of a run that cannot be observed says so, but a settled run stays settled.
func TestWhatCannotBeSeenIsSaid(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ended := func(status *v1alpha1.BenchmarkRunStatus, settled bool) {
		kstatus.Set(&status.Conditions, 1, v1alpha1.ConditionComplete, "True", "Valid", "all is measured")
		kstatus.Set(&status.Conditions, 1, v1alpha1.ConditionValid, "True", "Valid", "all is measured")
		now := metav1.NewTime(noon)
		status.State, status.FinishedAt = "Valid", &now
		if settled {
			kstatus.SetReady(&status.Conditions, 1, "Valid", "all is measured")
		}
	}
	for name, test := range map[string]struct {
		status       func(*v1alpha1.BenchmarkRunStatus)
		state, ready string
	}{
		"at work":    {func(*v1alpha1.BenchmarkRunStatus) {}, "ActionFailed", "ActionFailed"},
		"going":      {func(s *v1alpha1.BenchmarkRunStatus) { ended(s, false) }, "Valid", "ActionFailed"},
		"is settled": {func(s *v1alpha1.BenchmarkRunStatus) { ended(s, true) }, "Valid", "Valid"},
	} {
		run := drivenRun()
		test.status(&run.Status)
		r := failing(t, drivenReconciler(t, true, run), errors.New("no route to the API server"))
		r.Clock, r.Recorder = clocktesting.NewFakePassiveClock(noon), events.NewFakeRecorder(10)
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)}); err == nil ||
			!strings.Contains(err.Error(), "no route") {
			t.Errorf("%s: %v, so it is not tried again", name, err)
		}
		var got v1alpha1.BenchmarkRun
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(run), &got); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != test.ready || got.Status.State != test.state {
			t.Errorf("%s: %s, %+v", name, got.Status.State, ready)
		} else if test.ready == v1alpha1.ReasonActionFailed &&
			!strings.Contains(ready.Message, "no route to the API server (will be retried)") {
			t.Errorf("%s: %s", name, ready.Message)
		}
		if runs.Settled(&got) != runs.Settled(run) {
			t.Errorf("%s: settled is %t", name, runs.Settled(&got))
		}
	}
}

// TestARefusedStatus: the end and the teardown of a run are recorded although the API server refuses the values that a tenant has brought
// into its status. A refused status is not written again and again.
func TestARefusedStatus(t *testing.T) {
	run := drivenRun()
	r := drivenReconciler(t, false, run)
	r.Clock, r.Recorder = clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), events.NewFakeRecorder(10)
	writes := 0
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{SubResourceUpdate: func(ctx context.Context,
		c client.Client, name string, object client.Object, options ...client.SubResourceUpdateOption) error {
		if len(object.(*v1alpha1.BenchmarkRun).Status.Phases) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "BenchmarkRun"}, object.GetName(), nil)
		}
		writes++
		return c.SubResource(name).Update(ctx, object, options...)
	}})
	var got v1alpha1.BenchmarkRun
	write := func(reason string) {
		t.Helper()
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(run), &got); err != nil {
			t.Fatal(err)
		}
		full := *got.Status.DeepCopy()
		full.Phases = []v1alpha1.RunPhaseStatus{{Name: "fill", Digest: "forged"}}
		kstatus.SetProgressing(&full.Conditions, 1, reason, "m")
		if err := r.writeStatus(t.Context(), &got, full); err != nil {
			t.Fatal(err)
		}
		if err := r.Live.Get(t.Context(), client.ObjectKeyFromObject(run), &got); err != nil {
			t.Fatal(err)
		}
	}
	write(v1alpha1.ReasonPhaseRunning)
	if ending := runs.RecordedEnding(&got); ending == nil || ending.Valid || !ending.Retryable || got.Status.FinishedAt == nil {
		t.Errorf("it has not ended: %+v", got.Status)
	}
	for range 3 {
		write(v1alpha1.ReasonTeardownStuck)
	}
	if !runs.Resting(&got) || runs.RecordedEnding(&got) == nil || writes != 2 {
		t.Errorf("%+v after %d writes", got.Status, writes)
	}
}
