package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxCellBytes = 1500
	maxNameBytes = 300
)

// markdownEscapes prevent messages from breaking tables and from becoming links, code or HTML. Underscores and dashes stay: the
// text is also read unrendered, in terminals.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", `\<`)

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

// cell escapes text for a table or a paragraph.
func cell(text string) string { return markdownEscapes.Replace(plain(text, maxCellBytes)) }

// name escapes the name of an object, which is shorter than a message.
func name(text string) string { return markdownEscapes.Replace(plain(text, maxNameBytes)) }

// code formats text as code. Inside code, only '|' can be escaped, and only in tables.
func code(text string) string {
	text = plain(text, maxCellBytes)
	if text == "" {
		return ""
	}
	if strings.Contains(text, "`") {
		return markdownEscapes.Replace(text)
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// section collects lines up to a number of bytes and counts the omitted ones.
type section struct {
	title   string
	text    strings.Builder
	left    int
	dropped int
}

func newSection(title string, most int) *section { return &section{title: title, left: most} }

// row adds a row of a table, or another line that is counted if it does not fit.
func (s *section) row(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
	if s.dropped > 0 || len(line) > s.left {
		// No rows after the first omitted one, so that the table is complete up to that point.
		s.dropped++
		return
	}
	s.text.WriteString(line)
	s.left -= len(line)
}

// uncounted adds lines that are not counted: headings and table headers.
func (s *section) uncounted(line string) {
	if s.dropped == 0 && len(line) < s.left {
		s.text.WriteString(line + "\n")
		s.left -= len(line) + 1
	}
}

// String is the section with its title, or nothing if it is empty.
func (s *section) String() string {
	if s.text.Len() == 0 && s.dropped == 0 {
		return ""
	}
	text := fmt.Sprintf("\n## %s\n\n%s", s.title, strings.TrimRight(s.text.String(), "\n")+"\n")
	if s.dropped > 0 {
		text += fmt.Sprintf("\n%d more rows did not fit here; results.json has them.\n", s.dropped)
	}
	return text
}
