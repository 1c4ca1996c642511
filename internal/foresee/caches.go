package foresee

import (
	"errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
)

// checkCaches refuses a phase whose reads cannot come from where it expects them: each attempt would be Invalid.
func checkCaches(_ *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	if slot.Target.ZFS == nil {
		return nil
	}
	kept := map[string]string{}
	for _, one := range placesOf(slot) {
		kept[one.Name] = one.get("primarycache")
	}
	var problems []error
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		value := kept[string(design.VolumeOf(phase))]
		if phase.Measure == nil || phase.Measure.Cache != v1alpha1.CacheWarm || value != "none" && value != "metadata" {
			continue
		}
		problems = append(problems, design.RefuseField(slot.PhaseField(i)+".measure.cache", v1alpha1.ReasonSpecInvalid,
			"phase %s of variant %q expects its reads from memory, and with primarycache: %s no data stays there: write cache: Any, or "+
				"primarycache: all", phase.Name, slot.Variant, value))
	}
	return errors.Join(append(problems, writtenWarm(slot)...)...)
}

// writtenWarm refuses a cold cache for files that fio writes after the caches were emptied. Files of a kept pool may be there before.
func writtenWarm(slot *design.Slot) (problems []error) {
	if naming.KeepsPools(slot.Target.ZFS) || brings(slot) {
		return nil
	}
	all := worked(slot, jobsByFile{})
	for i := range all {
		before := ""
		for _, one := range all[i].freshReads() {
			field := all[i].phaseField(one.of) + ".measure.cache"
			if declared(one.of) != v1alpha1.CacheCold || field == before {
				continue
			}
			before = field
			problems = append(problems, design.RefuseField(field, v1alpha1.ReasonSpecInvalid, "phase %s of variant %q: job [%s] reads files that "+
				"fio writes after the caches were emptied, so that they are in the ARC: write filename=data after a fill, or cache: Any",
				one.of.Phase.Name, slot.Variant, one.job.Name))
		}
	}
	return problems
}
