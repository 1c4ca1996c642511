package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a length of time such as 90s, 5m or 1h30m.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(ms|s|m|h))+$')",message="write a duration as whole numbers of at most six digits with units, such as 90s, 5m or 1h30m"
// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}(ms|s|m|h))+$') || duration(self) > duration('0s')",message="write a duration greater than zero, such as 90s"
type Duration struct {
	metav1.Duration `json:",inline"`
}

// Share is a percentage, such as 80% or 2.5%.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^(100|[1-9]?[0-9]([.][0-9]{1,2})?)%$')",message="write a share between 0% and 100% with its percent sign, such as 80% or 2.5%"
type Share string

// VariantName names a variant.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=30
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write a variant name in lower-case letters, digits and '-', beginning and ending with a letter or digit, such as r8k"
type VariantName string

// PhaseName names a phase. It becomes part of Job names and is therefore short.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="write a phase name in lower-case letters, digits and '-', beginning with a letter, such as aged-scan"
type PhaseName string

// VolumeName names a volume of a target: data, or one of target.zfs.volumes. It becomes part of pool names and is therefore short.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="write a volume name in lower-case letters, digits and '-', beginning with a letter, such as log"
type VolumeName string

// GateName names a gate.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write a gate name in lower-case letters, digits and '-', such as keeps-80-percent"
type GateName string

// The API server estimates the cost of a rule from the length of its pattern, and devices are in nested lists. With the whole path in the
// pattern, DevicePath would exceed the cost budget.

// DevicePath is the stable path of a whole disk.
//
// +kubebuilder:validation:MaxLength=160
// +kubebuilder:validation:XValidation:rule=`self.startsWith('/dev/disk/by-') && self.matches(r'^.{13}(id|path)/\w[\w.:@+-]*$')`,message="name a disk by its stable path in letters, digits and . _ : @ + -, such as /dev/disk/by-id/nvme-SERIAL; /dev/sdb can mean another disk after a reboot"
// +kubebuilder:validation:XValidation:rule="!self.matches('-part[0-9]+$')",message="name the whole disk: remove -partN"
type DevicePath string

// DiskRef is a disk in an operation: its stable path or, in the phases of a benchmark, its name in target.zfs.disks.
//
// +kubebuilder:validation:MaxLength=160
// +kubebuilder:validation:XValidation:rule=`(self.startsWith('/dev/disk/by-') ? self.matches(r'^.{13}(id|path)/\w[\w.:@+-]*$') : self.matches('^[a-z][a-z0-9-]*$')) && !self.matches('-part[0-9]+$')`,message="write the stable path of a whole disk, such as /dev/disk/by-id/nvme-SERIAL, or in a phase its name in target.zfs.disks"
type DiskRef string

// PoolName is the name of a zpool.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z][a-zA-Z0-9_.-]*$')",message="start a pool name with a letter, followed by letters, digits, '_', '.' or '-', such as bench0"
// +kubebuilder:validation:XValidation:rule="!self.matches('^(mirror|raidz|draid|spare|log|cache|special|replacing|c[0-9]).*')",message="choose another pool name: ZFS reserves names beginning with mirror, raidz, draid, spare, log, cache, special, replacing and c0..c9; bench0 is fine"
type PoolName string

// DatasetPath is the name of a dataset below its pool, without the pool's name.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=120
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][a-zA-Z0-9_.:-]*(/[a-zA-Z0-9][a-zA-Z0-9_.:-]*)*$')",message="write a dataset's path below its pool, without a leading '/' and without '@', such as parent/data"
type DatasetPath string

// SnapshotName is the part of a snapshot's name after the '@'.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=80
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][a-zA-Z0-9_.:-]*$')",message="write only the part after the '@', in letters, digits, '_', '.', ':' or '-', such as before-ageing"
type SnapshotName string

// PropertyValue is the value of a ZFS property or module parameter.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][a-zA-Z0-9_.:/+-]*$')",message="write a plain value such as 8k, lz4 or off: letters, digits and _ . : / + - only"
type PropertyValue string

// Properties are ZFS properties by name.
//
// +kubebuilder:validation:MaxProperties=24
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && k.matches('^[a-z][a-z0-9_]*$'))",message="write property names as 'zfs get' prints them, such as recordsize; user properties (with ':') are reserved for the operator"
type Properties map[string]PropertyValue

// ModuleParameters are OpenZFS module parameters by name.
//
// +kubebuilder:validation:MaxProperties=12
// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && k.matches('^(zfs|spa|metaslab|zil|zio|dmu|dbuf|vdev|zvol|l2arc|send|spl|zfetch)_[a-z0-9_]+$'))",message="write OpenZFS module parameter names, such as zfs_arc_max"
type ModuleParameters map[string]PropertyValue

// Size is the size of a volume, such as 20Gi.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="isQuantity(self) && !quantity(self).isLessThan(quantity('16Mi'))",message="write a size of at least 16Mi as a quantity in quotes or with a unit, such as 20Gi"
type Size struct {
	resource.Quantity `json:",inline"`
}

// Amount is an amount of data greater than zero, such as 10Gi.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isInteger() && quantity(self).isGreaterThan(quantity('0'))",message="write an amount of whole bytes greater than zero as a quantity with a unit, such as 10Gi"
type Amount struct {
	resource.Quantity `json:",inline"`
}

// BlockSize is the size of one request, such as 8Ki.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self in ['512','1Ki','2Ki','4Ki','8Ki','16Ki','32Ki','64Ki','128Ki','256Ki','512Ki','1Mi','2Mi','4Mi','8Mi','16Mi']",message="write a block size that is a power of two between 512 and 16Mi, such as '512', 8Ki or 128Ki"
type BlockSize struct {
	resource.Quantity `json:",inline"`
}

// Ratio is a number without a unit, such as 80%, 1.5x or 0.8.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?[%x]?$')",message="write a ratio, such as 80%, 1.5x or, in quotes, '0.8'"
type Ratio string

// Bound is a number in the unit of its metric, such as 100M or 5k, or one with a unit, such as 10ms, 200MiB/s, 1.5% or 3x.
//
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="isQuantity(self) || self.matches('^[0-9]+([.][0-9]+)? ?((n|u|µ|m)?s|min|h|%|x|([kMGT]|[KMGT]i)?B(/s)?|[kMG]? ?(op|tx)?/s)$')",message="write a number in the metric's own unit, in quotes and optionally with a suffix: '5000', 100M; or one with a unit that fits the metric: 10ms, 200MiB/s, 1.5GB, 5k/s, 1.5%, 3x"
type Bound string
