package foresee

import (
	"errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/volume"
)

// checkProvisioners refuses datasets that the provisioner named in the spec cannot make in any cluster. It skips datasets without one: the
// default provisioner depends on the cluster.
func checkProvisioners(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	if slot.Target.ZFS == nil {
		return nil
	}
	var problems []error
	for i, wanted := range volume.TargetVolumes(slot.Target) {
		problem := ""
		if wanted.Dataset.Provisioner != "" {
			problem = design.ProvisionerRefusal(slot, wanted)
		}
		if problem == "" {
			continue
		}
		problems = append(problems, design.RefuseField(datasetAt(spec, slot, i), v1alpha1.ReasonNotSupported,
			"variant %q has provisioner: %s: %s; or write provisioner: %s", slot.Variant, wanted.Dataset.Provisioner, problem,
			volume.WithoutDriver))
	}
	return errors.Join(problems...)
}
