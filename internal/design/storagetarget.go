package design

import (
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// TargetNames returns the names of the StorageTargets that a spec refers to, sorted.
func TargetNames(spec *v1alpha1.StorageBenchmarkSpec) []string {
	var names []string
	for _, target := range targets(spec) {
		if target.Ref != nil {
			names = append(names, target.Ref.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// targets returns the targets of the spec and of its variants.
func targets(spec *v1alpha1.StorageBenchmarkSpec) []*v1alpha1.Target {
	all := []*v1alpha1.Target{&spec.Target}
	for i := range spec.Variants {
		if target := spec.Variants[i].Target; target != nil {
			all = append(all, target)
		}
	}
	return all
}

// ReplaceTargets replaces the references in a spec by the contents of the StorageTargets, and returns the names of those that were not
// found.
func ReplaceTargets(spec *v1alpha1.StorageBenchmarkSpec, found map[string]v1alpha1.Target) (missing []string) {
	for _, target := range targets(spec) {
		if target.Ref == nil {
			continue
		}
		if known, exists := found[target.Ref.Name]; exists {
			*target = *known.DeepCopy()
		} else {
			missing = append(missing, target.Ref.Name)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}
