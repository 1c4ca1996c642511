package cli

import (
	"slices"
	"strings"
)

// across are rules of the API about fields that are far from each other. They name a list, and neither the item nor the word that is wrong.
// The planner and the gates do, in problems of fields that begin so, with these words.
var across = []struct{ rule, field, words string }{
	{"a phase names a volume that is not in target.zfs.volumes", "spec.phases[", "which the target does not have"},
	{"a path of the matrix names a phase", "spec.matrix[", "there is no phase"},
	{"a path of variants[].set names a phase", "spec.variants[", "there is no phase"},
	{"in the matrix change a zfs target", "spec.matrix[", "it changes a zfs target"},
	{"in the matrix changes a storageClass target", "spec.matrix[", "it changes a storageClass target"},
	{"with matrixMode: Zip give all paths", "spec.matrix", "with matrixMode: Zip give all paths"},
	{"a gate bounds a metric of a phase", "spec.gates[", ""},
	{"a gate divides a metric of a phase", "spec.gates[", ""},
	{"a gate compares a metric of a phase", "spec.gates[", ""},
	{"a gate compares with a variant", "spec.gates[", "there is no variant"},
	{"the expression of a gate uses no phase", "spec.gates[", "is not in spec.phases"},
}

// acrossRule is the place of a problem in across, -1 if it is none of these.
func acrossRule(one problem) int {
	for i := range across {
		if one.field == strings.TrimSuffix(across[i].field, "[") && strings.Contains(one.message, across[i].rule) {
			return i
		}
	}
	return -1
}

// ofNames are rules of the API about the names in a map: they name the map, and the planner names the entry. It knows all that is wrong
// with the names if the rule is replaced.
var ofNames = []struct {
	rule     string
	replaced bool
}{
	{"Invalid value: write each path as ", true},
	{"Invalid value: remove this path: as pool.properties.NAME ", true},
	{"Invalid value: write only autoexpand, ", true},
	{"Invalid value: set only settings that affect I/O", true},
	{"Invalid value: write property names as ", false},
}

// namesRule is the place of a problem in ofNames, -1 if it is none of these.
func namesRule(one problem) int {
	for i := range ofNames {
		if strings.HasPrefix(one.message, ofNames[i].rule) {
			return i
		}
	}
	return -1
}

// foundAt says that another problem names an entry of the map that a rule is about.
func foundAt(rule problem, found []problem) bool {
	i := namesRule(rule)
	return i >= 0 && ofNames[i].replaced && slices.ContainsFunc(found, func(other problem) bool {
		below, within := strings.CutPrefix(other.field, rule.field)
		return within && strings.IndexAny(below, ".[") == 0
	})
}

// onlyAcross says that no field is wrong by itself, so that the planner can read the spec.
func onlyAcross(problems []problem) bool {
	return !slices.ContainsFunc(problems, func(one problem) bool { return acrossRule(one) < 0 })
}

// placed leaves out the rules whose mistakes are also found at their fields.
func placed(rules, found []problem) (all []problem) {
	for _, one := range rules {
		if foundAt(one, found) {
			continue
		}
		i := acrossRule(one)
		if i < 0 || !slices.ContainsFunc(found, func(other problem) bool {
			return strings.HasPrefix(other.field, across[i].field) && strings.Contains(other.message, across[i].words)
		}) {
			all = append(all, one)
		}
	}
	return append(all, found...)
}
