package gate

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
)

// rival is the variant that others are compared with.
type rival struct {
	// name holds some of the parts of its name. It is empty if there is no rival.
	name string
	// variants are all variants of the experiment.
	variants []string
}

// of is the rival of a variant: with a matrix, the variant with the same values except those that the gate names. It is empty if the
// variant is the rival itself, or if the matrix excludes its rival.
func (r rival) of(variant string) string {
	if its := naming.Counterpart(variant, r.name); its != variant && slices.Contains(r.variants, its) {
		return its
	}
	return ""
}

// rivalIn returns the rival that a gate names in a field. Each judged variant that has phase is compared with the phase "its" of its rival.
func (s scope) rivalIn(field string, name v1alpha1.VariantParts, its, phase string) (rival, []string) {
	r := rival{string(name), s.variants}
	if r.name == "" {
		return r, []string{field + " is empty: set it to the variant to compare with"}
	}
	if mistake := s.checkParts(r.name); mistake != "" {
		return r, []string{field + ": " + mistake}
	}
	compared := false
	for _, variant := range s.having(phase) {
		other := r.of(variant)
		if other != "" && !s.has(other, its) {
			return r, []string{field + ": " + s.without(other, its)}
		}
		compared = compared || other != ""
	}
	if !compared {
		return r, []string{fmt.Sprintf("%s: no other variant with phase %q is compared with %q: add one, or name another variant",
			field, phase, name)}
	}
	return r, nil
}

// checkParts checks that a variant has all of these parts of a name.
func (s scope) checkParts(name string) string {
	if slices.ContainsFunc(s.variants, func(variant string) bool { return naming.IsVariant(variant, name) }) {
		return ""
	}
	return s.checkVariant(name)
}
