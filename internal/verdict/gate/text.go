package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

const (
	// maxMessage is the limit of GateStatus.message.
	maxMessage = 1024
	// maxListed bounds the names listed in a message.
	maxListed = 8
)

// plain returns a name unchanged, or quoted if it is empty or has characters that could mislead a reader.
func plain(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsGraphic(r) || r == utf8.RuneError || strings.ContainsRune(" \"'`<>&;", r)
	}) {
		return strconv.Quote(name)
	}
	return name
}

// printable replaces characters that do not print, so that a text stays on one line.
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
	return spelling.Shorten(text, limit)
}

// list joins the names, at most maxListed of them.
func list(names []string) string {
	shown := slices.Clone(names)
	for i := range shown[:min(len(shown), maxListed)] {
		shown[i] = plain(shown[i])
	}
	return spelling.Some(shown, maxListed)
}

// figure describes a measured value exactly.
func figure(of reference, metric results.MetricResult) string {
	return fmt.Sprintf("%s = %d (%s)", of, metric.Median, spelling.Count(int(metric.Runs), "run"))
}

// share formats a share in percent, without its sign and with no more digits than necessary.
func share(value float64) string {
	text := strconv.FormatFloat(math.Abs(value)*100, 'f', 1, 64)
	if exact := math.Abs(value) * 1000; math.Abs(exact-math.Round(exact)) > 1e-6 && exact < 100 { // such as 0.25%
		text = strconv.FormatFloat(math.Abs(value)*100, 'f', 2, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

// change says how much higher or lower a value is, given the logarithm of a ratio.
func change(logarithm float64) string {
	ratio := math.Expm1(logarithm)
	text := strconv.FormatFloat(math.Abs(ratio)*100, 'f', 1, 64) + "%"
	switch {
	case text == "0.0%":
		return "as high as"
	case ratio > 0:
		return text + " higher than"
	default:
		return text + " lower than"
	}
}

// signed formats the logarithm of a ratio as a change in percent, with its sign.
func signed(logarithm float64) string {
	return strconv.FormatFloat(math.Expm1(logarithm)*100, 'f', 1, 64) + "%"
}

// probability formats p with two significant digits.
func probability(p float64) string { return strconv.FormatFloat(p, 'g', 2, 64) }
