package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Target is the storage under test: exactly one member is set.
//
// +kubebuilder:validation:ExactlyOneOf=storageClass;zfs;ref
type Target struct {
	// storageClass tests volumes of any StorageClass.
	// +optional
	StorageClass *StorageClassTarget `json:"storageClass,omitempty"`
	// zfs tests datasets on ZFS pools that are created for the benchmark.
	// +optional
	ZFS *ZFSTarget `json:"zfs,omitempty"`
	// ref uses the storage of a StorageTarget. A StorageTarget itself cannot have a ref.
	// +optional
	Ref *TargetRef `json:"ref,omitempty"`
}

// TargetRef refers to a StorageTarget in the same namespace.
type TargetRef struct {
	// name is the name of the StorageTarget.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a StorageTarget as 'kubectl get storagetargets' shows it"
	Name string `json:"name"`
}

// StorageClassTarget requests one volume of a StorageClass per run.
type StorageClassTarget struct {
	// name is the name of the StorageClass. Defaults to the cluster's default class; see status.storageClass.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a StorageClass as 'kubectl get storageclass' shows it, or omit name to use the default class"
	Name string `json:"name,omitempty"`
	// size is the size of the volume, such as 20Gi.
	// +required
	Size Size `json:"size"`
	// volumeMode is Filesystem or Block. Defaults to Filesystem.
	// +optional
	// +default="Filesystem"
	// +kubebuilder:validation:Enum=Filesystem;Block
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
	// accessMode is the access mode of the claim. Defaults to ReadWriteOnce.
	// +optional
	// +default="ReadWriteOnce"
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod;ReadWriteMany
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
}

// ZFSTarget requests pools and datasets on nodes that run the agent.
//
// +kubebuilder:validation:XValidation:rule="!has(self.keepFor) || self.reset != 'Pool'",message="keepFor needs a pool that is kept: write reset: Dataset or reset: None"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, v.name != 'data')",message="name additional volumes other than 'data': pool and dataset already define the volume of that name"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, !has(v.pool) || v.pool.vdevs.all(w, w.devices.all(d, !self.pool.vdevs.exists(u, d in u.devices) && self.volumes.exists_one(o, has(o.pool) && o.pool.vdevs.exists(u, d in u.devices)))))",message="do not share devices between pools: a device occurs in two pools of the target"
// +kubebuilder:validation:XValidation:rule="!has(self.volumes) || self.volumes.all(v, !has(v.poolOf) || v.poolOf == 'data' || self.volumes.exists(o, o.name == v.poolOf && has(o.pool)))",message="write in poolOf of a volume the name of one with a pool of its own: data, or one of volumes that has pool"
type ZFSTarget struct {
	// nodes selects the nodes.
	// +required
	Nodes NodeChoice `json:"nodes"`
	// pool is the layout of the pool.
	// +required
	Pool PoolTemplate `json:"pool"`
	// dataset is the dataset for the workload. Defaults to a filesystem with inherited properties.
	// +optional
	Dataset *DatasetTemplate `json:"dataset,omitempty"`
	// volumes are additional datasets, each on a pool of its own or on that of another volume, for example to separate log and archive.
	// A phase selects one by name. The fields pool and dataset above define the volume named data.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Volumes []AdditionalVolume `json:"volumes,omitempty"`
	// disks gives names to disks, those in the pools and spare ones, so that operations in phases can name them without a path.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][a-z0-9-]{0,30}$') && self.exists_one(o, self[o] == self[k]))",message="name each disk once, in lower-case letters, digits and '-', such as spare: /dev/disk/by-id/nvme-SERIAL"
	Disks map[string]DevicePath `json:"disks,omitempty"`
	// perNode replaces the pool layout on nodes whose disks have other paths.
	// +optional
	// +listType=map
	// +listMapKey=nodeName
	// +kubebuilder:validation:MaxItems=8
	PerNode []NodePool `json:"perNode,omitempty"`
	// moduleParameters are OpenZFS module parameters that are set during the run and restored after it.
	// +optional
	ModuleParameters ModuleParameters `json:"moduleParameters,omitempty"`
	// reset says what to recreate for each run: the Pool with everything on it, only the Dataset, or None. With None a run starts
	// with the data of the previous repetition. Defaults to Pool.
	// +optional
	// +default="Pool"
	Reset ResetPolicy `json:"reset,omitempty"`
	// keepFor: Schedule also keeps the pool from one scheduled experiment to the next, so that it ages. It needs spec.schedule and a single
	// variant.
	// +optional
	// +kubebuilder:validation:Enum=Schedule
	KeepFor string `json:"keepFor,omitempty"`
}

// KeepForSchedule is the value of ZFSTarget.KeepFor.
const KeepForSchedule = "Schedule"

// ResetPolicy says what to recreate for each run.
//
// +kubebuilder:validation:Enum=Pool;Dataset;None
type ResetPolicy string

// The values of ResetPolicy.
const (
	ResetPool    ResetPolicy = "Pool"
	ResetDataset ResetPolicy = "Dataset"
	ResetNone    ResetPolicy = "None"
)

// NodeChoice selects nodes by label.
type NodeChoice struct {
	// matchLabels are the labels that a node must have.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="write each key as NAME or PREFIX/NAME, with a name of at most 63 letters, digits, '-', '_' and '.', such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 63)",message="write each value in at most 63 characters, as node labels are"
	MatchLabels map[string]string `json:"matchLabels"`
	// count is the number of nodes that execute each phase at the same time. The runs of all nodes form one measurement: they start
	// each phase together, and their metrics are combined. Defaults to 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Count int32 `json:"count,omitempty"`
}

// AdditionalVolume is an additional dataset, on a pool of its own or on that of another volume.
//
// +kubebuilder:validation:XValidation:rule="has(self.pool) != has(self.poolOf)",message="give a volume either pool, the layout of a pool of its own, or poolOf, the name of the volume on whose pool it lies, such as poolOf: data"
type AdditionalVolume struct {
	// name is the name that phases use for the volume.
	// +required
	Name VolumeName `json:"name"`
	// pool is the layout of the volume's own pool.
	// +optional
	Pool *PoolTemplate `json:"pool,omitempty"`
	// poolOf is the volume whose pool this one shares, such as data. Both must have provisioner Local.
	// +optional
	PoolOf VolumeName `json:"poolOf,omitempty"`
	// dataset is the dataset for the workload.
	// +optional
	Dataset *DatasetTemplate `json:"dataset,omitempty"`
}

// NodePool is the pool layout of one node.
type NodePool struct {
	// nodeName is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a node as 'kubectl get nodes' shows it"
	NodeName string `json:"nodeName"`
	// pool is the pool layout on that node.
	// +required
	Pool PoolTemplate `json:"pool"`
}

// DatasetTemplate is the dataset or zvol for a workload.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fsType) || self.type == 'Volume'",message="set fsType only with type: Volume (a zvol with a file system on it); a Filesystem dataset needs no file system"
// +kubebuilder:validation:XValidation:rule="self.type != 'Volume' || has(self.size)",message="give a dataset of type Volume its size, such as 10Gi"
type DatasetTemplate struct {
	// provisioner creates the volume: OpenEBS (the ZFS LocalPV driver) or Local (the agent). Defaults to OpenEBS if it is
	// installed.
	// +optional
	// +kubebuilder:validation:Enum=OpenEBS;Local
	Provisioner string `json:"provisioner,omitempty"`
	// type is Filesystem (a dataset) or Volume (a zvol). Defaults to Filesystem.
	// +optional
	// +default="Filesystem"
	// +kubebuilder:validation:Enum=Filesystem;Volume
	Type string `json:"type,omitempty"`
	// fsType is the file system on a zvol. Without it, the workload gets the raw block device.
	// +optional
	// +kubebuilder:validation:Enum=ext4;xfs
	FSType string `json:"fsType,omitempty"`
	// size is the refquota of a dataset or the size of a zvol.
	// +optional
	Size *Size `json:"size,omitempty"`
	// properties are the dataset properties to set, such as recordsize: 8k.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['mountpoint','canmount','zoned','zoned_uid','sharenfs','sharesmb','keylocation','setuid','devices','exec','volmode','snapdir']))",message="remove mountpoint, canmount, zoned, zoned_uid, sharenfs, sharesmb, keylocation, setuid, devices, exec, volmode and snapdir: the operator controls where datasets are mounted, uses no files of the node, and does not let the node execute files of a dataset"
	Properties Properties `json:"properties,omitempty"`
}

// Variant is one of the compared configurations: the target with some fields replaced.
//
// +kubebuilder:validation:AtMostOneOf=target;storageClass
// +kubebuilder:validation:XValidation:rule="!has(self.target) || (!has(self.pool) && !has(self.dataset) && !has(self.volumes) && !has(self.moduleParameters))",message="a variant with its own target cannot also set pool, dataset, volumes or moduleParameters: write them inside its target"
type Variant struct {
	// name is the name of the variant in gates and reports.
	// +required
	Name VariantName `json:"name"`
	// target replaces the whole target.
	// +optional
	Target *Target `json:"target,omitempty"`
	// storageClass replaces fields of a storageClass target.
	// +optional
	StorageClass *StorageClassOverride `json:"storageClass,omitempty"`
	// pool replaces fields of the pool. Properties are merged by name.
	// +optional
	Pool *PoolOverride `json:"pool,omitempty"`
	// dataset replaces fields of the dataset. Properties are merged by name.
	// +optional
	Dataset *DatasetOverride `json:"dataset,omitempty"`
	// volumes replaces fields of volumes in target.zfs.volumes, by their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Volumes []VolumeOverride `json:"volumes,omitempty"`
	// moduleParameters are merged with those of the target by name.
	// +optional
	ModuleParameters ModuleParameters `json:"moduleParameters,omitempty"`
	// set replaces single fields by path. It accepts the paths of spec.matrix.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 96 && k.matches('^(storageClass[.](name|size|volumeMode)|(volumes[.][a-z][-a-z0-9]*[.])?(pool[.]ashift|pool[.]properties[.][a-z][a-z0-9_]*|dataset[.][a-z][a-z0-9_]*)|moduleParameters[.](zfs|spa|metaslab|zil|zio|dmu|dbuf|vdev|zvol|l2arc|send|spl|zfetch)_[a-z0-9_]+|phases[.][a-z][-a-z0-9]*([.][a-z][-A-Za-z0-9_]*){1,2})$'))",message="write each path as storageClass.name, storageClass.size, storageClass.volumeMode, pool.ashift, pool.properties.NAME, dataset.NAME (a ZFS property), moduleParameters.NAME, or phases.PHASE.FIELD such as phases.fill.to; for another volume than data write volumes.VOLUME. before pool or dataset"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains('pool.properties.') || k.matches('[.](autoexpand|autotrim|comment|compatibility|dedup_table_quota|failmode)$'))",message="remove this path: as pool.properties.NAME write only autoexpand, autotrim, comment, compatibility, dedup_table_quota and failmode, because others have effects outside the pool or are set by the agent; for ashift write pool.ashift"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.endsWith('pool.properties.failmode') || self[k] in ['wait','continue'])",message="write wait or continue for pool.properties.failmode; with panic, losing a disk would crash the node"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.endsWith('pool.properties.compatibility') || !self[k].contains('/'))",message="write off, legacy or the name of a file in compatibility.d for pool.properties.compatibility, such as openzfs-2.1-linux, without '/'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(volumes[.].*)?dataset[.](mountpoint|canmount|zoned|zoned_uid|sharenfs|sharesmb|keylocation|setuid|devices|exec|volmode|snapdir)$'))",message="remove this path: the operator and its agent set mountpoint, canmount, zoned, zoned_uid, sharenfs, sharesmb, keylocation, setuid, devices, exec, volmode and snapdir themselves"
	Set map[string]MatrixValue `json:"set,omitempty"`
}

// StorageClassOverride replaces fields of a storageClass target.
//
// +kubebuilder:validation:MinProperties=1
type StorageClassOverride struct {
	// name is the name of another StorageClass.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a StorageClass as 'kubectl get storageclass' shows it"
	Name string `json:"name,omitempty"`
	// size is the size of the volume.
	// +optional
	Size *Size `json:"size,omitempty"`
	// volumeMode is Filesystem or Block.
	// +optional
	// +kubebuilder:validation:Enum=Filesystem;Block
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode,omitempty"`
}

// PoolOverride replaces fields of a pool.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="(!has(self.vdevs) || self.vdevs.all(v, v.devices.all(d, self.vdevs.exists_one(w, d in w.devices)))) && (!has(self.log) || self.log.all(v, v.devices.all(d, (!has(self.vdevs) || !self.vdevs.exists(w, d in w.devices)) && self.log.exists_one(w, d in w.devices)))) && (!has(self.cache) || self.cache.all(d, (!has(self.vdevs) || !self.vdevs.exists(w, d in w.devices)) && (!has(self.log) || !self.log.exists(w, d in w.devices)))) && (!has(self.special) || self.special.all(v, v.devices.all(d, (!has(self.vdevs) || !self.vdevs.exists(w, d in w.devices)) && (!has(self.log) || !self.log.exists(w, d in w.devices)) && (!has(self.cache) || !(d in self.cache)) && self.special.exists_one(w, d in w.devices))))",message="name each device only once: a device occurs twice in the pool"
type PoolOverride struct {
	// vdevs replaces the data vdevs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Vdevs []Vdev `json:"vdevs,omitempty"`
	// log replaces the log vdevs. An empty list removes them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Log []AuxiliaryVdev `json:"log,omitzero"`
	// cache replaces the cache devices. An empty list removes them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Cache []DevicePath `json:"cache,omitzero"`
	// special replaces the special vdevs. An empty list removes them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Special []AuxiliaryVdev `json:"special,omitzero"`
	// ashift replaces the ashift of the pool.
	// +optional
	// +kubebuilder:validation:Minimum=9
	// +kubebuilder:validation:Maximum=16
	Ashift *int32 `json:"ashift,omitempty"`
	// properties are pool properties, merged by name.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['autoexpand','autotrim','comment','compatibility','dedup_table_quota','failmode'])",message="write only autoexpand, autotrim, comment, compatibility, dedup_table_quota and failmode here: other pool properties have effects outside the pool or are set by the agent; ashift is a separate field, and dataset properties belong in rootProperties"
	// +kubebuilder:validation:XValidation:rule="!('failmode' in self) || self['failmode'] in ['wait','continue']",message="write failmode: wait or failmode: continue; with panic, losing a disk would crash the node"
	// +kubebuilder:validation:XValidation:rule="!('compatibility' in self) || !self['compatibility'].contains('/')",message="write compatibility: off, legacy or the name of a file in compatibility.d, such as openzfs-2.1-linux, without '/'"
	Properties Properties `json:"properties,omitempty"`
}

// DatasetOverride replaces fields of a dataset.
//
// +kubebuilder:validation:MinProperties=1
type DatasetOverride struct {
	// provisioner creates the volume: OpenEBS or Local.
	// +optional
	// +kubebuilder:validation:Enum=OpenEBS;Local
	Provisioner string `json:"provisioner,omitempty"`
	// type is Filesystem or Volume.
	// +optional
	// +kubebuilder:validation:Enum=Filesystem;Volume
	Type string `json:"type,omitempty"`
	// fsType is the file system on a zvol.
	// +optional
	// +kubebuilder:validation:Enum=ext4;xfs
	FSType string `json:"fsType,omitempty"`
	// size is the size of the dataset or zvol.
	// +optional
	Size *Size `json:"size,omitempty"`
	// properties are dataset properties, merged by name.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['mountpoint','canmount','zoned','zoned_uid','sharenfs','sharesmb','keylocation','setuid','devices','exec','volmode','snapdir']))",message="remove mountpoint, canmount, zoned, zoned_uid, sharenfs, sharesmb, keylocation, setuid, devices, exec, volmode and snapdir: the operator controls where datasets are mounted, uses no files of the node, and does not let the node execute files of a dataset"
	Properties Properties `json:"properties,omitempty"`
}

// VolumeOverride replaces fields of a volume of target.zfs.volumes.
//
// +kubebuilder:validation:AtLeastOneOf=pool;dataset
// +kubebuilder:validation:XValidation:rule="self.name != 'data'",message="write pool and dataset of the variant itself for the volume data"
type VolumeOverride struct {
	// name is the name of the volume.
	// +required
	Name VolumeName `json:"name"`
	// pool replaces fields of its pool. Properties are merged by name.
	// +optional
	Pool *PoolOverride `json:"pool,omitempty"`
	// dataset replaces fields of its dataset. Properties are merged by name.
	// +optional
	Dataset *DatasetOverride `json:"dataset,omitempty"`
}

// MatrixValue is one value of a matrix path, written as in the field it replaces.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9_.:/+%-]*$')",message="write a plain value as in the field that the path names, such as 8k or 80%: letters, digits and _ . : / + % - only"
type MatrixValue string

// MatrixValues are the values of one path of the matrix.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=16
type MatrixValues []MatrixValue

// Matrix maps paths into the experiment to the values that each takes in turn.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=6
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 96 && k.matches('^(storageClass[.](name|size|volumeMode)|(volumes[.][a-z][-a-z0-9]*[.])?(pool[.]ashift|pool[.]properties[.][a-z][a-z0-9_]*|dataset[.][a-z][a-z0-9_]*)|moduleParameters[.](zfs|spa|metaslab|zil|zio|dmu|dbuf|vdev|zvol|l2arc|send|spl|zfetch)_[a-z0-9_]+|phases[.][a-z][-a-z0-9]*([.][a-z][-A-Za-z0-9_]*){1,2})$'))",message="write each path as storageClass.name, storageClass.size, storageClass.volumeMode, pool.ashift, pool.properties.NAME, dataset.NAME (a ZFS property), moduleParameters.NAME, or phases.PHASE.FIELD such as phases.fill.to; for another volume than data write volumes.VOLUME. before pool or dataset"
// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains('pool.properties.') || k.matches('[.](autoexpand|autotrim|comment|compatibility|dedup_table_quota|failmode)$'))",message="remove this path: as pool.properties.NAME write only autoexpand, autotrim, comment, compatibility, dedup_table_quota and failmode, because others have effects outside the pool or are set by the agent; for ashift write pool.ashift"
// +kubebuilder:validation:XValidation:rule="self.all(k, !k.endsWith('pool.properties.failmode') || self[k].all(v, v in ['wait','continue']))",message="write wait or continue for pool.properties.failmode; with panic, losing a disk would crash the node"
// +kubebuilder:validation:XValidation:rule="self.all(k, !k.endsWith('pool.properties.compatibility') || self[k].all(v, !v.contains('/')))",message="write off, legacy or the name of a file in compatibility.d for pool.properties.compatibility, such as openzfs-2.1-linux, without '/'"
// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(volumes[.].*)?dataset[.](mountpoint|canmount|zoned|zoned_uid|sharenfs|sharesmb|keylocation|setuid|devices|exec|volmode|snapdir)$'))",message="remove this path: the operator and its agent set mountpoint, canmount, zoned, zoned_uid, sharenfs, sharesmb, keylocation, setuid, devices, exec, volmode and snapdir themselves"
type Matrix map[string]MatrixValues

// MatrixMode says how the values of the matrix combine.
//
// +kubebuilder:validation:Enum=Product;Zip
type MatrixMode string

// The values of MatrixMode.
const (
	// MatrixProduct combines each value of a path with each value of the others.
	MatrixProduct MatrixMode = "Product"
	// MatrixZip combines the first values of all paths, the second values and so on.
	MatrixZip MatrixMode = "Zip"
)

// MatrixEntry is a combination of the matrix, or a part of one: values by path.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=6
type MatrixEntry map[string]MatrixValue
