package foresee

import (
	"errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
)

// checkCaches refuses a phase that expects its reads from memory although primarycache keeps no data there: each attempt would be Invalid.
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
	return errors.Join(problems...)
}
