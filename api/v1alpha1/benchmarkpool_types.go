package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoolDataset is a dataset or zvol on the pool.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Volume') == has(self.size)",message="set size for datasets of type Volume only, and always; limit a Filesystem with the property refquota"
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="ZFS cannot change the type of a dataset: use another path for the new dataset"
// +kubebuilder:validation:XValidation:rule="self.type != 'Volume' || !has(self.mounted) || !self.mounted",message="remove mounted: a dataset of type Volume is the device /dev/zvol/POOL/PATH"
// +kubebuilder:validation:XValidation:rule="!has(self.awaited) || !self.awaited || (self.type == 'Filesystem' && has(self.mounted) && self.mounted && !has(self.properties))",message="write awaited only with type: Filesystem, mounted: true and no properties: the operation that creates the dataset sets them"
type PoolDataset struct {
	// path is the name of the dataset below the pool.
	// +required
	Path DatasetPath `json:"path"`
	// type is Filesystem or Volume (a zvol). Defaults to Filesystem.
	// +optional
	// +default="Filesystem"
	// +kubebuilder:validation:Enum=Filesystem;Volume
	Type string `json:"type,omitempty"`
	// size is the size of a Volume.
	// +optional
	Size *Size `json:"size,omitempty"`
	// mounted keeps a Filesystem mounted on the node at /var/lib/storagebench/volumes/POOL/PATH. Use the folder data inside it for
	// a local PersistentVolume: it exists only while the dataset is mounted. The dataset cannot have child datasets.
	// +optional
	Mounted bool `json:"mounted,omitempty"`
	// awaited means that an operation on the pool creates the dataset. The dataset is mounted once that operation has succeeded. The agent
	// does not touch a dataset that was created in any other way.
	// +optional
	Awaited bool `json:"awaited,omitempty"`
	// properties are the dataset properties to set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['mountpoint','canmount','zoned','zoned_uid','sharenfs','sharesmb','keylocation','setuid','devices','exec','volmode','snapdir']))",message="remove mountpoint, canmount, zoned, zoned_uid, sharenfs, sharesmb, keylocation, setuid, devices, exec, volmode and snapdir: the operator controls where datasets are mounted, uses no files of the node, and does not let the node execute files of a dataset"
	Properties Properties `json:"properties,omitempty"`
}

// DeletionPolicy says what happens to a pool when its object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Destroy
// +kubebuilder:validation:MaxLength=7
type DeletionPolicy string

// The values of DeletionPolicy.
const (
	DeletionRetain  DeletionPolicy = "Retain"
	DeletionDestroy DeletionPolicy = "Destroy"
)

// BenchmarkPoolSpec is the desired state of one zpool on one node.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="a pool cannot move: create a BenchmarkPool on the other node"
// +kubebuilder:validation:XValidation:rule="has(self.poolName) == has(oldSelf.poolName) && (!has(self.poolName) || self.poolName == oldSelf.poolName)",message="poolName is immutable: create another BenchmarkPool"
// +kubebuilder:validation:XValidation:rule="self.ashift == oldSelf.ashift",message="ZFS cannot change the ashift of a pool: create another BenchmarkPool"
// +kubebuilder:validation:XValidation:rule="oldSelf.vdevs.all(o, self.vdevs.all(v, v.type == o.type || (v.type == 'mirror' && o.type == 'stripe' && o.devices.size() == 1) || (v.type == 'stripe' && v.devices.size() == 1 && o.type == 'mirror') || !v.devices.exists(d, d in o.devices)))",message="ZFS cannot change the type of a vdev, except between a single disk and a mirror: create another BenchmarkPool"
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) == has(oldSelf.__namespace__) && (!has(self.__namespace__) || self.__namespace__ == oldSelf.__namespace__)",message="namespace is immutable: create another BenchmarkPool"
type BenchmarkPoolSpec struct {
	// nodeName is the node that has the disks.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a node as 'kubectl get nodes' shows it"
	NodeName string `json:"nodeName"`
	// poolName is the name of the zpool. Defaults to the name of the object.
	// +optional
	PoolName PoolName `json:"poolName,omitempty"`

	PoolTemplate `json:",inline"`

	// datasets are the datasets and zvols on the pool.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(d, d.type != 'Volume' || !self.exists(e, e.path.startsWith(d.path + '/')))",message="a dataset of type Volume cannot have child datasets: choose another path"
	// +kubebuilder:validation:XValidation:rule="self.all(d, !has(d.mounted) || !d.mounted || !self.exists(e, e.path.startsWith(d.path + '/')))",message="a dataset with mounted: true cannot have child datasets, because pods write where those would be mounted: choose another path"
	Datasets []PoolDataset `json:"datasets,omitempty"`
	// drift says what to do when a property was changed outside storagebench: Report or Repair. Defaults to Report.
	// +optional
	// +default="Report"
	// +kubebuilder:validation:Enum=Report;Repair
	Drift string `json:"drift,omitempty"`
	// deletionPolicy says what happens to the pool when this object is deleted, including by deletion of the CRD. Retain leaves the
	// pool on the node. Destroy destroys it with all data. The pools of benchmarks use Destroy. Defaults to Retain.
	// +optional
	// +default="Retain"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// namespace is the namespace that the pool is created for. The admin's grants to that namespace decide which devices it may
	// use.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a namespace, such as lab"
	Namespace string `json:"namespace,omitempty"`
}

// VdevStatus is one vdev or device of the pool.
type VdevStatus struct {
	// name is the name that 'zpool status' prints.
	// +required
	// +kubebuilder:validation:MaxLength=200
	Name string `json:"name"`
	// parent is the name of the parent vdev. Empty for top-level vdevs.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Parent string `json:"parent,omitempty"`
	// class is data, log, cache, special or spare.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Class string `json:"class,omitempty"`
	// guid is the GUID of the vdev. Before OpenZFS 2.3 it is reported only for cache devices and spares, whose labels name no pool.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GUID string `json:"guid,omitempty"`
	// state is the vdev state, such as ONLINE or FAULTED.
	// +required
	// +kubebuilder:validation:MaxLength=16
	State string `json:"state"`
	// readErrors is the number of read errors that ZFS counted.
	// +optional
	ReadErrors int64 `json:"readErrors,omitempty"`
	// writeErrors is the number of write errors that ZFS counted.
	// +optional
	WriteErrors int64 `json:"writeErrors,omitempty"`
	// checksumErrors is the number of checksum errors that ZFS counted.
	// +optional
	ChecksumErrors int64 `json:"checksumErrors,omitempty"`
	// ashift is the ashift of a top-level vdev.
	// +optional
	Ashift int32 `json:"ashift,omitempty"`
	// sizeBytes is the size of the vdev.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

// EffectiveProperty is a property read back from ZFS.
type EffectiveProperty struct {
	// dataset is the dataset that has the property. Empty for a pool property.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Dataset string `json:"dataset,omitempty"`
	// name is the name of the property.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// value is the value in effect.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
	// source is the source of the value, such as local or default.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Source string `json:"source,omitempty"`
}

// PreflightStatus is the result of the checks of a device before its first use.
type PreflightStatus struct {
	// device is the stable path of the disk.
	// +required
	Device DevicePath `json:"device"`
	// number is the device number (major:minor) of the disk when the agent last saw it, such as 254:80.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Number string `json:"number,omitempty"`
	// serial is the serial number of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Serial string `json:"serial,omitempty"`
	// sizeBytes is the size of the disk.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// logicalSectorBytes is the logical sector size of the disk.
	// +optional
	LogicalSectorBytes int32 `json:"logicalSectorBytes,omitempty"`
	// physicalSectorBytes is the physical sector size of the disk.
	// +optional
	PhysicalSectorBytes int32 `json:"physicalSectorBytes,omitempty"`
	// rotational is true for spinning disks.
	// +optional
	Rotational bool `json:"rotational,omitempty"`
	// writeCache is the write cache mode that the kernel reports.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	WriteCache string `json:"writeCache,omitempty"`
	// warnings are problems that do not prevent the use of the disk.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`
}

// BenchmarkPoolStatus is the observed state of a pool.
type BenchmarkPoolStatus struct {
	// observedGeneration is the generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Reconciling and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// guid is the GUID of the pool.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GUID string `json:"guid,omitempty"`
	// health is the pool health, such as ONLINE or DEGRADED.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Health string `json:"health,omitempty"`
	// sizeBytes is the size of the pool.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// allocatedBytes is the allocated space.
	// +optional
	AllocatedBytes int64 `json:"allocatedBytes,omitempty"`
	// freeBytes is the free space.
	// +optional
	FreeBytes int64 `json:"freeBytes,omitempty"`
	// fragmentationPercent is the fragmentation of the free space.
	// +optional
	FragmentationPercent *int32 `json:"fragmentationPercent,omitempty"`
	// vdevs is the flattened vdev tree, followed by disks that have left the pool and may still have its label, in state LEFT.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=160
	Vdevs []VdevStatus `json:"vdevs,omitempty"`
	// joining are disks that a command may have added to the pool since vdevs was read. They are recorded before the command, so that the
	// agent also looks for the pool on them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=160
	Joining []DevicePath `json:"joining,omitempty"`
	// properties are the values in effect of the requested and other relevant properties.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Properties []EffectiveProperty `json:"properties,omitempty"`
	// preflight is the result of the checks of each device.
	// +optional
	// +listType=map
	// +listMapKey=device
	// +kubebuilder:validation:MaxItems=160
	Preflight []PreflightStatus `json:"preflight,omitempty"`
	// zfsVersion is the version of the ZFS module and tools on the node.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ZFSVersion string `json:"zfsVersion,omitempty"`
}

// BenchmarkPool is a zpool on one node, with its datasets.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sbpool,categories=storagebench
// +kubebuilder:selectablefield:JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.status.sizeBytes`,priority=1
// +kubebuilder:printcolumn:name="Allocated",type=integer,JSONPath=`.status.allocatedBytes`,priority=1
// +kubebuilder:printcolumn:name="Frag%",type=integer,JSONPath=`.status.fragmentationPercent`
// +kubebuilder:printcolumn:name="Deletion",type=string,JSONPath=`.spec.deletionPolicy`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.poolName) || (self.metadata.name.size() <= 64 && !['mirror','raidz','draid','spare','log','cache','special','replacing','c0','c1','c2','c3','c4','c5','c6','c7','c8','c9','0','1','2','3','4','5','6','7','8','9'].exists(p, self.metadata.name.startsWith(p)))",message="metadata.name cannot be the name of a zpool: set spec.poolName, such as bench0"
type BenchmarkPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the pool.
	// +required
	Spec BenchmarkPoolSpec `json:"spec"`
	// status is the observed state of the pool.
	// +default={"observedGeneration": -1}
	// +optional
	Status BenchmarkPoolStatus `json:"status,omitzero"`
}

// BenchmarkPoolList is a list of BenchmarkPools.
//
// +kubebuilder:object:root=true
type BenchmarkPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BenchmarkPool `json:"items"`
}
