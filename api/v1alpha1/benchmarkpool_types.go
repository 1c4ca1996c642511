package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VdevType is the redundancy of a data vdev.
//
// +kubebuilder:validation:Enum=stripe;mirror;raidz1;raidz2;raidz3;draid1;draid2;draid3
// +kubebuilder:validation:MaxLength=8
type VdevType string

// Vdev is one top-level data vdev.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'mirror' || self.devices.size() >= 2",message="give a mirror at least 2 devices, or write type: stripe"
// +kubebuilder:validation:XValidation:rule="self.type != 'raidz1' || self.devices.size() >= 2",message="give a raidz1 at least 2 devices"
// +kubebuilder:validation:XValidation:rule="self.type != 'raidz2' || self.devices.size() >= 3",message="give a raidz2 at least 3 devices"
// +kubebuilder:validation:XValidation:rule="self.type != 'raidz3' || self.devices.size() >= 4",message="give a raidz3 at least 4 devices"
// +kubebuilder:validation:XValidation:rule="!self.type.startsWith('draid') || self.devices.size() >= 3",message="give a draid at least 3 devices"
// +kubebuilder:validation:XValidation:rule="self.type.startsWith('draid') || (!has(self.draidDataDevices) && !has(self.draidSpares))",message="set draidDataDevices and draidSpares only with a draid type"
// +kubebuilder:validation:XValidation:rule="!has(self.draidDataDevices) || self.draidDataDevices + (has(self.draidSpares) ? self.draidSpares : 0) + (self.type == 'draid1' ? 1 : self.type == 'draid2' ? 2 : 3) <= self.devices.size()",message="give a draid at least as many devices as draidDataDevices + draidSpares + its parity (1, 2 or 3)"
type Vdev struct {
	// type of the vdev; stripe is plain disks without redundancy.
	// +optional
	// +default="stripe"
	Type VdevType `json:"type,omitempty"`
	// devices by stable path.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Devices []DevicePath `json:"devices"`
	// draidDataDevices is the number of data devices per redundancy group of a draid.
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

// AuxiliaryVdev is a log or special vdev.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'mirror' || self.devices.size() >= 2",message="give a mirror at least 2 devices, or write type: stripe"
// +kubebuilder:validation:XValidation:rule="self.type in ['stripe', 'mirror']",message="write type: stripe or mirror"
type AuxiliaryVdev struct {
	// type is stripe or mirror.
	// +optional
	// +default="stripe"
	Type VdevType `json:"type,omitempty"`
	// devices by stable path.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Devices []DevicePath `json:"devices"`
}

// PoolTemplate is the layout of a pool.
// +kubebuilder:validation:XValidation:rule="self.vdevs.all(v, v.devices.all(d, self.vdevs.exists_one(w, d in w.devices))) && (!has(self.log) || self.log.all(v, v.devices.all(d, !self.vdevs.exists(w, d in w.devices) && self.log.exists_one(w, d in w.devices)))) && (!has(self.special) || self.special.all(v, v.devices.all(d, !self.vdevs.exists(w, d in w.devices) && (!has(self.log) || !self.log.exists(w, d in w.devices)) && self.special.exists_one(w, d in w.devices)))) && (!has(self.cache) || self.cache.all(d, !self.vdevs.exists(w, d in w.devices) && (!has(self.log) || !self.log.exists(w, d in w.devices)) && (!has(self.special) || !self.special.exists(w, d in w.devices)))) && (!has(self.spare) || self.spare.all(d, !self.vdevs.exists(w, d in w.devices) && (!has(self.log) || !self.log.exists(w, d in w.devices)) && (!has(self.special) || !self.special.exists(w, d in w.devices)) && (!has(self.cache) || !(d in self.cache))))",message="name each device once: one stands in two places of the pool"
type PoolTemplate struct {
	// vdevs that hold the data.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Vdevs []Vdev `json:"vdevs"`
	// log vdevs for the intent log.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Log []AuxiliaryVdev `json:"log,omitempty"`
	// cache devices (L2ARC).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Cache []DevicePath `json:"cache,omitempty"`
	// special vdevs for metadata and small blocks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Special []AuxiliaryVdev `json:"special,omitempty"`
	// spare devices.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Spare []DevicePath `json:"spare,omitempty"`
	// ashift is the power of two of the smallest write: 9 is 512 bytes, 12 is 4 KiB, 13 is 8 KiB.
	// +optional
	// +default=12
	// +kubebuilder:validation:Minimum=9
	// +kubebuilder:validation:Maximum=16
	Ashift int32 `json:"ashift,omitempty"`
	// properties of the pool.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['autoexpand','autotrim','comment','compatibility','dedup_table_quota','failmode'])",message="write only autoexpand, autotrim, comment, compatibility, dedup_table_quota and failmode here: other properties of a pool reach beyond it or are the agent's to set, ashift is a field of its own beside properties, and what datasets have belongs into rootProperties"
	// +kubebuilder:validation:XValidation:rule="!('failmode' in self) || self['failmode'] in ['wait','continue']",message="write failmode: wait or failmode: continue; with panic a lost disk would take the node down"
	// +kubebuilder:validation:XValidation:rule="!('compatibility' in self) || !self['compatibility'].contains('/')",message="write compatibility: off, legacy or the name of a file in compatibility.d, such as openzfs-2.1-linux, without '/'"
	Properties Properties `json:"properties,omitempty"`
	// rootProperties are dataset properties of the pool's root dataset, inherited by all others.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['mountpoint','canmount','zoned','sharenfs','sharesmb','keylocation','setuid','devices','exec','volmode']))",message="remove mountpoint, canmount, zoned, sharenfs, sharesmb, keylocation, setuid, devices, exec and volmode: the operator decides where datasets are seen, takes no files of the node, and lets the node run nothing that a dataset holds"
	RootProperties Properties `json:"rootProperties,omitempty"`
	// minDeviceSize refuses devices smaller than this.
	// +optional
	MinDeviceSize *Amount `json:"minDeviceSize,omitempty"`
	// reuse names disks that may be taken although they carry old data. On behalf of a namespace the grant of the disk has to end with
	// ':reuse'.
	// +optional
	Reuse *DeviceReuse `json:"reuse,omitempty"`
}

// DeviceReuse names disks whose old contents may be lost.
type DeviceReuse struct {
	// serials of exactly those disks.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^[A-Za-z0-9][A-Za-z0-9_.:-]*$'))",message="write each disk's own serial number as 'lsblk -o SERIAL' prints it; patterns are not allowed"
	Serials []string `json:"serials"`
}

// PoolDataset is a dataset or zvol on the pool.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Volume') == has(self.size)",message="give size exactly to datasets of type Volume; limit a Filesystem with the property refquota"
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="ZFS cannot change the type of a dataset: give the new one another path"
// +kubebuilder:validation:XValidation:rule="self.type != 'Volume' || !has(self.mounted) || !self.mounted",message="remove mounted: a dataset of type Volume is the device /dev/zvol/POOL/PATH"
type PoolDataset struct {
	// path below the pool.
	// +required
	Path DatasetPath `json:"path"`
	// type is Filesystem or Volume.
	// +optional
	// +default="Filesystem"
	// +kubebuilder:validation:Enum=Filesystem;Volume
	Type string `json:"type,omitempty"`
	// size of a Volume.
	// +optional
	Size *Size `json:"size,omitempty"`
	// mounted keeps a Filesystem mounted on the node, at /var/lib/storagebench/volumes/POOL/PATH. For a local PersistentVolume take the folder
	// data in it: that is there only while the dataset is mounted. No other dataset of the pool lies below it.
	// +optional
	Mounted bool `json:"mounted,omitempty"`
	// properties of the dataset.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['mountpoint','canmount','zoned','sharenfs','sharesmb','keylocation','setuid','devices','exec','volmode']))",message="remove mountpoint, canmount, zoned, sharenfs, sharesmb, keylocation, setuid, devices, exec and volmode: the operator decides where datasets are seen, takes no files of the node, and lets the node run nothing that a dataset holds"
	Properties Properties `json:"properties,omitempty"`
}

// DeletionPolicy says what becomes of a pool whose object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Destroy
// +kubebuilder:validation:MaxLength=7
type DeletionPolicy string

// The deletion policies.
const (
	DeletionRetain  DeletionPolicy = "Retain"
	DeletionDestroy DeletionPolicy = "Destroy"
)

// BenchmarkPoolSpec is one zpool on one node.
//
// +kubebuilder:validation:XValidation:rule="self.nodeName == oldSelf.nodeName",message="a pool cannot move: make a BenchmarkPool on the other node"
// +kubebuilder:validation:XValidation:rule="has(self.poolName) == has(oldSelf.poolName) && (!has(self.poolName) || self.poolName == oldSelf.poolName)",message="a pool keeps its name: make another BenchmarkPool"
// +kubebuilder:validation:XValidation:rule="self.ashift == oldSelf.ashift",message="ZFS cannot change the ashift of a pool: make another BenchmarkPool"
// +kubebuilder:validation:XValidation:rule="oldSelf.vdevs.all(o, self.vdevs.all(v, v.type == o.type || (v.type == 'mirror' && o.type == 'stripe' && o.devices.size() == 1) || (v.type == 'stripe' && v.devices.size() == 1 && o.type == 'mirror') || !v.devices.exists(d, d in o.devices)))",message="ZFS cannot change the type of a vdev, except between a single disk and a mirror: make another BenchmarkPool"
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) == has(oldSelf.__namespace__) && (!has(self.__namespace__) || self.__namespace__ == oldSelf.__namespace__)",message="a pool cannot change the namespace it was made for: make another BenchmarkPool"
type BenchmarkPoolSpec struct {
	// nodeName is the node that has the disks.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a node as 'kubectl get nodes' shows it"
	NodeName string `json:"nodeName"`
	// poolName is the zpool's name; left out, the object's name.
	// +optional
	PoolName PoolName `json:"poolName,omitempty"`

	PoolTemplate `json:",inline"`

	// datasets on the pool.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(d, d.type != 'Volume' || !self.exists(e, e.path.startsWith(d.path + '/')))",message="a dataset of type Volume has no datasets below it: choose another path"
	// +kubebuilder:validation:XValidation:rule="self.all(d, !has(d.mounted) || !d.mounted || !self.exists(e, e.path.startsWith(d.path + '/')))",message="a dataset with mounted: true has no datasets below it, for pods write where those would be mounted: choose another path"
	Datasets []PoolDataset `json:"datasets,omitempty"`
	// drift says what happens when somebody changes a property: Report it or Repair it.
	// +optional
	// +default="Report"
	// +kubebuilder:validation:Enum=Report;Repair
	Drift string `json:"drift,omitempty"`
	// deletionPolicy says what becomes of the pool when this object is deleted, also by the deletion of the CRD: Retain leaves it on the
	// node as it is, Destroy destroys it with all data on it. Pools of benchmarks are made with Destroy.
	// +optional
	// +default="Retain"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// namespace on whose behalf the pool is made; the admin's policy for that namespace decides about the devices.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a namespace, such as lab"
	Namespace string `json:"namespace,omitempty"`
}

// VdevStatus is one node of the pool's tree.
type VdevStatus struct {
	// name as 'zpool status' prints it.
	// +required
	// +kubebuilder:validation:MaxLength=200
	Name string `json:"name"`
	// parent in the tree; empty for top-level vdevs.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Parent string `json:"parent,omitempty"`
	// class is data, log, cache, special or spare.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Class string `json:"class,omitempty"`
	// guid of the vdev. Before OpenZFS 2.3 it is told only of cache devices and spares, whose labels name themselves by nothing else.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GUID string `json:"guid,omitempty"`
	// state such as ONLINE or FAULTED.
	// +required
	// +kubebuilder:validation:MaxLength=16
	State string `json:"state"`
	// readErrors counted by ZFS.
	// +optional
	ReadErrors int64 `json:"readErrors,omitempty"`
	// writeErrors counted by ZFS.
	// +optional
	WriteErrors int64 `json:"writeErrors,omitempty"`
	// checksumErrors counted by ZFS.
	// +optional
	ChecksumErrors int64 `json:"checksumErrors,omitempty"`
	// ashift of a top-level vdev.
	// +optional
	Ashift int32 `json:"ashift,omitempty"`
	// sizeBytes of the vdev.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

// EffectiveProperty is a property read back from ZFS.
type EffectiveProperty struct {
	// dataset that has it; empty for the pool itself.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Dataset string `json:"dataset,omitempty"`
	// name of the property.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// value in effect.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
	// source of the value, such as local or default.
	// +optional
	// +kubebuilder:validation:MaxLength=300
	Source string `json:"source,omitempty"`
}

// PreflightStatus is what was found out about a device before it was used.
type PreflightStatus struct {
	// device by its stable path.
	// +required
	Device DevicePath `json:"device"`
	// serial of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Serial string `json:"serial,omitempty"`
	// sizeBytes of the disk.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// logicalSectorBytes of the disk.
	// +optional
	LogicalSectorBytes int32 `json:"logicalSectorBytes,omitempty"`
	// physicalSectorBytes of the disk.
	// +optional
	PhysicalSectorBytes int32 `json:"physicalSectorBytes,omitempty"`
	// rotational is true for disks that turn.
	// +optional
	Rotational bool `json:"rotational,omitempty"`
	// writeCache as the kernel reports it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	WriteCache string `json:"writeCache,omitempty"`
	// warnings in words.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	Warnings []string `json:"warnings,omitempty"`
}

// BenchmarkPoolStatus is what is known of a pool.
type BenchmarkPoolStatus struct {
	// observedGeneration is the generation that the rest of the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready, Reconciling, Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// guid of the pool.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	GUID string `json:"guid,omitempty"`
	// health such as ONLINE or DEGRADED.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Health string `json:"health,omitempty"`
	// sizeBytes of the pool.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// allocatedBytes of it.
	// +optional
	AllocatedBytes int64 `json:"allocatedBytes,omitempty"`
	// freeBytes of it.
	// +optional
	FreeBytes int64 `json:"freeBytes,omitempty"`
	// fragmentationPercent of the free space.
	// +optional
	FragmentationPercent *int32 `json:"fragmentationPercent,omitempty"`
	// vdevs is the tree, flattened.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=160
	Vdevs []VdevStatus `json:"vdevs,omitempty"`
	// properties in effect that were asked for or matter.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	Properties []EffectiveProperty `json:"properties,omitempty"`
	// preflight of the devices.
	// +optional
	// +listType=map
	// +listMapKey=device
	// +kubebuilder:validation:MaxItems=160
	Preflight []PreflightStatus `json:"preflight,omitempty"`
	// zfsVersion of the node's module and tools.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ZFSVersion string `json:"zfsVersion,omitempty"`
}

// BenchmarkPool is one zpool on one node with the datasets on it.
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

	// spec is the pool asked for.
	// +required
	Spec BenchmarkPoolSpec `json:"spec"`
	// status is the pool found.
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
