package run

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/storagebench/storagebench/internal/runs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	clocktesting "k8s.io/utils/clock/testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// TestWhatCannotBeSeenIsSaid: a run that cannot be observed says so, but a settled one stays settled.
func TestWhatCannotBeSeenIsSaid(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ended := func(status *v1alpha1.BenchmarkRunStatus, settled bool) {
		kstatus.Set(&status.Conditions, 1, v1alpha1.ConditionComplete, "True", "Valid", "all is measured")
		kstatus.Set(&status.Conditions, 1, v1alpha1.ConditionValid, "True", "Valid", "all is measured")
		now := metav1.NewTime(noon)
		status.State, status.FinishedAt = "Valid", &now
		if settled {
			kstatus.Done(&status.Conditions, 1, "Valid", "all is measured")
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
