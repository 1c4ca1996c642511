package report

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxCellBytes = 1500
	maxNameBytes = 300
)

// plain converts text to one line of valid, visible characters, with a limit in bytes. It reads no more than can be shown: messages can
// contain logs of pods.
func plain(text string, most int) string {
	var out strings.Builder
	space, broken := false, false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		wasBroken := broken
		if broken = r == utf8.RuneError && size == 1; broken && wasBroken {
			continue // a sequence of invalid bytes gets one mark
		}
		if r = visible(r); r < 0 {
			continue
		}
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = out.Len() > 0
			continue
		}
		if space {
			out.WriteByte(' ')
			space = false
		}
		out.WriteRune(r)
		if out.Len() > most {
			return strings.ToValidUTF8(out.String()[:most], "") + "..."
		}
	}
	return out.String()
}

// visible returns a negative rune for format characters, so that they are dropped. Among them are those that reverse the direction of
// writing, which make one text read as another.
func visible(r rune) rune {
	switch {
	case unicode.Is(unicode.Cf, r):
		return -1
	case r == 0xFFFE || r == 0xFFFF: // no XML may contain them
		return utf8.RuneError
	}
	return r
}

// lines removes invisible characters from text of several lines, and cuts it so that it has at most that many bytes when escaped.
func lines(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return visible(r)
	}, strings.ToValidUTF8(text, "\uFFFD"))
	for i, r := range text {
		if most -= len(html.EscapeString(string(r))); most < 0 {
			return text[:i] + "\n# The rest did not fit here."
		}
	}
	return text
}
