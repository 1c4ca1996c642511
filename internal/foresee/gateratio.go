package foresee

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// paddedRatio returns a warning if a gate judges a compression ratio that depends on the layout of the pool, because padding and copies are
// part of it. Variants of the same layout can be compared, and so can phases of one variant, and a variant with its own earlier results.
func paddedRatio(one v1alpha1.Gate, slots []design.Slot, needed []gate.Reference) string {
	other := ""
	switch {
	case one.Ratio != nil:
		other = string(one.Ratio.ToVariant)
	case one.Compare != nil:
		other = string(one.Compare.Variant)
	}
	if other == "" && (one.Ratio != nil || one.Compare != nil) {
		return ""
	}
	padded, compared, at := map[string]bool{}, 0, ""
	for _, ref := range needed {
		if ref.Metric != "compressionRatioMilli" {
			continue
		}
		compared++
		for i := range slots {
			if phase := phaseOf(&slots[i], ref); phase >= 0 {
				for _, each := range paddings(slots, &slots[i], phase, other) {
					padded[each] = true
				}
				at = ref.Phase
			}
		}
	}
	between := one.Expression != "" && compared > 1 && len(padded) == 1
	delete(padded, "")
	if len(padded) == 0 || between {
		return ""
	}
	return fmt.Sprintf("compressionRatioMilli of phase %s is data per space: on raidz and draid small blocks take more of it, and with "+
		"copies all of them (%s): compare it with a variant of the same layout, or choose the bound for this layout", at,
		strings.Join(slices.Sorted(maps.Keys(padded)), "; "))
}

// paddings returns the padding of the volume of a phase in a variant and, if the variant is compared with another one, in that too. It
// returns none if both are alike.
func paddings(slots []design.Slot, slot *design.Slot, phase int, other string) []string {
	name := string(design.VolumeOf(&slot.Phases[phase]))
	own := paddingOf(slot, name)
	if other == "" {
		return []string{own}
	}
	at := slices.IndexFunc(slots, func(s design.Slot) bool { return s.Variant == naming.Counterpart(slot.Variant, other) })
	if at < 0 || paddingOf(&slots[at], name) == own {
		return nil
	}
	return []string{own, paddingOf(&slots[at], name)}
}

// paddingOf describes the layout of a pool and the copies of a volume, if they take more space than the data. Empty otherwise.
func paddingOf(slot *design.Slot, name string) string {
	if slot.Target.ZFS == nil {
		return ""
	}
	p := placesOf(slot).first(func(p *place) bool { return p.Name == name })
	if p == nil {
		return ""
	}
	var all []string
	if layout := layoutOf(p.Pool.Vdevs); strings.Contains(layout, "raid") {
		all = append(all, layout)
	}
	if copies := p.get("copies"); copies != "" && copies != "1" && copies != changes {
		all = append(all, "copies: "+copies)
	}
	return strings.Join(all, " with ")
}

// layoutOf describes data vdevs.
func layoutOf(vdevs []v1alpha1.Vdev) string {
	var all []string
	for _, one := range vdevs {
		text := fmt.Sprintf("%s of %d", cmp.Or(one.Type, "stripe"), len(one.Devices))
		if one.DraidDataDevices != nil {
			text += fmt.Sprintf(" (%d data)", *one.DraidDataDevices)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}
