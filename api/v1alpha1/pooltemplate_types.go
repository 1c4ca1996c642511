package v1alpha1

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
	// type is the redundancy of the vdev. stripe is plain disks without redundancy. Defaults to stripe.
	// +optional
	// +default="stripe"
	Type VdevType `json:"type,omitempty"`
	// devices are the stable paths of the disks.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Devices []DevicePath `json:"devices"`
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

// AuxiliaryVdevType is the redundancy of a log or special vdev.
//
// +kubebuilder:validation:Enum=stripe;mirror
// +kubebuilder:validation:MaxLength=8
type AuxiliaryVdevType string

// AuxiliaryVdev is a log or special vdev.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'mirror' || self.devices.size() >= 2",message="give a mirror at least 2 devices, or write type: stripe"
type AuxiliaryVdev struct {
	// type is stripe or mirror. Defaults to stripe.
	// +optional
	// +default="stripe"
	Type AuxiliaryVdevType `json:"type,omitempty"`
	// devices are the stable paths of the disks.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Devices []DevicePath `json:"devices"`
}

// PoolTemplate is the layout of a pool.
// +kubebuilder:validation:XValidation:rule="self.vdevs.all(v, v.devices.all(d, self.vdevs.exists_one(w, d in w.devices))) && (!has(self.log) || self.log.all(v, v.devices.all(d, !self.vdevs.exists(w, d in w.devices) && self.log.exists_one(w, d in w.devices)))) && (!has(self.special) || self.special.all(v, v.devices.all(d, !self.vdevs.exists(w, d in w.devices) && (!has(self.log) || !self.log.exists(w, d in w.devices)) && self.special.exists_one(w, d in w.devices)))) && (!has(self.cache) || self.cache.all(d, !self.vdevs.exists(w, d in w.devices) && (!has(self.log) || !self.log.exists(w, d in w.devices)) && (!has(self.special) || !self.special.exists(w, d in w.devices)))) && (!has(self.spare) || self.spare.all(d, !self.vdevs.exists(w, d in w.devices) && (!has(self.log) || !self.log.exists(w, d in w.devices)) && (!has(self.special) || !self.special.exists(w, d in w.devices)) && (!has(self.cache) || !(d in self.cache))))",message="name each device only once: a device occurs twice in the pool"
type PoolTemplate struct {
	// vdevs are the top-level vdevs that hold data.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Vdevs []Vdev `json:"vdevs"`
	// log are the vdevs of the separate intent log (SLOG).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Log []AuxiliaryVdev `json:"log,omitempty"`
	// cache are the L2ARC devices.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Cache []DevicePath `json:"cache,omitempty"`
	// special are the vdevs for metadata and small blocks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Special []AuxiliaryVdev `json:"special,omitempty"`
	// spare are the hot spares.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Spare []DevicePath `json:"spare,omitempty"`
	// ashift is the sector size as a power of two: 9 is 512 bytes, 12 is 4 KiB, 13 is 8 KiB. Defaults to 12.
	// The pool is not created on disks with larger logical sectors.
	// +optional
	// +default=12
	// +kubebuilder:validation:Minimum=9
	// +kubebuilder:validation:Maximum=16
	Ashift int32 `json:"ashift,omitempty"`
	// properties are the pool properties to set.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['autoexpand','autotrim','comment','compatibility','dedup_table_quota','failmode'])",message="write only autoexpand, autotrim, comment, compatibility, dedup_table_quota and failmode here: other pool properties have effects outside the pool or are set by the agent; ashift is a separate field, and dataset properties belong in rootProperties"
	// +kubebuilder:validation:XValidation:rule="!('failmode' in self) || self['failmode'] in ['wait','continue']",message="write failmode: wait or failmode: continue; with panic, losing a disk would crash the node"
	// +kubebuilder:validation:XValidation:rule="!('compatibility' in self) || !self['compatibility'].contains('/')",message="write compatibility: off, legacy or the name of a file in compatibility.d, such as openzfs-2.1-linux, without '/'"
	Properties Properties `json:"properties,omitempty"`
	// rootProperties are properties of the pool's root dataset. All other datasets inherit them.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['mountpoint','canmount','zoned','zoned_uid','sharenfs','sharesmb','keylocation','setuid','devices','exec','volmode','snapdir']))",message="remove mountpoint, canmount, zoned, zoned_uid, sharenfs, sharesmb, keylocation, setuid, devices, exec, volmode and snapdir: the operator controls where datasets are mounted, uses no files of the node, and does not let the node execute files of a dataset"
	RootProperties Properties `json:"rootProperties,omitempty"`
	// minDeviceSize is the minimum size of a device.
	// +optional
	MinDeviceSize *Amount `json:"minDeviceSize,omitempty"`
	// reuse lists disks that may be used although they hold old data. For a pool of a namespace, the grant of the disk must also end with
	// ':reuse'.
	// +optional
	Reuse *DeviceReuse `json:"reuse,omitempty"`
}

// DeviceReuse names disks whose old data may be destroyed.
type DeviceReuse struct {
	// serials are the exact serial numbers of the disks.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^[A-Za-z0-9][A-Za-z0-9_.:-]*$'))",message="write each disk's own serial number as 'lsblk -o SERIAL' prints it; patterns are not allowed"
	Serials []string `json:"serials"`
}
