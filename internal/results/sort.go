package results

import (
	"maps"
	"slices"
	"unicode/utf8"
)

// sortedKeys makes walks over maps the same every time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Shorten cuts text to so many bytes without breaking a character, and shows that it did.
func Shorten(text string, most int) string {
	const mark = "..."
	if len(text) <= most {
		return text
	}
	cut := max(most-len(mark), 0)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}
