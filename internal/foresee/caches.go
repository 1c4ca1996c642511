package foresee

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/stats"
	"github.com/storagebench/storagebench/internal/workload"
)

// checkCaches refuses a phase that expects its reads from memory although primarycache keeps no data there, or although its data is larger
// than zfs_arc_max: each attempt would be Invalid.
func checkCaches(_ *v1alpha1.StorageBenchmarkSpec, slot *design.Slot) error {
	if slot.Target.ZFS == nil {
		return nil
	}
	why := map[string]string{}
	for _, one := range placesOf(slot) {
		value := one.get("primarycache")
		limit, err := strconv.ParseInt(one.parameter("zfs_arc_max"), 10, 64)
		switch {
		case value == "none" || value == "metadata":
			why[one.Name] = fmt.Sprintf("with primarycache: %s no data stays there: write cache: Any, or primarycache: all", value)
		case err == nil && limit > 0 && one.leastFilled() > limit:
			why[one.Name] = fmt.Sprintf("%s of data does not fit into the %s of zfs_arc_max: write cache: Any, or fill less",
				quantity(one.leastFilled()), quantity(limit))
		}
	}
	var problems []error
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		because := why[string(design.VolumeOf(phase))]
		if phase.Measure == nil || phase.Measure.Cache != v1alpha1.CacheWarm || because == "" {
			continue
		}
		problems = append(problems, design.RefuseField(slot.PhaseField(i)+".measure.cache", v1alpha1.ReasonSpecInvalid,
			"phase %s of variant %q expects its reads from memory, and %s", phase.Name, slot.Variant, because))
	}
	return errors.Join(problems...)
}

// leastFilled returns the space in memory that the data of the fills by size takes at least. Compressed data is smaller there too, and jobs
// may read only a part of it.
func (p *place) leastFilled() (bytes int64) {
	for i := range p.slot.Phases {
		phase := &p.slot.Phases[i]
		switch {
		case string(design.VolumeOf(phase)) != p.Name:
		case phase.Fill != nil && (phase.Fill.Size == nil || phase.Fill.Compressibility != ""), phase.Free != nil:
			return 0
		case phase.Measure != nil && slices.ContainsFunc(workload.Measured(phase), func(part workload.Part) bool {
			return part.Phase.Measure.Workload.FIO != nil
		}):
			return 0
		case phase.Fill != nil:
			bytes = stats.Plus(bytes, phase.Fill.Size.Value())
		}
	}
	return bytes
}
