package experiment

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/runs/runstest"
)

// TestIdentify: the contents of StorageTargets are part of the experiment's hash, but an experiment that has begun or ended keeps its hash.
func TestIdentify(t *testing.T) {
	first, second := map[string]v1alpha1.Target{"a": runstest.Target()}, map[string]v1alpha1.Target{"a": runstest.Target()}
	other := runstest.Target()
	other.StorageClass = &v1alpha1.StorageClassTarget{Name: "other", Size: other.StorageClass.Size}
	second["a"] = other
	identify := func(status v1alpha1.StorageBenchmarkStatus, found map[string]v1alpha1.Target, runs ...v1alpha1.BenchmarkRun) State {
		state := State{Benchmark: runstest.Benchmark(), Runs: runs}
		state.Benchmark.Spec.Target, state.Benchmark.Spec.Variants = v1alpha1.Target{Ref: &v1alpha1.TargetRef{Name: "a"}}, nil
		state.Benchmark.Status = status
		if name := Identify(&state, found); name != "" {
			if name != runs[0].Name {
				t.Errorf("the target is that of run %q", name)
			}
			UseTarget(&state, runs[0].Spec.Target)
		}
		return state
	}
	fresh := identify(v1alpha1.StorageBenchmarkStatus{}, first)
	known := v1alpha1.StorageBenchmarkStatus{Experiment: fresh.Experiment, TargetDigest: fresh.TargetDigest}
	begun := known
	begun.StartedAt = &metav1.Time{Time: runstest.Noon}
	ended := begun
	ended.FinishedAt = &metav1.Time{Time: runstest.Noon}
	run := v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: v1alpha1.BenchmarkRunSpec{Experiment: fresh.Experiment, Target: first["a"]}}
	for _, c := range []struct {
		name   string
		status v1alpha1.StorageBenchmarkStatus
		found  map[string]v1alpha1.Target
		runs   []v1alpha1.BenchmarkRun
		same   bool
		reason string
	}{
		{"as it was", begun, first, nil, true, ""},
		{"missing from the start", v1alpha1.StorageBenchmarkStatus{}, nil, nil, false, v1alpha1.ReasonTargetNotFound},
		{"changed before it began", known, second, nil, false, ""},
		{"changed after it began", begun, second, nil, true, v1alpha1.ReasonTargetChanged},
		{"changed after a run was made", known, second, []v1alpha1.BenchmarkRun{run}, true, v1alpha1.ReasonTargetChanged},
		{"deleted after it began", begun, nil, nil, true, v1alpha1.ReasonTargetNotFound},
		{"changed after it ended", ended, second, []v1alpha1.BenchmarkRun{run}, true, ""},
		{"deleted after it ended", ended, nil, []v1alpha1.BenchmarkRun{run}, true, ""},
		{"deleted with its runs after it ended", ended, nil, nil, true, v1alpha1.ReasonTargetNotFound},
	} {
		state := identify(c.status, c.found, c.runs...)
		if same := state.Experiment == fresh.Experiment; same != c.same {
			t.Errorf("%s: the same experiment: %t, want %t", c.name, same, c.same)
		}
		reason := ""
		if state.TargetError != nil {
			reason = state.TargetError.Reason
		}
		if reason != c.reason {
			t.Errorf("%s: reason %q, want %q", c.name, reason, c.reason)
		}
		if reason == "" && state.Benchmark.Spec.Target.Ref != nil {
			t.Errorf("%s: the reference is still there", c.name)
		}
	}
	changed := identify(known, second)
	if changed.TargetDigest == fresh.TargetDigest || changed.TargetDigest == "" {
		t.Errorf("digest %q of another StorageTarget", changed.TargetDigest)
	}
}
