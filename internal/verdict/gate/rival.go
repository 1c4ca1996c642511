package gate

import (
	"fmt"
	"slices"
	"strings"
)

// rivalOf is the variant that one is compared with, given its name in the spec: with a matrix, that with the same values.
func rivalOf(variant, rival string) string {
	if _, rest, matrix := strings.Cut(variant, ","); matrix {
		return rival + "," + rest
	}
	return rival
}

// checkRival checks that there is a variant to compare with, which has a phase, and another one with a phase to compare. field names it.
func (s scope) checkRival(field, rival, its, phase string) []string {
	isRival := func(name string) bool { return name == rivalOf(name, rival) }
	switch {
	case rival == "":
		return []string{field + " is empty: set it to the variant to compare with"}
	case !slices.ContainsFunc(s.variants, isRival):
		return []string{field + ": " + s.checkVariant(rival)}
	case !s.has(rival, its):
		return []string{field + ": " + s.without(rival, its)}
	case !slices.ContainsFunc(s.having(phase), func(name string) bool { return !isRival(name) }):
		return []string{fmt.Sprintf("%s: %q is the only variant with phase %q: add another one", field, rival, phase)}
	}
	return nil
}
