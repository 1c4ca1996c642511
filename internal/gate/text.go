package gate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/storagebench/storagebench/internal/results"
)

const (
	// maxMessage is the limit of GateStatus.message.
	maxMessage = 1024
	// maxListed bounds the names listed in a message.
	maxListed = 8
)

// plain is a name as it is, or quoted if it has characters that could mislead a reader.
func plain(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsGraphic(r) || r == utf8.RuneError || strings.ContainsRune(" \"'`<>&;", r)
	}) {
		return strconv.Quote(name)
	}
	return name
}

// printable replaces what does not print, so that a text stays one line.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// cut shortens to at most limit bytes without breaking a character.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	end := max(0, limit-len(ellipsis))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// list names what there is, bounded.
func list(names []string) string {
	shown := make([]string, 0, maxListed)
	for _, name := range names[:min(len(names), maxListed)] {
		shown = append(shown, plain(name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// figure is a measured value in words, exact.
func figure(of reference, metric results.MetricResult) string {
	runs := "runs"
	if metric.Runs == 1 {
		runs = "run"
	}
	return fmt.Sprintf("%s = %d (%d %s)", of, metric.Median, metric.Runs, runs)
}
