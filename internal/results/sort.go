package results

import (
	"maps"
	"slices"
)

// sortedKeys makes iteration over maps deterministic.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
