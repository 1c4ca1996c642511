package foresee

import (
	"errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/volume"
)

// checkProvisioners refuses what a provisioner named in the spec cannot do in any cluster. The default provisioner depends on the cluster.
func checkProvisioners(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	if slot.Target.ZFS == nil {
		return nil
	}
	var problems []error
	for i, wanted := range volume.TargetVolumes(slot.Target) {
		problem := ""
		if wanted.Dataset.Provisioner != "" {
			problem = design.CannotMake(slot, wanted)
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
