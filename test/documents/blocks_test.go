package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced block of a page.
type block struct {
	page string
	// line is that of the fence.
	line     int
	language string
	lines    []string
	// mark says why its commands are not executed: <!-- not executed: REASON --> in the line above the fence.
	mark string
	// saveAs is the file name under which the text above the block asks readers to save it.
	saveAs string
}

// statement is a command, or several that belong together, as a reader enters it.
type statement struct {
	line int
	text string
	// shown is the output that the page shows. Only console blocks have some.
	shown []string
}

var (
	fence  = regexp.MustCompile("^( *)```+ *(.*)$")
	mark   = regexp.MustCompile(`^ *<!-- not executed: (.*?) *-->$`)
	saveAs = regexp.MustCompile("Save this as `([a-z0-9.-]+)`:$")
	// opens and closes match the words that make several lines one statement.
	opens = regexp.MustCompile(`(^|\s)(case|do|if)\s`)
	// ours matches the beginning of a command of the project within a sentence.
	ours   = regexp.MustCompile(`^(make|kubectl storagebench|kubectl-storagebench|hack/[a-z-]+) `)
	closes = regexp.MustCompile(`(^|\s)(esac|done|fi)\b`)
)

// blocksOf returns the fenced blocks of a page, and the line numbers of marks that are not above a block.
func blocksOf(t *testing.T, folder, page string) (blocks []block, lost []int) {
	lines := strings.Split(read(t, filepath.Join(folder, page)), "\n")
	above := "" // the last line that is not empty
	for i := 0; i < len(lines); i++ {
		begin := fence.FindStringSubmatch(lines[i])
		if begin == nil {
			if mark.MatchString(lines[i]) && (i+1 == len(lines) || !fence.MatchString(lines[i+1])) {
				lost = append(lost, i+1)
			}
			if lines[i] != "" && !mark.MatchString(lines[i]) {
				above = lines[i]
			}
			continue
		}
		one := block{page: page, line: i + 1, language: begin[2]}
		if i > 0 {
			if marked := mark.FindStringSubmatch(lines[i-1]); marked != nil {
				one.mark = marked[1]
			}
		}
		if asked := saveAs.FindStringSubmatch(above); asked != nil {
			one.saveAs = asked[1]
		}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			one.lines = append(one.lines, strings.TrimPrefix(lines[i], begin[1]))
		}
		above = ""
		blocks = append(blocks, one)
	}
	return blocks, lost
}

// commands reports whether a block is for readers to enter.
func (b block) commands() bool { return b.language == "sh" || b.language == "console" }

// statements returns the statements that a reader enters, in order.
func (b block) statements() (all []statement) {
	open := 0
	for i, line := range b.lines {
		entered, prompt := strings.CutPrefix(line, "$ ")
		switch last := len(all) - 1; {
		case b.language == "console" && !prompt:
			if last >= 0 {
				all[last].shown = append(all[last].shown, line)
			}
			continue
		case last >= 0 && (open > 0 || strings.HasSuffix(all[last].text, `\`)):
			all[last].text += "\n" + entered
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			continue
		default:
			all = append(all, statement{line: b.line + 1 + i, text: entered})
		}
		open += len(opens.FindAllString(entered+" ", -1)) - len(closes.FindAllString(entered, -1))
	}
	return all
}

// spansOf returns the commands of the project within sentences of a page.
func spansOf(t *testing.T, folder, page string) (spans []statement) {
	inside := false
	for i, line := range strings.Split(read(t, filepath.Join(folder, page)), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
		}
		for _, span := range codeSpan.FindAllString(line, -1) {
			if text := strings.Trim(span, "`"); !inside && ours.MatchString(text) {
				spans = append(spans, statement{line: i + 1, text: text})
			}
		}
	}
	return spans
}
