// Package spelling has the words of messages: the name that a user most likely meant, how many there are of something, and texts of any
// length made short.
package spelling

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Shorten truncates a text to so many bytes without splitting a character, and shows that it did. Bytes that are no text become "?".
func Shorten(text string, most int) string {
	const mark = "..."
	if text = strings.ToValidUTF8(text, "?"); len(text) <= most {
		return text
	}
	cut := max(most-len(mark), 0)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

// Some lists at most so many names, and says how many more there are.
func Some(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Count is, for example, "1 run" or "2 runs".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Nearest is the only name that begins with the given one. Otherwise it is the most similar name, if it differs in at most a third of the
// letters, or in two. Empty if there is none.
func Nearest(given string, names []string) string {
	if only := onlyLonger(given, names); only != "" {
		return only
	}
	return within(given, names, max(2, len(given)/3))
}

// onlyLonger is the only name that begins with the given one. Another number is another name: P99 does not stand for P999.
func onlyLonger(given string, names []string) (only string) {
	for _, candidate := range names {
		if strings.EqualFold(candidate, given) {
			return ""
		}
		if given == "" || len(candidate) <= len(given) || !strings.EqualFold(candidate[:len(given)], given) ||
			digit(given[len(given)-1]) && digit(candidate[len(given)]) {
			continue
		}
		if only != "" {
			return ""
		}
		only = candidate
	}
	return only
}

func digit(b byte) bool { return '0' <= b && b <= '9' }

// Slip is Nearest for a name that may also be unknown to this release: it accepts one wrong letter in short names, and two in longer ones.
func Slip(given string, names []string) string {
	if len(given) < 6 {
		return within(given, names, 1)
	}
	return within(given, names, 2)
}

// Instead says which of the names to write instead of one that is not among them.
func Instead(given string, names []string) string {
	if meant := Slip(given, names); meant != "" {
		return "did you mean " + meant + "?"
	}
	if len(names) == 0 {
		return "remove it"
	}
	return "write one of " + strings.Join(names, ", ")
}

// within is the most similar name that differs in at most that many letters. It ignores names that have nothing in common with the given
// one.
func within(given string, names []string, most int) string {
	best, distance := "", min(most+1, len(given))
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
