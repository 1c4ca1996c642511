package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
)

// keptPoolNames are the names of the pools of a variant on some nodes. Empty if they are not kept.
func keptPoolNames(state State, variant string, target *v1alpha1.ZFSTarget, nodes []string) map[string]bool {
	if !naming.KeepsPools(target) {
		return nil
	}
	names, within := map[string]bool{}, cmp.Or(lineageFor(state, &Slot{Target: v1alpha1.Target{ZFS: target}}), state.Experiment)
	for _, node := range nodes {
		for _, one := range volume.Pools(volume.TargetVolumes(v1alpha1.Target{ZFS: target})) {
			names[naming.KeptPoolName(string(state.Benchmark.UID), within, variant, node, one.Name)] = true
		}
	}
	return names
}

// checkReset refuses what is impossible on a kept pool.
func checkReset(slot *Slot) error {
	target := slot.Target.ZFS
	if !naming.KeepsPools(target) {
		return nil
	}
	refuse := func(reason, format string, values ...any) error {
		return &SpecError{reason, fmt.Sprintf("variant %q has reset: %s, and ", slot.Variant, target.Reset) + fmt.Sprintf(format, values...)}
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

// checkKept refuses an experiment in which a kept pool could not be kept. Variants may need the same disks, so the pool of one is
// destroyed before a run of another: repetitions have to be consecutive.
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
		return &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf(
			"variant %q has reset: %s, which keeps its pool between repetitions, but order: Interleaved runs other variants "+
				"in between: write order: Sequential, or reset: Pool",
			variants[at].Variant, reset)}
	case spec.Retain != "" && spec.Retain != v1alpha1.RetainNever:
		return &SpecError{v1alpha1.ReasonSpecInvalid, fmt.Sprintf(
			"variant %q has reset: %s, but a retained run (retain: %s) cannot pass its pool on: write retain: Never, or reset: Pool",
			variants[at].Variant, reset, spec.Retain)}
	}
	return nil
}
