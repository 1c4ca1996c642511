package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolOperationSpec is one operation on one pool.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="an operation cannot move: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="self.pool == oldSelf.pool",message="pool is immutable: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="self.action == oldSelf.action",message="action is immutable: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="!oldSelf.cancel || self.cancel",message="a cancelled operation stays cancelled: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="(!has(self.action.clone) || !has(self.action.clone.as)) && (!has(self.action.replicate) || !has(self.action.replicate.as)) && (!has(self.action.copy) || !has(self.action.copy.as))",message="write the new dataset in 'to': 'as' makes a volume in the phases of a benchmark"
// +kubebuilder:validation:XValidation:rule="!has(self.action.replicate) || has(self.action.replicate.toPool)",message="write the name of a BenchmarkPool in toPool: volumes have names only in the phases of a benchmark"
// +kubebuilder:validation:XValidation:rule="!has(self.action.copy) || !has(self.action.copy.toVolume)",message="write the name of a BenchmarkPool in toPool: volumes have names only in the phases of a benchmark"
// +kubebuilder:validation:XValidation:rule="!has(self.action.copy) || !has(self.action.copy.toPool) || self.action.copy.toPool != self.pool",message="remove toPool, or write another BenchmarkPool: without it, copy stays within the pool of this operation"
// +kubebuilder:validation:XValidation:rule="!has(self.action.replicate) || !has(self.action.replicate.toPool) || self.action.replicate.toPool != self.pool",message="replicate to another BenchmarkPool: toPool is the pool of this operation; within a pool, use copy or clone"
// +kubebuilder:validation:XValidation:rule="(!has(self.action.addVdev) || self.action.addVdev.devices.all(d, d.startsWith('/'))) && (!has(self.action.removeVdev) || self.action.removeVdev.device.startsWith('/')) && (!has(self.action.replaceDevice) || self.action.replaceDevice.device.startsWith('/') && self.action.replaceDevice.with.startsWith('/')) && (!has(self.action.offlineDevice) || self.action.offlineDevice.device.startsWith('/')) && (!has(self.action.trim) || !has(self.action.trim.device) || self.action.trim.device.startsWith('/'))",message="write the stable path of each disk, such as /dev/disk/by-id/nvme-SERIAL: disks have names only in the phases of a benchmark"
type PoolOperationSpec struct {
	// nodeName is the node that has the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a node as 'kubectl get nodes' shows it"
	NodeName string `json:"nodeName"`
	// pool is the name of the BenchmarkPool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a BenchmarkPool as 'kubectl get benchmarkpools' shows it"
	Pool string `json:"pool"`
	// action is what the operation does.
	// +required
	Action PoolAction `json:"action"`
	// deadline limits both the wait from creation to start and the time from start to end. An operation that does not start in time never
	// starts. Defaults to 6h.
	// +optional
	// +default="6h"
	Deadline *Duration `json:"deadline,omitempty"`
	// cancel ends the operation early, where ZFS can. Defaults to false.
	// +optional
	// +default=false
	Cancel bool `json:"cancel"`
}

// OperationProgress is the progress of an operation.
type OperationProgress struct {
	// percent is the completed share.
	// +optional
	Percent int32 `json:"percent,omitempty"`
	// doneBytes is the number of bytes processed so far.
	// +optional
	DoneBytes int64 `json:"doneBytes,omitempty"`
	// totalBytes is the number of bytes to process, if known.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// message describes the progress.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// OperationMetric is one metric of an operation.
type OperationMetric struct {
	// name is the name of the metric, with its unit.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// value is the value of the metric.
	// +required
	Value int64 `json:"value"`
}

// PoolOperationStatus is the observed state of an operation.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.outcome) || (has(self.outcome) && self.outcome == oldSelf.outcome)",message="an operation has exactly one outcome: it is immutable"
type PoolOperationStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Reconciling, Stalled and Complete.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// poolUID is the UID of the first BenchmarkPool seen under the name in spec.pool. The operation starts on no other.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PoolUID string `json:"poolUID,omitempty"`
	// toPoolUID is the same for toPool of a replicate or copy.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ToPoolUID string `json:"toPoolUID,omitempty"`
	// startedAt is when the operation started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// handle identifies the action on the node. It is written before the first command.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Handle string `json:"handle,omitempty"`
	// attempts lists the agent processes that started a long-running action, one entry per restart of the agent. After two of them
	// ended during the action, it is not started again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	Attempts []string `json:"attempts,omitempty"`
	// finishedAt is when the operation ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// progress is the progress so far.
	// +optional
	Progress *OperationProgress `json:"progress,omitempty"`
	// outcome is Succeeded, Failed or Cancelled. It never changes.
	// +optional
	// +kubebuilder:validation:Enum=Succeeded;Failed;Cancelled
	Outcome string `json:"outcome,omitempty"`
	// metrics are the metrics of the operation.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Metrics []OperationMetric `json:"metrics,omitempty"`
	// data is the compressed document with series and histograms.
	// +optional
	// +kubebuilder:validation:MaxLength=393216
	Data []byte `json:"data,omitempty"`
	// dataDigest is the digest of the uncompressed document.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	DataDigest string `json:"dataDigest,omitempty"`
}

// PoolOperation is one operation on one pool, with exactly one outcome.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sbop,categories=storagebench
// +kubebuilder:selectablefield:JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.pool`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=`.status.progress.percent`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolOperation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the requested operation.
	// +required
	Spec PoolOperationSpec `json:"spec"`
	// status is the observed state of the operation.
	// +default={"observedGeneration": -1}
	// +optional
	Status PoolOperationStatus `json:"status,omitzero"`
}

// PoolOperationList is a list of PoolOperations.
//
// +kubebuilder:object:root=true
type PoolOperationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolOperation `json:"items"`
}
