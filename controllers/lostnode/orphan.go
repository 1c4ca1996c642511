package lostnode

import (
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/agent/pools"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// kind is one of the kinds that only agents finalize.
type kind struct {
	name   string
	empty  func() client.Object
	list   func() client.ObjectList
	orphan func(client.Object) orphan
}

// orphan holds what matters here of an object whose node has no agent.
type orphan struct {
	node       string
	conditions *[]metav1.Condition
	// ended needs no more work.
	ended bool
	// retained is deleted without the pool.
	retained bool
	// left is what may be left, and where. release is the command to accept that.
	left, release string
}

var kinds = []kind{
	{
		name:  "BenchmarkPool",
		empty: func() client.Object { return &v1alpha1.BenchmarkPool{} },
		list:  func() client.ObjectList { return &v1alpha1.BenchmarkPoolList{} },
		orphan: func(object client.Object) orphan {
			pool, _ := object.(*v1alpha1.BenchmarkPool)
			left := pools.LeftBehind(pool)
			if pools.LetsGo(pool) {
				left = pools.StaysBehind(pool, pool.Status.GUID)
			}
			return orphan{node: pool.Spec.NodeName, conditions: &pool.Status.Conditions, retained: !pools.Destroys(pool), left: left,
				release: pools.ReleaseCommand(pool)}
		},
	},
	{
		name:  "PoolOperation",
		empty: func() client.Object { return &v1alpha1.PoolOperation{} },
		list:  func() client.ObjectList { return &v1alpha1.PoolOperationList{} },
		orphan: func(object client.Object) orphan {
			operation, _ := object.(*v1alpha1.PoolOperation)
			return orphan{node: operation.Spec.NodeName, conditions: &operation.Status.Conditions, ended: operation.Status.Outcome != "",
				left: operations.OperationLeftBehind(operation), release: operations.OperationReleaseCommand(operation)}
		},
	},
}
