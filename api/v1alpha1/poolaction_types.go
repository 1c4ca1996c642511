package v1alpha1

// PoolAction is an action on a pool: exactly one member is set.
//
// +kubebuilder:validation:ExactlyOneOf=observe;snapshot;clone;destroySnapshot;destroyDataset;replicate;copy;scrub;trim;addVdev;removeVdev;replaceDevice;offlineDevice;exportImport;moduleParameter;setProperty;layoutScore;metaslabMap
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
	// destroySnapshot destroys a snapshot and reports how its space is freed.
	// +optional
	DestroySnapshot *DestroySnapshotAction `json:"destroySnapshot,omitempty"`
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
	AddVdev *AddVdevAction `json:"addVdev,omitempty"`
	// removeVdev removes a top-level vdev.
	// +optional
	RemoveVdev *RemoveVdevAction `json:"removeVdev,omitempty"`
	// replaceDevice replaces a disk with another one.
	// +optional
	ReplaceDevice *ReplaceDeviceAction `json:"replaceDevice,omitempty"`
	// offlineDevice takes a disk offline for a while.
	// +optional
	OfflineDevice *OfflineDeviceAction `json:"offlineDevice,omitempty"`
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

// DestroySnapshotAction destroys a snapshot.
type DestroySnapshotAction struct {
	// dataset is the dataset that has the snapshot.
	// +required
	Dataset DatasetPath `json:"dataset"`
	// name is the name of the snapshot, without dataset and '@'. One that has clones cannot be destroyed.
	// +required
	Name SnapshotName `json:"name"`
	// guid is the GUID of the snapshot to destroy. A snapshot with another GUID is left alone.
	// +optional
	GUID GUID `json:"guid,omitempty"`
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

// GUID identifies a dataset, a snapshot, a vdev or a disk of a pool in ZFS, independent of its name.
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
	// interruptAt interrupts the full stream after this share of its size, and resumes it.
	// +optional
	InterruptAt Share `json:"interruptAt,omitempty"`
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
	// properties are set on the dataset if it is created.
	// +optional
	Properties LiveProperties `json:"properties,omitempty"`
	// overwrite overwrites existing files. Without it, the dataset must be empty.
	// +optional
	Overwrite bool `json:"overwrite,omitempty"`
}

// ScrubAction reads and verifies all data.
type ScrubAction struct{}

// TrimAction tells the disks which blocks are free.
type TrimAction struct {
	// device is the disk to trim. Defaults to all disks.
	// +optional
	Device DiskRef `json:"device,omitempty"`
}

// AddVdevAction is the vdev to add.
//
// +kubebuilder:validation:XValidation:rule="self.devices.size() >= (self.type in ['mirror', 'raidz1'] ? 2 : self.type == 'raidz3' ? 4 : self.type == 'stripe' ? 1 : 3)",message="give a mirror or raidz1 at least 2 devices, a raidz2 or draid 3 and a raidz3 4, or write type: stripe"
// +kubebuilder:validation:XValidation:rule="self.type.startsWith('draid') || (!has(self.draidDataDevices) && !has(self.draidSpares))",message="set draidDataDevices and draidSpares only with a draid type"
// +kubebuilder:validation:XValidation:rule="!has(self.draidDataDevices) || self.draidDataDevices + (has(self.draidSpares) ? self.draidSpares : 0) + (self.type == 'draid1' ? 1 : self.type == 'draid2' ? 2 : 3) <= self.devices.size()",message="give a draid at least as many devices as draidDataDevices + draidSpares + its parity (1, 2 or 3)"
type AddVdevAction struct {
	// type is the redundancy of the vdev. stripe is plain disks without redundancy. Defaults to stripe.
	// +optional
	// +default="stripe"
	Type VdevType `json:"type,omitempty"`
	// devices are the disks.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Devices []DiskRef `json:"devices"`
	// draidDataDevices is the number of data devices in each redundancy group of a draid.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	DraidDataDevices *int32 `json:"draidDataDevices,omitempty"`
	// draidSpares is the number of distributed spares of a draid.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4
	DraidSpares *int32 `json:"draidSpares,omitempty"`
}

// Vdev returns the vdev. The names of its disks must already be replaced by paths.
func (a AddVdevAction) Vdev() Vdev {
	vdev := Vdev{Type: a.Type, DraidDataDevices: a.DraidDataDevices, DraidSpares: a.DraidSpares}
	for _, device := range a.Devices {
		vdev.Devices = append(vdev.Devices, DevicePath(device))
	}
	return vdev
}

// RemoveVdevAction removes a top-level vdev.
type RemoveVdevAction struct {
	// device is a disk of the top-level vdev to remove.
	// +required
	Device DiskRef `json:"device"`
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
	Device DiskRef `json:"device"`
	// with is the new disk.
	// +required
	With DiskRef `json:"with"`
	// guid is the GUID of the disk to replace. If device is another disk of the pool, nothing is replaced.
	// +optional
	GUID GUID `json:"guid,omitempty"`
}

// OfflineDeviceAction takes a disk of a mirror, raidz or draid offline, brings it back and waits until ZFS has rebuilt what was written
// meanwhile.
type OfflineDeviceAction struct {
	// device is the disk to take offline.
	// +required
	Device DiskRef `json:"device"`
	// duration is how long it is offline.
	// +required
	Duration *Duration `json:"duration"`
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
	// properties are the new values. They last until the dataset is destroyed or its BenchmarkPool changes.
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
