package results

import (
	"maps"
	"slices"
)

// sortedKeys makes walks over maps the same every time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
