// Package v1alpha1 is the API of storagebench: experiments (StorageBenchmark), their executions (BenchmarkRun), and the objects
// that the node agent reconciles (BenchmarkPool, PoolOperation).
//
// +kubebuilder:object:generate=true
// +groupName=storagebench.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "storagebench.dev", Version: "v1alpha1"}

	// SchemeGroupVersion is GroupVersion under the name that generated code uses.
	SchemeGroupVersion = GroupVersion

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&StorageBenchmark{}, &StorageBenchmarkList{},
		&BenchmarkRun{}, &BenchmarkRunList{},
		&BenchmarkPool{}, &BenchmarkPoolList{},
		&PoolOperation{}, &PoolOperationList{},
		&StorageTarget{}, &StorageTargetList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
