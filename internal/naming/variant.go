package naming

import (
	"slices"
	"strings"
)

// The name of a variant has comma-separated parts: the name of the variant in the spec, and PATH=VALUE for each path of the matrix. A gate
// names a variant by some of these parts.

// IsVariant reports whether a variant has all parts of a name.
func IsVariant(variant, name string) bool {
	has := strings.Split(variant, ",")
	for part := range strings.SplitSeq(name, ",") {
		if !slices.Contains(has, part) {
			return false
		}
	}
	return true
}

// Counterpart returns the name of the variant that has the parts of name, and otherwise the parts of variant. That variant need not exist.
func Counterpart(variant, name string) string {
	parts := strings.Split(variant, ",")
	for part := range strings.SplitSeq(name, ",") {
		if at := slices.IndexFunc(parts, func(own string) bool { return pathOf(own) == pathOf(part) }); at >= 0 {
			parts[at] = part
		} else {
			parts = append(parts, part) // the matrix lacks this path, so there is no such variant
		}
	}
	return strings.Join(parts, ",")
}

// pathOf returns the path of a part. It is empty for the name of the variant in the spec.
func pathOf(part string) string {
	path, _, found := strings.Cut(part, "=")
	if !found {
		return ""
	}
	return path
}
