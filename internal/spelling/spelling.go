// Package spelling finds the name that a user most likely meant.
package spelling

import "strings"

// Nearest is the name that differs least from the given one, if it differs little enough to be a slip: in a third of its letters, or in
// two. Empty if there is none.
func Nearest(given string, names []string) string {
	return within(given, names, max(2, len(given)/3))
}

// Slip is Nearest for what may also be a name that this release does not know: in short names one letter, in longer ones two.
func Slip(given string, names []string) string {
	if len(given) < 6 {
		return within(given, names, 1)
	}
	return within(given, names, 2)
}

func within(given string, names []string, most int) string {
	best, distance := "", most+1
	for _, candidate := range names {
		if d := editDistance(strings.ToLower(given), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance, over bytes: the names are ASCII.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
