package foresee

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/volume"
)

// TestWhatANamedDriverCannot: what a named driver cannot do is known without a cluster, and is reported at the dataset that names the
// driver. The default is not known.
func TestWhatANamedDriverCannot(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	dataset := func(provisioner string) *v1alpha1.DatasetTemplate {
		return &v1alpha1.DatasetTemplate{Type: "Filesystem", Provisioner: provisioner, Size: &v1alpha1.Size{Quantity: resource.MustParse("1500Mi")}}
	}
	foresee(t, map[string]foreseen{
		"named": {func(s *spec) { s.Target.ZFS.Dataset = dataset(volume.ProvisionerOpenEBS) },
			"spec.target.zfs.dataset: variant \"default\" has provisioner: OpenEBS: volume data: the driver rounds the size"},
		"not named": {func(s *spec) { s.Target.ZFS.Dataset = dataset("") }, ""},
		"local":     {func(s *spec) { s.Target.ZFS.Dataset = dataset(volume.ProvisionerLocal) }, ""},
		"of another volume": {func(s *spec) {
			s.Target.ZFS.Volumes = []v1alpha1.AdditionalVolume{{Name: "log", Dataset: dataset(volume.ProvisionerOpenEBS),
				Pool: &v1alpha1.PoolTemplate{Vdevs: []v1alpha1.Vdev{{Type: "stripe", Devices: []v1alpha1.DevicePath{"/dev/disk/by-id/b"}}}}}}
		}, "spec.target.zfs.volumes[0].dataset: volume log: the driver rounds"},
		"of a variant": {func(s *spec) {
			s.Variants = []v1alpha1.Variant{{Name: "a"}, {Name: "b", Target: s.Target.DeepCopy()}}
			s.Variants[1].Target.ZFS.Dataset = dataset(volume.ProvisionerOpenEBS)
		}, "spec.variants[1].target.zfs.dataset: or write provisioner: Local"},
	})
}

// TestWhereDatasetsAreWritten: a mistake in a dataset is reported in the target that has it, even if that is the target of a variant.
func TestWhereDatasetsAreWritten(t *testing.T) {
	type spec = v1alpha1.StorageBenchmarkSpec
	device := []v1alpha1.AdditionalVolume{{Name: "log", PoolOf: "data", Dataset: &v1alpha1.DatasetTemplate{Type: "Volume",
		Size: &v1alpha1.Size{Quantity: resource.MustParse("1Gi")}, Properties: v1alpha1.Properties{"recordsize": "8k"}}}}
	redo := []v1alpha1.Phase{{Name: "redo", Measure: &v1alpha1.MeasurePhase{Workload: ofRedo}}}
	foresee(t, map[string]foreseen{
		"of the target": {func(s *spec) { s.Phases, s.Target.ZFS.Volumes = redo, device },
			"spec.target.zfs.volumes[0].dataset.properties.recordsize: write volblocksize"},
		"of a variant": {func(s *spec) {
			s.Phases, s.Variants = redo, []v1alpha1.Variant{{Name: "a", Target: s.Target.DeepCopy()}}
			s.Variants[0].Target.ZFS.Volumes = device
		}, "spec.variants[0].target.zfs.volumes[0].dataset.properties.recordsize: write volblocksize"},
	})
}
