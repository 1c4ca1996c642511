package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolAction is an action on a pool: exactly one member is set.
//
// +kubebuilder:validation:ExactlyOneOf=observe;snapshot;clone;destroyDataset;replicate;copy;scrub;trim;addVdev;removeVdev;replaceDevice;exportImport;moduleParameter;setProperty;layoutScore;metaslabMap
type PoolAction struct {
	// observe records counters of the node during a window.
	// +optional
	Observe *ObserveAction `json:"observe,omitempty"`
	// snapshot takes a snapshot.
	// +optional
	Snapshot *SnapshotAction `json:"snapshot,omitempty"`
	// clone creates a dataset from a snapshot.
	// +optional
	Clone *CloneAction `json:"clone,omitempty"`
	// destroyDataset destroys a dataset and reports how its space is freed.
	// +optional
	DestroyDataset *DestroyDatasetAction `json:"destroyDataset,omitempty"`
	// replicate sends a dataset to another pool.
	// +optional
	Replicate *ReplicateAction `json:"replicate,omitempty"`
	// copy copies the files of a dataset to another dataset.
	// +optional
	Copy *CopyAction `json:"copy,omitempty"`
	// scrub reads and verifies all data.
	// +optional
	Scrub *ScrubAction `json:"scrub,omitempty"`
	// trim tells the disks which blocks are free.
	// +optional
	Trim *TrimAction `json:"trim,omitempty"`
	// addVdev adds a vdev to the pool.
	// +optional
	AddVdev *Vdev `json:"addVdev,omitempty"`
	// removeVdev removes a top-level vdev.
	// +optional
	RemoveVdev *RemoveVdevAction `json:"removeVdev,omitempty"`
	// replaceDevice replaces a disk with another one.
	// +optional
	ReplaceDevice *ReplaceDeviceAction `json:"replaceDevice,omitempty"`
	// exportImport exports and imports an unused pool, which empties its caches.
	// +optional
	ExportImport *ExportImportAction `json:"exportImport,omitempty"`
	// moduleParameter sets a module parameter and restores it afterwards.
	// +optional
	ModuleParameter *ModuleParameterAction `json:"moduleParameter,omitempty"`
	// setProperty changes properties of a dataset.
	// +optional
	SetProperty *SetPropertyAction `json:"setProperty,omitempty"`
	// layoutScore measures how contiguous the files of a dataset are.
	// +optional
	LayoutScore *LayoutScoreAction `json:"layoutScore,omitempty"`
	// metaslabMap maps the free space.
	// +optional
	MetaslabMap *MetaslabMapAction `json:"metaslabMap,omitempty"`
}

// ObserveAction records counters until the duration ends or the operation is cancelled.
type ObserveAction struct {
	// duration is the length of the window. Without it, the window ends when spec.cancel is set.
	// +optional
	Duration *Duration `json:"duration,omitempty"`
	// interval is the time between samples. Defaults to 1s.
	// +optional
	// +default="1s"
	Interval *Duration `json:"interval,omitempty"`
}

// SnapshotAction takes a snapshot.
type SnapshotAction struct {
	// dataset is the dataset to snapshot. Defaults to the pool's root dataset.
	// +optional
	Dataset DatasetPath `json:"dataset,omitempty"`
	// name is the name of the snapshot, without dataset and '@'.
	// +required
	Name SnapshotName `json:"name"`
	// recursive includes all child datasets in the same atomic snapshot.
	// +optional
	Recursive bool `json:"recursive,omitempty"`
}

// CloneAction creates a dataset from a snapshot.
//
// +kubebuilder:validation:ExactlyOneOf=to;as
// +kubebuilder:validation:XValidation:rule="!has(self.to) || self.to != self.dataset",message="name a different dataset in to"
type CloneAction struct {
	// dataset is the dataset that has the snapshot.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// snapshot is the snapshot to clone.
	// +required
	Snapshot SnapshotName `json:"snapshot"`
	// to is the new dataset.
	// +optional
	To DatasetPath `json:"to,omitempty"`
	// as makes a volume of that name, which later phases use like any other. Its dataset has the same name. Only in phases.
	// +optional
	As VolumeName `json:"as,omitempty"`
}

// DestroyDatasetAction destroys a dataset.
type DestroyDatasetAction struct {
	// dataset is the dataset to destroy. The root dataset cannot be destroyed.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// recursive destroys children and snapshots too.
	// +optional
	Recursive bool `json:"recursive,omitempty"`
	// guid is the GUID of the dataset to destroy. A dataset with another GUID is left alone.
	// +optional
	GUID GUID `json:"guid,omitempty"`
}

// GUID identifies a dataset, a vdev or a disk of a pool in ZFS, independent of its name.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*$')",message="write the guid in quotes, in digits only, as 'zfs get -H -o value guid DATASET' and 'zpool status -g POOL' show it"
type GUID string

// ReplicateAction sends a dataset to another pool on the same node.
//
// +kubebuilder:validation:ExactlyOneOf=toVolume;toPool
// +kubebuilder:validation:ExactlyOneOf=to;as
type ReplicateAction struct {
	// dataset is the dataset to send.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// toVolume is the volume of the target whose pool receives the dataset. Only in phases.
	// +optional
	ToVolume VolumeName `json:"toVolume,omitempty"`
	// toPool is the BenchmarkPool that receives the dataset. Only in a PoolOperation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a BenchmarkPool"
	ToPool string `json:"toPool,omitempty"`
	// to is the dataset to create on that pool.
	// +optional
	To DatasetPath `json:"to,omitempty"`
	// as makes a volume of that name, which later phases use like any other. Its dataset has the same name. Only in phases.
	// +optional
	As VolumeName `json:"as,omitempty"`
	// increments is the number of incremental sends after the full one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Increments int32 `json:"increments,omitempty"`
	// compressed sends blocks as they are stored on disk.
	// +optional
	Compressed bool `json:"compressed,omitempty"`
}

// CopyAction copies the files of a dataset.
//
// +kubebuilder:validation:AtMostOneOf=toVolume;toPool
// +kubebuilder:validation:ExactlyOneOf=to;as
// +kubebuilder:validation:XValidation:rule="!has(self.to) || self.to != self.dataset || has(self.toVolume) || has(self.toPool)",message="name two different datasets in dataset and to"
type CopyAction struct {
	// dataset is the dataset to read.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// toVolume is the volume of the target whose pool has the dataset to write. Defaults to the phase's volume. Only in phases.
	// +optional
	ToVolume VolumeName `json:"toVolume,omitempty"`
	// toPool is the BenchmarkPool that has the dataset to write. Defaults to the operation's pool. Only in a PoolOperation.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a BenchmarkPool"
	ToPool string `json:"toPool,omitempty"`
	// to is the dataset to write. It is created if it does not exist.
	// +optional
	To DatasetPath `json:"to,omitempty"`
	// as makes a volume of that name in a new dataset, which later phases use like any other. The dataset has the same name. Only in phases.
	// +optional
	As VolumeName `json:"as,omitempty"`
	// properties are set on a dataset that is created.
	// +optional
	Properties LiveProperties `json:"properties,omitempty"`
	// overwrite writes into files that exist. Without it, the dataset must be empty.
	// +optional
	Overwrite bool `json:"overwrite,omitempty"`
}

// ScrubAction reads and verifies all data.
type ScrubAction struct{}

// TrimAction tells the disks which blocks are free.
type TrimAction struct {
	// device is the disk to trim. Defaults to all disks.
	// +optional
	Device DevicePath `json:"device,omitempty"`
}

// RemoveVdevAction removes a top-level vdev.
type RemoveVdevAction struct {
	// device is a disk of the top-level vdev to remove.
	// +required
	Device DevicePath `json:"device"`
	// guid is the GUID of the top-level vdev to remove. If the device belongs to another vdev, nothing is removed.
	// +optional
	GUID GUID `json:"guid,omitempty"`
}

// ReplaceDeviceAction replaces a disk with another one.
//
// +kubebuilder:validation:XValidation:rule="self.device != self.with",message="name two different disks in device and with"
type ReplaceDeviceAction struct {
	// device is the disk to replace.
	// +required
	Device DevicePath `json:"device"`
	// with is the new disk.
	// +required
	With DevicePath `json:"with"`
	// guid is the GUID of the disk to replace. If device is another disk of the pool, nothing is replaced.
	// +optional
	GUID GUID `json:"guid,omitempty"`
}

// ExportImportAction exports and imports a pool, which empties its caches.
type ExportImportAction struct{}

// ModuleParameterAction sets a module parameter.
type ModuleParameterAction struct {
	// name is the name of the parameter.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^(zfs|spa|metaslab|zil|zio|dmu|dbuf|vdev|zvol|l2arc|send|spl|zfetch)_[a-z0-9_]+$')",message="write the name of an OpenZFS module parameter, such as zfs_arc_max"
	Name string `json:"name"`
	// value is the value during the operation.
	// +required
	Value PropertyValue `json:"value"`
	// duration is how long the value is kept. Without it, the value is kept until spec.cancel is set.
	// +optional
	Duration *Duration `json:"duration,omitempty"`
}

// SetPropertyAction changes properties of a dataset. Blocks that are already written stay as they are.
type SetPropertyAction struct {
	// dataset is the dataset to change.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// properties are the new values. They hold until the dataset is destroyed or its BenchmarkPool changes.
	// +required
	Properties LiveProperties `json:"properties"`
}

// LiveProperties are properties that a dataset can change while it is in use, such as recordsize: 128k.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=13
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['atime','checksum','compression','copies','dedup','logbias','primarycache','recordsize','redundant_metadata','relatime','secondarycache','special_small_blocks','sync'])",message="write only atime, checksum, compression, copies, dedup, logbias, primarycache, recordsize, redundant_metadata, relatime, secondarycache, special_small_blocks and sync here, or the others into the target"
type LiveProperties map[string]PropertyValue

// LayoutScoreAction measures how contiguous the files of a dataset are.
type LayoutScoreAction struct {
	// dataset is the dataset to measure.
	// +required
	Dataset DatasetPath `json:"dataset"`
}

// MetaslabMapAction maps the free space.
type MetaslabMapAction struct{}

// PoolOperationSpec is one operation on one pool.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="an operation cannot move: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="self.pool == oldSelf.pool",message="pool is immutable: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="self.action == oldSelf.action",message="action is immutable: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="!oldSelf.cancel || self.cancel",message="a cancelled operation stays cancelled: create another PoolOperation"
// +kubebuilder:validation:XValidation:rule="(!has(self.action.clone) || !has(self.action.clone.as)) && (!has(self.action.replicate) || !has(self.action.replicate.as)) && (!has(self.action.copy) || !has(self.action.copy.as))",message="write the new dataset in to: as makes a volume in the phases of a benchmark"
// +kubebuilder:validation:XValidation:rule="!has(self.action.replicate) || has(self.action.replicate.toPool)",message="write the name of a BenchmarkPool in toPool: volumes have names only in the phases of a benchmark"
// +kubebuilder:validation:XValidation:rule="!has(self.action.copy) || !has(self.action.copy.toVolume)",message="write the name of a BenchmarkPool in toPool: volumes have names only in the phases of a benchmark"
// +kubebuilder:validation:XValidation:rule="!has(self.action.copy) || !has(self.action.copy.toPool) || self.action.copy.toPool != self.pool",message="remove toPool, or write another BenchmarkPool: without it, copy stays within the pool of this operation"
// +kubebuilder:validation:XValidation:rule="!has(self.action.replicate) || !has(self.action.replicate.toPool) || self.action.replicate.toPool != self.pool",message="replicate to another BenchmarkPool: toPool is the pool of this operation; within a pool, use copy or clone"
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
	// deadline is the time limit of the operation from its start, and of the wait for that start from its creation. An operation
	// that does not start in time never starts. Defaults to 6h.
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
