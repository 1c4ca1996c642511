package report

import (
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// headBytes is the size limit of the head. Together with those of the sections it stays below MaxMarkdownBytes.
const headBytes = 6 << 10

// renderMarkdown also lists what did not fit.
func renderMarkdown(e results.Experiment) (text string, omitted []string) {
	text = head(e)
	for _, s := range sections(e) {
		text += s.String()
		if s.dropped > 0 {
			omitted = append(omitted, fmt.Sprintf("report.md: %d rows of %q", s.dropped, s.title))
		}
	}
	return text, omitted
}

// head is the verdict with its message, and warnings about the measurements.
func head(e results.Experiment) string {
	verdict := name(verdictWord(e))
	sentence := "**" + verdict + "**"
	if e.Reason != "" && e.Reason != e.Verdict {
		sentence += " (" + name(e.Reason) + ")"
	}
	if e.Message != "" {
		sentence += ": " + cell(e.Message)
	}
	paragraphs := append([]string{"# " + name(e.Benchmark.Namespace) + "/" + name(e.Benchmark.Name) + ": " + verdict, sentence}, notices(e)...)
	if len(e.Runs) > 0 {
		paragraphs = append(paragraphs, runsWords(e)...)
	}
	return strings.Join(paragraphs, "\n\n") + "\n"
}

// sections are those of the Markdown in their order, also the empty ones.
func sections(e results.Experiment) []*section {
	all := samplesOf(e)
	best, preflight := bestTable(e, all), preflightTable(e)
	return []*section{
		newSection("Gates", 36<<10).table(gatesTable(e)),
		newSection("Comparisons", 12<<10).table(comparisonsTable(e), comparisonsNote),
		newSection("Warnings", 4<<10).lines(warningsOf(e)),
		newSection("Which variant is best", 12<<10).table(best, best.Note),
		numbersSection(e, all),
		newSection("Notes about these numbers", 8<<10).table(notesTable(e)),
		newSection("Outlying runs", 4<<10).table(outliersTable(e, all), outliersNote),
		nodesSection(e),
		disksSection(e, all),
		newSection("What went wrong", 16<<10).table(invalidTable(e), "These attempts were not used in any number above.",
			cell(repeatedAttempts(e))),
		newSection("Preflight", 8<<10).table(preflight, preflight.Caption+"."),
		environmentSection(e),
		newSection("Where it was measured", 4<<10).table(mainTable(e.Environment)),
		newSection("What was made", 8<<10).table(volumesTable(e), "As read back from ZFS before the first phase."),
		newSection("How it was run", 6<<10).table(howTable(e)),
		newSection("Raw data", 8<<10).table(rawTable(e), "Each phase of each run has a ConfigMap; `document.json.gz` in it is everything that "+
			"was measured."),
	}
}

// MarkdownPictures refers to pictures that are files in a folder.
func MarkdownPictures(folder string, pictures []Picture) string {
	if len(pictures) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("\n## Pictures\n")
	for _, picture := range pictures {
		fmt.Fprintf(&out, "\n![%s](%s/%s.svg)\n", name(picture.Title), folder, picture.Name)
		if picture.Caption != "" {
			fmt.Fprintf(&out, "\n%s\n", cell(picture.Caption))
		}
	}
	return out.String()
}

// markdownEscapes prevent messages from breaking tables and from becoming links, code or HTML. Underscores and dashes stay: the
// text is also read unrendered, in terminals.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", `\<`)

// cell escapes text for a paragraph.
func cell(text string) string { return markdownEscapes.Replace(plain(text, maxCellBytes)) }

// name escapes the name of an object, which is shorter than a message.
func name(text string) string { return markdownEscapes.Replace(plain(text, maxNameBytes)) }

// code formats text of a table as code. Inside code, only '|' can be escaped, and only if no backslash is before it.
func code(text string) string {
	if text == "" {
		return ""
	}
	if strings.Contains(text, "`") || strings.Contains(text, `\|`) {
		return markdownEscapes.Replace(text)
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// markdown escapes a cell.
func (c tableCell) markdown() string {
	switch {
	case len(c.values) > 0:
		var all []string
		for _, value := range c.values {
			all = append(all, code(value))
		}
		return strings.Join(all, ", ")
	case c.Code:
		return code(c.Text)
	case c.Strong:
		return "**" + markdownEscapes.Replace(c.Text) + "**"
	}
	return markdownEscapes.Replace(c.Text)
}

// section collects lines up to a number of bytes and counts the omitted ones.
type section struct {
	title   string
	text    strings.Builder
	left    int
	dropped int
}

func newSection(title string, most int) *section { return &section{title: title, left: most} }

// add adds a line if it fits. After the first omitted line there are no more, so that tables are complete up to that point.
func (s *section) add(line string) bool {
	if s.dropped > 0 || len(line) >= s.left {
		return false
	}
	s.text.WriteString(line + "\n")
	s.left -= len(line) + 1
	return true
}

// paragraph adds text with an empty line before it.
func (s *section) paragraph(text string) bool {
	if s.text.Len() > 0 {
		text = "\n" + text
	}
	return s.add(text)
}

// lines adds paragraphs that are counted if they do not fit.
func (s *section) lines(all []string) *section {
	for _, line := range all {
		if !s.paragraph(cell(line)) {
			s.dropped++
		}
	}
	return s
}

// table adds a table below Markdown. Without rows it adds nothing.
func (s *section) table(t table, above ...string) *section {
	if len(t.Rows) == 0 {
		return s
	}
	text := ""
	for _, paragraph := range above {
		if paragraph != "" {
			text += paragraph + "\n\n"
		}
	}
	for _, head := range t.Head {
		text += "| " + markdownEscapes.Replace(head) + " "
	}
	fits := s.paragraph(text + "|\n" + strings.Repeat("|---", len(t.Head)) + "|")
	for _, row := range t.Rows {
		line := ""
		for _, cell := range row {
			line += "| " + cell.markdown() + " "
		}
		if fits = fits && s.add(line+"|"); !fits {
			s.dropped++
		}
	}
	return s
}

// String is the section with its title, or nothing if it is empty.
func (s *section) String() string {
	if s.text.Len() == 0 && s.dropped == 0 {
		return ""
	}
	text := fmt.Sprintf("\n## %s\n\n%s", s.title, s.text.String())
	if s.dropped > 0 {
		text += fmt.Sprintf("\n%d more rows did not fit here; results.json has them.\n", s.dropped)
	}
	return text
}
