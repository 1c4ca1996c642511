package pool

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/pools"
	"github.com/storagebench/storagebench/test/states"
)

// TestStates: the conditions of every state of a pool. test/gitops says what Flux and Argo CD make of them.
func TestStates(t *testing.T) {
	for name, test := range map[string]struct {
		decision pools.Decision
		failure  error
		ready    metav1.ConditionStatus
		stalled  bool
	}{
		"ready":      {decision: pools.Decision{Phase: pools.PoolDone, Reason: v1alpha1.ReasonPoolReady, Message: "as specified"}, ready: "True"},
		"changing":   {decision: pools.Decision{Phase: pools.PoolProgressing, Reason: v1alpha1.ReasonPoolChanging, Message: "importing"}, ready: "False"},
		"rebuilding": {decision: pools.Decision{Reason: v1alpha1.ReasonPoolRebuilding, Message: "rebuilding data"}, ready: "False"},
		"unhealthy": {decision: pools.Decision{Phase: pools.PoolStalled, Reason: v1alpha1.ReasonPoolUnhealthy, Message: "pool bench0 is DEGRADED"},
			ready: "False", stalled: true},
		"unobserved": {failure: errors.New("zpool list: no answer"), ready: "False"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &v1alpha1.BenchmarkPool{ObjectMeta: metav1.ObjectMeta{Name: "bench0", Generation: 2}, Spec: v1alpha1.BenchmarkPoolSpec{NodeName: "n1"}}
			if test.failure != nil {
				pool.Status = summariseFailure(pool, test.failure)
			} else {
				pool.Status = summarise(observed{State: pools.State{Pool: pool}}, test.decision)
			}
			if !meta.IsStatusConditionPresentAndEqual(pool.Status.Conditions, v1alpha1.ConditionReady, test.ready) ||
				meta.IsStatusConditionTrue(pool.Status.Conditions, v1alpha1.ConditionStalled) != test.stalled {
				t.Errorf("%+v", pool.Status.Conditions)
			}
			states.Check(t, "BenchmarkPool", name, pool)
		})
	}
}
