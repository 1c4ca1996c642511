package operations

import (
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/kstatus"
)

// TestOperationsOfRunsStayInTheirNamespace: a run reaches only the pools that were created for its namespace. A refusal is final, because a
// pool never changes its namespace.
func TestOperationsOfRunsStayInTheirNamespace(t *testing.T) {
	replicate := v1alpha1.PoolAction{Replicate: &v1alpha1.ReplicateAction{Dataset: "a", ToPool: "bench1", To: "copy"}}
	begins := decided{"AddFinalizer", "", v1alpha1.ReasonOperationRunning, "begins"}
	refused := func(pool string) decided {
		return decided{"", v1alpha1.OutcomeFailed, v1alpha1.ReasonPoolNotAllowed, "BenchmarkPool " + pool + " was not created for namespace lab"}
	}
	for name, c := range map[string]struct {
		action v1alpha1.PoolAction
		// run is the namespace of the run. pool and toPool are the namespaces that the pools were created for.
		run, pool, toPool string
		want              decided
	}{
		"an admin's":                       {replicate, "", "", "", begins},
		"an admin's, to a namespace":       {replicate, "", "", "lab", begins},
		"a run's":                          {replicate, "lab", "lab", "lab", begins},
		"a run's, to another namespace":    {replicate, "lab", "lab", "other", refused("bench1")},
		"a run's, to an admin's pool":      {replicate, "lab", "lab", "", refused("bench1")},
		"a run's, from an admin's pool":    {replicate, "lab", "", "lab", refused("bench0")},
		"a run's scrub":                    {scrubAction, "lab", "lab", "", begins},
		"a run's scrub of another's pool":  {scrubAction, "lab", "other", "", refused("bench0")},
		"a run's scrub of an admin's pool": {scrubAction, "lab", "", "", refused("bench0")},
	} {
		for _, ready := range []bool{true, false} {
			state := operationState(c.action)
			state.Pool.Spec.Namespace = c.pool
			state.Source, state.Target = Object{Name: "bench0/a", Exists: true}, Object{Name: "bench1/copy"}
			if c.run != "" {
				state.Operation.Labels = map[string]string{v1alpha1.LabelNamespace: c.run}
			}
			if c.action.Replicate != nil {
				to := *state.Live
				to.Name, to.GUID = "bench1", "701"
				state.ToPool, state.ToLive = state.Pool.DeepCopy(), &to
				state.ToPool.Name, state.ToPool.UID, state.ToPool.Spec.Namespace = "bench1", "uid-2", c.toPool
			}
			if want := c.want; ready || want != begins {
				if !ready { // a refused operation does not wait for the pool
					kstatus.SetStalled(&state.Pool.Status.Conditions, state.Pool.Generation, v1alpha1.ReasonPoolDrifted, "so it is")
				}
				t.Run(name, func(t *testing.T) { want.diff(t, Plan(state)) })
			}
		}
	}
}
