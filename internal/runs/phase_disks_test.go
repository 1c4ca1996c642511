package runs

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TestDisksChangeBy: from the phase that changes the disks of a pool, the disks in its spec may not be all its disks.
func TestDisksChangeBy(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{}
	run.Spec.Phases = []v1alpha1.Phase{{Name: "before", Measure: &v1alpha1.MeasurePhase{}},
		{Name: "beside", Measure: &v1alpha1.MeasurePhase{Operate: &v1alpha1.PoolAction{ReplaceDevice: &v1alpha1.ReplaceDeviceAction{}}}},
		{Name: "after", Measure: &v1alpha1.MeasurePhase{}}}
	for name, want := range map[v1alpha1.PhaseName]bool{"before": false, "beside": true, "after": true} {
		if got := disksChangeBy(run, name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
