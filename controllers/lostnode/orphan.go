package lostnode

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
)

// kind is one of the kinds that only agents finalize.
type kind struct {
	name  string
	empty func() client.Object
	list  func() client.ObjectList
	// orphan returns the description of an object that the decision needs, and the conditions of the object.
	orphan func(client.Object) (objects.Orphan, *[]metav1.Condition)
}

var kinds = []kind{
	{
		name:  "BenchmarkPool",
		empty: func() client.Object { return &v1alpha1.BenchmarkPool{} },
		list:  func() client.ObjectList { return &v1alpha1.BenchmarkPoolList{} },
		orphan: func(object client.Object) (objects.Orphan, *[]metav1.Condition) {
			pool, _ := object.(*v1alpha1.BenchmarkPool)
			return objects.OrphanedPool(pool), &pool.Status.Conditions
		},
	},
	{
		name:  "PoolOperation",
		empty: func() client.Object { return &v1alpha1.PoolOperation{} },
		list:  func() client.ObjectList { return &v1alpha1.PoolOperationList{} },
		orphan: func(object client.Object) (objects.Orphan, *[]metav1.Condition) {
			operation, _ := object.(*v1alpha1.PoolOperation)
			return objects.OrphanedOperation(operation), &operation.Status.Conditions
		},
	},
}
