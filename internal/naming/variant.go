package naming

import (
	"slices"
	"strings"
)

// The name of a variant has parts: the variant of the spec, and PATH=VALUE of each path of the matrix. A gate names a variant by some of
// them.

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

// Counterpart is the variant that has the parts of a name and otherwise those of another variant. It need not exist.
func Counterpart(variant, name string) string {
	parts := strings.Split(variant, ",")
	for part := range strings.SplitSeq(name, ",") {
		if at := slices.IndexFunc(parts, func(own string) bool { return pathOf(own) == pathOf(part) }); at >= 0 {
			parts[at] = part
		} else {
			parts = append(parts, part) // of a path that the matrix does not have, so that there is no such variant
		}
	}
	return strings.Join(parts, ",")
}

// pathOf is the path of a part. Empty for the variant of the spec.
func pathOf(part string) string {
	path, _, found := strings.Cut(part, "=")
	if !found {
		return ""
	}
	return path
}
