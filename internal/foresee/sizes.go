package foresee

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// largest is more than any pool has, and a volume that is a quarter larger can still be counted.
var largest = resource.MustParse("4Ei")

// checkSizes refuses sizes with which the other checks would compute nonsense.
func checkSizes(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	var problems []error
	check := func(field string, size resource.Quantity) {
		if size.Cmp(largest) > 0 {
			problems = append(problems, design.RefuseField(field, v1alpha1.ReasonSpecInvalid, "it is larger than any storage (variant %q): "+
				"write at most %s", slot.Variant, largest.String()))
		}
	}
	if class := slot.Target.StorageClass; class != nil {
		check(targetField(spec, slot)+".storageClass.size", class.Size.Quantity)
	} else {
		for i, one := range volume.TargetVolumes(slot.Target) {
			if one.Dataset.Size != nil {
				check(datasetAt(spec, slot, i)+".size", one.Dataset.Size.Quantity)
			}
		}
	}
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		if phase.Fill != nil && phase.Fill.Size != nil {
			check(slot.PhaseField(i)+".fill.size", phase.Fill.Size.Quantity)
		}
		if given := databaseOf(phase); given != nil && given.DatabaseSize != nil {
			check(slot.PhaseField(i)+".measure.workload.postgres.databaseSize", given.DatabaseSize.Quantity)
		}
	}
	return errors.Join(problems...)
}

// checkWritable refuses datasets that no phase could write to, or not as much as the dataset should hold.
func checkWritable(spec *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	if slot.Target.ZFS == nil {
		return nil
	}
	f := &Foresight{}
	for _, one := range placesOf(slot) {
		if one.get("readonly") == "on" && used(slot, one.Name) {
			f.refuse(one.field(spec, "readonly"), "the runner writes to each volume that it measures, and could not: remove readonly")
		}
		for _, name := range []string{"quota", "refquota"} {
			limit, limited := settings.Bytes(string(one.Dataset.Properties[name]))
			if size := one.Dataset.Size; limited && limit > 0 && size != nil && uint64(size.Value()) > limit {
				f.refuse(one.field(spec, name), "the dataset cannot become as large as its size, "+size.String()+": write a smaller size, "+
					"and remove "+name)
			}
		}
	}
	return f.Err()
}

// used reports whether a workload of a phase works on a volume.
func used(slot *design.Slot, name string) bool {
	for i := range slot.Phases {
		for _, part := range workload.Measured(&slot.Phases[i]) {
			if string(design.VolumeOf(&part.Phase)) == name {
				return true
			}
		}
	}
	return false
}
