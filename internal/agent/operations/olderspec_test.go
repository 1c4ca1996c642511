package operations

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/internal/zfs"
)

// marked gives the pool of a state a local mark.
func marked(name, value string) func(*State) {
	return func(s *State) {
		s.Live.Marks = append(s.Live.Marks, zfs.Property{Object: s.Live.Name, Name: name, Value: value, Source: "local"})
	}
}

// TestOperationsOnOlderSpecs: nothing begins or runs on a pool whose spec is older than the pool, whatever its restored status says, until a
// person accepts the spec. The pool of the test has generation 2.
func TestOperationsOnOlderSpecs(t *testing.T) {
	waits := decided{"", "", v1alpha1.ReasonPoolOlderSpec, "waiting for BenchmarkPool bench0: the spec of BenchmarkPool bench0 is of generation 2"}
	begins := decided{"AddFinalizer", "", v1alpha1.ReasonOperationRunning, "begins"}
	runs := decided{"AddFinalizer Run", "", v1alpha1.ReasonOperationRunning, ""}
	accepted := func(s *State) {
		s.Pool.Annotations = map[string]string{v1alpha1.AnnotationAcceptSpec: "2"}
	}
	for name, c := range map[string]struct {
		changes     []func(*State)
		begin, goOn decided
	}{
		"the newest":           {[]func(*State){marked(pools.PropertySpec, "2")}, begins, runs},
		"older":                {[]func(*State){marked(pools.PropertySpec, "3")}, waits, waits},
		"held":                 {[]func(*State){marked(pools.PropertySpec, "1:held")}, waits, waits},
		"older, accepted":      {[]func(*State){marked(pools.PropertySpec, "3:held"), accepted}, begins, runs},
		"no mark":              {nil, begins, runs},
		"older, and not ready": {[]func(*State){marked(pools.PropertySpec, "3"), notReadyFor(v1alpha1.ReasonPoolOlderSpec)}, waits, waits},
	} {
		t.Run(name, func(t *testing.T) {
			waiting, started := operationState(scrubAction), begun(scrubAction, "")
			for _, change := range c.changes {
				change(&waiting)
				change(&started)
			}
			c.begin.diff(t, Plan(waiting))
			c.goOn.diff(t, Plan(started))
		})
	}
}

// TestTheOtherPoolOfAnOperation: neither of two pools may have an older spec.
func TestTheOtherPoolOfAnOperation(t *testing.T) {
	state := begun(v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "a", ToPool: "bench1", To: "copy"}}, "701")
	to := *state.Live
	to.Name, to.GUID = "bench1", "701"
	to.Marks = []zfs.Property{{Object: "bench1", Name: pools.PropertySpec, Value: "3", Source: "local"}}
	state.ToPool, state.ToLive = state.Pool.DeepCopy(), &to
	state.ToPool.Name = "bench1"
	decided{"", "", v1alpha1.ReasonPoolOlderSpec, "waiting for BenchmarkPool bench1"}.diff(t, Plan(state))
}
