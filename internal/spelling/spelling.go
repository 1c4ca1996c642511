// Package spelling helps to word messages: it finds the name that a user most likely meant, writes numbers with their nouns, and shortens
// texts.
package spelling

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Shorten truncates a text to the given number of bytes without splitting a character. A truncated text ends with "...". Invalid UTF-8
// becomes "?".
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

// Some lists the names up to the given number, and says how many more there are.
func Some(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Count returns a number with its noun, for example "1 run" or "2 runs".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Nearest returns the name that was most likely meant: the only name that begins with the given one, or else the most similar name, if it
// differs in at most a third of the letters, or in at most two. It returns "" if there is none.
func Nearest(given string, names []string) string {
	if only := onlyLonger(given, names); only != "" {
		return only
	}
	return within(given, names, max(2, len(given)/3))
}

// onlyLonger returns the only name that begins with the given one, or "" if there is none or if the given name itself is among the names.
// It does not extend a number: P99 does not stand for P999.
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

// Slip is stricter than Nearest, for names that may be correct although this release does not know them: it accepts one wrong letter in
// short names, and two in longer ones.
func Slip(given string, names []string) string {
	if len(given) < 6 {
		return within(given, names, 1)
	}
	return within(given, names, 2)
}

// Instead says what to write instead of a name that is not one of the given names.
func Instead(given string, names []string) string {
	if meant := Slip(given, names); meant != "" {
		return "did you mean " + meant + "?"
	}
	if len(names) == 0 {
		return "remove it"
	}
	return "write one of " + strings.Join(names, ", ")
}

// within returns the most similar name that differs in at most that many letters. It ignores names that have nothing in common with the
// given one.
func within(given string, names []string, most int) string {
	best, distance := "", min(most+1, len(given))
	for _, candidate := range names {
		if d := editDistance(strings.ToLower(given), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance returns how many letters to insert, to remove, to replace or to swap with the next one. A word of two letters is another
// word if they are swapped, such as no and on. Letters are bytes, because the names are ASCII.
func editDistance(a, b string) int {
	distance := make([][]int, len(a)+1) // by the number of the first letters of a, and of b
	for i := range distance {
		distance[i] = make([]int, len(b)+1)
		distance[i][0] = i
	}
	for j := range distance[0] {
		distance[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := distance[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			distance[i][j] = min(replace, distance[i-1][j]+1, distance[i][j-1]+1)
			if len(a) > 2 && i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				distance[i][j] = min(distance[i][j], distance[i-2][j-2]+1)
			}
		}
	}
	return distance[len(a)][len(b)]
}
