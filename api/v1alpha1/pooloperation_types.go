package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolAction is one act on a pool: exactly one member is set.
//
// +kubebuilder:validation:ExactlyOneOf=observe;snapshot;clone;destroyDataset;replicate;copy;scrub;trim;addVdev;removeVdev;replaceDevice;exportImport;moduleParameter;layoutScore;metaslabMap
type PoolAction struct {
	// observe takes node-side counters over a window.
	// +optional
	Observe *ObserveAction `json:"observe,omitempty"`
	// snapshot takes a snapshot.
	// +optional
	Snapshot *SnapshotAction `json:"snapshot,omitempty"`
	// clone makes a dataset out of a snapshot.
	// +optional
	Clone *CloneAction `json:"clone,omitempty"`
	// destroyDataset destroys a dataset and follows the freeing of its space.
	// +optional
	DestroyDataset *DestroyDatasetAction `json:"destroyDataset,omitempty"`
	// replicate sends a dataset to another pool.
	// +optional
	Replicate *ReplicateAction `json:"replicate,omitempty"`
	// copy copies the files of a dataset to another.
	// +optional
	Copy *CopyAction `json:"copy,omitempty"`
	// scrub reads and verifies everything.
	// +optional
	Scrub *ScrubAction `json:"scrub,omitempty"`
	// trim tells the disks what is free.
	// +optional
	Trim *TrimAction `json:"trim,omitempty"`
	// addVdev grows the pool.
	// +optional
	AddVdev *Vdev `json:"addVdev,omitempty"`
	// removeVdev takes a top-level vdev out.
	// +optional
	RemoveVdev *RemoveVdevAction `json:"removeVdev,omitempty"`
	// replaceDevice puts another disk in the place of one.
	// +optional
	ReplaceDevice *ReplaceDeviceAction `json:"replaceDevice,omitempty"`
	// exportImport empties the caches of a pool that nobody uses.
	// +optional
	ExportImport *ExportImportAction `json:"exportImport,omitempty"`
	// moduleParameter sets a module parameter and restores it afterwards.
	// +optional
	ModuleParameter *ModuleParameterAction `json:"moduleParameter,omitempty"`
	// layoutScore tells how much of a file lies in one piece.
	// +optional
	LayoutScore *LayoutScoreAction `json:"layoutScore,omitempty"`
	// metaslabMap draws the free space.
	// +optional
	MetaslabMap *MetaslabMapAction `json:"metaslabMap,omitempty"`
}

// ObserveAction takes counters until the duration is over or the operation is cancelled.
type ObserveAction struct {
	// duration of the window; left out, until spec.cancel is set.
	// +optional
	Duration *Duration `json:"duration,omitempty"`
	// interval between samples.
	// +optional
	// +default="1s"
	Interval *Duration `json:"interval,omitempty"`
}

// SnapshotAction takes a snapshot.
type SnapshotAction struct {
	// dataset to take it of; left out, the pool's root dataset.
	// +optional
	Dataset DatasetPath `json:"dataset,omitempty"`
	// name of the snapshot, without dataset and '@'.
	// +required
	Name SnapshotName `json:"name"`
	// recursive takes it of all children at the same moment too.
	// +optional
	Recursive bool `json:"recursive,omitempty"`
}

// CloneAction makes a dataset out of a snapshot.
//
// +kubebuilder:validation:XValidation:rule="self.to != self.dataset",message="name another dataset in to"
type CloneAction struct {
	// dataset that has the snapshot.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// snapshot to clone.
	// +required
	Snapshot SnapshotName `json:"snapshot"`
	// to is the new dataset.
	// +required
	To DatasetPath `json:"to"`
}

// DestroyDatasetAction destroys a dataset.
type DestroyDatasetAction struct {
	// dataset to destroy; never the pool's root.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// recursive destroys children and snapshots too.
	// +optional
	Recursive bool `json:"recursive,omitempty"`
	// guid of the dataset that is meant; another one of that name is left alone.
	// +optional
	GUID GUID `json:"guid,omitempty"`
}

// GUID identifies a dataset, a vdev or a disk of a pool to ZFS, whatever its name.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*$')",message="write the guid in quotes, in digits only, as 'zfs get -H -o value guid DATASET' and 'zpool status -g POOL' show it"
type GUID string

// ReplicateAction sends a dataset to another BenchmarkPool of the same node.
type ReplicateAction struct {
	// dataset to send.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// toPool is the BenchmarkPool that receives.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a BenchmarkPool"
	ToPool string `json:"toPool"`
	// to is the dataset on that pool.
	// +required
	To DatasetPath `json:"to"`
	// increments repeats the sending so many times after the first, with what changed meanwhile.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Increments int32 `json:"increments,omitempty"`
	// compressed sends blocks as they are on disk.
	// +optional
	Compressed bool `json:"compressed,omitempty"`
}

// CopyAction copies the files of a dataset.
//
// +kubebuilder:validation:XValidation:rule="self.to != self.dataset",message="name two different datasets in dataset and to"
type CopyAction struct {
	// dataset to read.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// to is the dataset to write.
	// +required
	To DatasetPath `json:"to"`
}

// ScrubAction reads and verifies everything.
type ScrubAction struct{}

// TrimAction tells the disks what is free.
type TrimAction struct {
	// device to trim; left out, all.
	// +optional
	Device DevicePath `json:"device,omitempty"`
}

// RemoveVdevAction takes a top-level vdev out.
type RemoveVdevAction struct {
	// device whose top-level vdev is removed.
	// +required
	Device DevicePath `json:"device"`
	// guid of the top-level vdev that is meant; if the device is in another one, nothing is done.
	// +optional
	GUID GUID `json:"guid,omitempty"`
}

// ReplaceDeviceAction puts another disk in the place of one.
//
// +kubebuilder:validation:XValidation:rule="self.device != self.with",message="name two different disks in device and with"
type ReplaceDeviceAction struct {
	// device to replace.
	// +required
	Device DevicePath `json:"device"`
	// with is the new disk.
	// +required
	With DevicePath `json:"with"`
	// guid of the disk of the pool that is meant by device; if it is another one, nothing is done.
	// +optional
	GUID GUID `json:"guid,omitempty"`
}

// ExportImportAction empties the caches of a pool.
type ExportImportAction struct{}

// ModuleParameterAction sets a module parameter.
type ModuleParameterAction struct {
	// name of the parameter.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^(zfs|spa|metaslab|zil|zio|dmu|dbuf|vdev|zvol|l2arc|send|spl|zfetch)_[a-z0-9_]+$')",message="write the name of an OpenZFS module parameter, such as zfs_arc_max"
	Name string `json:"name"`
	// value while the operation lasts.
	// +required
	Value PropertyValue `json:"value"`
	// duration for which it is kept; left out, until spec.cancel is set.
	// +optional
	Duration *Duration `json:"duration,omitempty"`
}

// LayoutScoreAction tells how much of a file lies in one piece.
type LayoutScoreAction struct {
	// dataset to look at.
	// +required
	Dataset DatasetPath `json:"dataset"`
}

// MetaslabMapAction draws the free space.
type MetaslabMapAction struct{}

// PoolOperationSpec is one act on one pool.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="an operation cannot move: make another PoolOperation"
// +kubebuilder:validation:XValidation:rule="self.pool == oldSelf.pool",message="an operation keeps its pool: make another PoolOperation"
// +kubebuilder:validation:XValidation:rule="self.action == oldSelf.action",message="an operation keeps its action: make another PoolOperation"
// +kubebuilder:validation:XValidation:rule="!oldSelf.cancel || self.cancel",message="a cancelled operation stays cancelled: make another PoolOperation"
// +kubebuilder:validation:XValidation:rule="!has(self.action.replicate) || self.action.replicate.toPool != self.pool",message="replicate to another BenchmarkPool: toPool is this operation's own; within a pool, use copy or clone"
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
	// action to do.
	// +required
	Action PoolAction `json:"action"`
	// deadline for the operation from its start; what it waits for before that may take as long, from its creation. After it, the
	// operation does not begin.
	// +optional
	// +default="6h"
	Deadline *Duration `json:"deadline,omitempty"`
	// cancel ends the operation early, where ZFS can.
	// +optional
	// +default=false
	Cancel bool `json:"cancel"`
}

// OperationProgress says how far an operation is.
type OperationProgress struct {
	// percent done.
	// +optional
	Percent int32 `json:"percent,omitempty"`
	// doneBytes so far.
	// +optional
	DoneBytes int64 `json:"doneBytes,omitempty"`
	// totalBytes, if known.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// message in words.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// OperationMetric is one number of an operation's result.
type OperationMetric struct {
	// name with its unit.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// value of the metric.
	// +required
	Value int64 `json:"value"`
}

// PoolOperationStatus is what is known of an operation.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.outcome) || (has(self.outcome) && self.outcome == oldSelf.outcome)",message="an operation has exactly one outcome: it is never changed"
type PoolOperationStatus struct {
	// observedGeneration is the generation that the rest of the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Reconciling, Stalled, Complete.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// poolUID of the BenchmarkPool that was first seen under the name in spec.pool: the operation begins on no other.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PoolUID string `json:"poolUID,omitempty"`
	// toPoolUID is the same for spec.action.replicate.toPool.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ToPoolUID string `json:"toPoolUID,omitempty"`
	// startedAt is when the operation began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// handle is what identifies the act on the node, written before its first command.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Handle string `json:"handle,omitempty"`
	// attempts are the lives of the agent in which work that takes long was begun, one after each start of the agent. Work that has ended
	// with two of them is not begun again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	Attempts []string `json:"attempts,omitempty"`
	// finishedAt is when it ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// progress so far.
	// +optional
	Progress *OperationProgress `json:"progress,omitempty"`
	// outcome is Succeeded, Failed or Cancelled, once and for all.
	// +optional
	// +kubebuilder:validation:Enum=Succeeded;Failed;Cancelled
	Outcome string `json:"outcome,omitempty"`
	// metrics of the result.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Metrics []OperationMetric `json:"metrics,omitempty"`
	// data is the compressed document with series and histograms.
	// +optional
	// +kubebuilder:validation:MaxLength=393216
	Data []byte `json:"data,omitempty"`
	// dataDigest of the uncompressed document.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	DataDigest string `json:"dataDigest,omitempty"`
}

// PoolOperation is one act on one pool, with exactly one outcome.
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

	// spec is the operation asked for.
	// +required
	Spec PoolOperationSpec `json:"spec"`
	// status is what became of it.
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
