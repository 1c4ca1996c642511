package design

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// KeepsForSchedule reports whether the pools of a slot stay for the next scheduled experiment.
func KeepsForSchedule(slot *Slot) bool {
	return naming.KeepsPools(slot.Target.ZFS) && slot.Target.ZFS.KeepFor == v1alpha1.KeepForSchedule
}

// checkKeepFor returns an error if the pool of an experiment could not be passed on to the next one.
func checkKeepFor(spec *v1alpha1.StorageBenchmarkSpec, variants []Slot) error {
	at := slices.IndexFunc(variants, func(slot Slot) bool { return KeepsForSchedule(&slot) })
	switch {
	case at < 0:
		return nil
	case len(variants) > 1:
		return Refuse(v1alpha1.ReasonSpecInvalid, "variant %q has keepFor: %s, which keeps the pool of a single variant, and there are %d: "+
			"write a benchmark for each, or remove keepFor", variants[at].Variant, variants[at].Target.ZFS.KeepFor, len(variants))
	case spec.Schedule == nil:
		return Refuse(v1alpha1.ReasonSpecInvalid, "variant %q has keepFor: %s, which keeps the pool for the next scheduled experiment, but "+
			"there is no spec.schedule: add it, or remove keepFor", variants[at].Variant, variants[at].Target.ZFS.KeepFor)
	}
	return nil
}

// checkReset returns an error for anything that is impossible on a kept pool.
func checkReset(slot *Slot) error {
	target := slot.Target.ZFS
	if !naming.KeepsPools(target) {
		return nil
	}
	refuse := func(reason, format string, values ...any) error {
		return Refuse(reason, "variant %q has reset: %s, and %s", slot.Variant, target.Reset, fmt.Sprintf(format, values...))
	}
	for _, one := range volume.TargetVolumes(slot.Target) {
		if !volume.Of(one).Keeps() {
			return refuse(v1alpha1.ReasonNotSupported,
				"provisioner: %s: only datasets of the agent can be kept; write provisioner: %s, or reset: Pool",
				one.Dataset.Provisioner, volume.WithoutDriver)
		}
	}
	for i := range slot.Phases {
		for _, action := range operate.Of(&slot.Phases[i]) {
			if operate.LeavesTraces(action) {
				return refuse(v1alpha1.ReasonNotSupported,
					"phase %s does %s, which would change the pool for later repetitions: write reset: Pool, or remove it",
					slot.Phases[i].Name, operate.Name(*action))
			}
		}
	}
	return nil
}

// checkKept returns an error if the pools of an experiment could not be kept as requested. Variants may need the same disks, so the pool of
// one variant is destroyed before a run of another: the repetitions of a variant must be consecutive.
func checkKept(spec *v1alpha1.StorageBenchmarkSpec, variants []Slot) error {
	if err := checkKeepFor(spec, variants); err != nil {
		return err
	}
	at := slices.IndexFunc(variants, func(slot Slot) bool { return naming.KeepsPools(slot.Target.ZFS) })
	if at < 0 {
		return nil
	}
	reset := variants[at].Target.ZFS.Reset
	switch {
	case len(variants) > 1 && spec.Repetitions > 1 && spec.Order != v1alpha1.OrderSequential:
		return Refuse(v1alpha1.ReasonSpecInvalid, "variant %q has reset: %s, which keeps its pool between repetitions, but order: Interleaved "+
			"runs other variants in between: write order: Sequential, or reset: Pool", variants[at].Variant, reset)
	case spec.Retain != "" && spec.Retain != v1alpha1.RetainNever:
		return Refuse(v1alpha1.ReasonSpecInvalid, "variant %q has reset: %s, but a retained run (retain: %s) cannot pass its pool on: write "+
			"retain: Never, or reset: Pool", variants[at].Variant, reset, spec.Retain)
	}
	return nil
}
