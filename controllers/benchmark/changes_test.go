package benchmark

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestRunChange: a benchmark does not say for the whole first phase that the phase waits for its pools.
func TestRunChange(t *testing.T) {
	run := func(reason, phase string, target v1alpha1.Target) *v1alpha1.BenchmarkRun {
		var r v1alpha1.BenchmarkRun
		r.Spec.Target, r.Status.CurrentPhase = target, phase
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		return &r
	}
	onPool := v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{}}
	for name, c := range map[string]struct {
		before, after *v1alpha1.BenchmarkRun
		passes        bool
	}{
		"nothing":             {run(v1alpha1.ReasonPhaseRunning, "fill", onPool), run(v1alpha1.ReasonPhaseRunning, "fill", onPool), false},
		"the next phase":      {run(v1alpha1.ReasonPhaseRunning, "fill", onPool), run(v1alpha1.ReasonPreparingVolume, "scan", onPool), true},
		"its pools are there": {run(v1alpha1.ReasonPreparingVolume, "fill", onPool), run(v1alpha1.ReasonPhaseRunning, "fill", onPool), true},
		"another step of it":  {run(v1alpha1.ReasonPhaseRunning, "fill", onPool), run(v1alpha1.ReasonPreparingVolume, "fill", onPool), false},
		"its claim is there": {run(v1alpha1.ReasonPreparingVolume, "fill", v1alpha1.Target{}),
			run(v1alpha1.ReasonPhaseRunning, "fill", v1alpha1.Target{}), false},
		"trouble": {run(v1alpha1.ReasonPhaseRunning, "fill", v1alpha1.Target{}),
			run(v1alpha1.ReasonImagePullFailed, "fill", v1alpha1.Target{}), true},
	} {
		if passes := runChange().Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); passes != c.passes {
			t.Errorf("%s: passes %t", name, passes)
		}
	}
}
