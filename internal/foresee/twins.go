package foresee

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// foreseeTwins finds combinations of the matrix that measure the same: it refuses two spellings of a value, such as 8k and 8K, and warns of
// two names of it, such as on and lz4. Variants of spec.variants may be alike: such a comparison shows how much results differ by chance.
func foreseeTwins(spec *v1alpha1.StorageBenchmarkSpec, variants []design.Slot, f *Foresight) {
	if len(spec.Matrix) == 0 || len(variants) == 0 || !variants[0].Complete() { // values that cannot be set change nothing
		return
	}
	variants = slices.SortedFunc(slices.Values(variants), func(a, b design.Slot) int { return cmp.Compare(a.Rank, b.Rank) })
	spelt, named, seen := map[string]*design.Slot{}, map[string]*design.Slot{}, map[string]bool{}
	for i := range variants {
		slot := &variants[i]
		first, same := before(spelt, slot, settings.Plain)
		other, alike := before(named, slot, settings.Alias)
		if !same && !alike {
			continue
		}
		if !same {
			first = other
		}
		path := firstDifference(first, slot)
		field, values := fmt.Sprintf("spec.matrix[%s]", path), first.Matrix[path]+" and "+slot.Matrix[path]
		switch {
		case seen[field+values]:
		case same:
			f.refuse(field, values+" are the same value, so that the variants would be the same: remove one")
		default:
			f.warn(field, values+" are two names of the same value up to OpenZFS "+settings.Newest+", so that the variants are the same: remove one")
		}
		seen[field+values] = true
	}
}

// before returns the first variant whose target and phases are those of the given one, if each property is written in the same form.
func before(known map[string]*design.Slot, slot *design.Slot, form func(name, value string) string) (first *design.Slot, found bool) {
	target := slot.Target.DeepCopy()
	if zfs := target.ZFS; zfs != nil {
		rewrite(zfs.Dataset, form)
		for i := range zfs.Volumes {
			rewrite(zfs.Volumes[i].Dataset, form)
		}
	}
	key := naming.Digest(struct {
		Base   string
		Target *v1alpha1.Target
		Phases []v1alpha1.Phase
	}{slot.Base, target, slot.Phases})
	if first, found = known[key]; !found {
		known[key] = slot
	}
	return first, found
}

func rewrite(dataset *v1alpha1.DatasetTemplate, form func(name, value string) string) {
	if dataset == nil {
		return
	}
	for name, value := range dataset.Properties {
		dataset.Properties[name] = v1alpha1.PropertyValue(form(name, string(value)))
	}
}

// firstDifference returns the first path of the matrix whose values in two variants differ.
func firstDifference(a, b *design.Slot) string {
	for _, path := range slices.Sorted(maps.Keys(a.Matrix)) {
		if a.Matrix[path] != b.Matrix[path] {
			return path
		}
	}
	return ""
}
