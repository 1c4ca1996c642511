package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StorageTarget is storage to measure. Benchmarks of the same namespace refer to it by name, in target.ref. They are then portable, and
// only StorageTargets differ between clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sbt,categories=storagebench
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.storageClass.name`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.spec.zfs.nodes.matchLabels`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StorageTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the storage. It is immutable: experiments that have begun depend on it.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a StorageTarget is immutable: create another one, or delete it and recreate it"
	// +kubebuilder:validation:XValidation:rule="!has(self.ref)",message="write storageClass or zfs: a StorageTarget cannot refer to another one"
	Spec Target `json:"spec"`
}

// StorageTargetList is a list of StorageTargets.
//
// +kubebuilder:object:root=true
type StorageTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageTarget `json:"items"`
}
