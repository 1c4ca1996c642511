package cli

import (
	"slices"
	"strings"
)

// crossFieldRules lists validation rules of the API that compare distant fields. Their errors name only a list, not the wrong item or word
// in it. The planner and the gates report the same mistakes at the exact field: field is the prefix of its path, and words is a part of
// their message.
var crossFieldRules = []struct{ rule, field, words string }{
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

// acrossRule returns the index in across of the rule that reported the problem, or -1.
func acrossRule(one problem) int {
	for i := range crossFieldRules {
		if one.field == strings.TrimSuffix(crossFieldRules[i].field, "[") && strings.Contains(one.message, crossFieldRules[i].rule) {
			return i
		}
	}
	return -1
}

// mapKeyRules lists validation rules of the API for the names in a map. Their errors name the map, while the planner names the entry.
// replaced is true if the planner reports every mistake that the rule reports.
var mapKeyRules = []struct {
	rule     string
	replaced bool
}{
	{"Invalid value: write each path as ", true},
	{"Invalid value: remove this path: as pool.properties.NAME ", true},
	{"Invalid value: write only autoexpand, ", true},
	{"Invalid value: set only settings that affect I/O", true},
	{"Invalid value: write property names as ", false},
}

// namesRule returns the index in mapKeyRules of the rule that reported the problem, or -1.
func namesRule(one problem) int {
	for i := range mapKeyRules {
		if strings.HasPrefix(one.message, mapKeyRules[i].rule) {
			return i
		}
	}
	return -1
}

// foundAt reports whether another problem names an entry of the map, and so replaces the problem of the rule.
func foundAt(rule problem, found []problem) bool {
	i := namesRule(rule)
	return i >= 0 && mapKeyRules[i].replaced && slices.ContainsFunc(found, func(other problem) bool {
		below, within := strings.CutPrefix(other.field, rule.field)
		return within && strings.IndexAny(below, ".[") == 0
	})
}

// onlyAcross reports whether all problems come from rules in across. Each field by itself is then valid, so the planner can read the spec.
func onlyAcross(problems []problem) bool {
	return !slices.ContainsFunc(problems, func(one problem) bool { return acrossRule(one) < 0 })
}

// placed returns all problems, except those of rules whose mistakes were also found at the exact field.
func placed(rules, found []problem) (all []problem) {
	for _, one := range rules {
		if foundAt(one, found) {
			continue
		}
		i := acrossRule(one)
		if i < 0 || !slices.ContainsFunc(found, func(other problem) bool {
			return strings.HasPrefix(other.field, crossFieldRules[i].field) && strings.Contains(other.message, crossFieldRules[i].words)
		}) {
			all = append(all, one)
		}
	}
	return append(all, found...)
}
