package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"strings"
	"unicode"

	"github.com/storagebench/storagebench/internal/results"
)

// MaxHTMLBytes limits a page.
const MaxHTMLBytes = 2 << 20

const (
	// tablesBytes and picturesBytes share the page, and leave room for its frame.
	tablesBytes   = 1100 << 10
	picturesBytes = 768 << 10
	// tableBytes limits one table.
	tableBytes = 256 << 10
	// manifestBytes limits the escaped manifest.
	manifestBytes = 96 << 10
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle    string
	pageTemplate = template.Must(template.New("page").Parse(pageText))
)

// Page is the content of a page.
type Page struct {
	Experiment results.Experiment
	// Manifest is the StorageBenchmark as YAML. Empty if it is no longer known.
	Manifest string
	// Pictures of the experiment, from its results and the documents of its phases.
	Pictures []Picture
}

// Picture is an SVG with words about it.
type Picture struct {
	// Section of the page that it belongs to.
	Section string
	// Name is that of its file, without an ending.
	Name string
	// Title and Caption are shown above and below.
	Title   string
	Caption string
	// SVG is the drawing. It is put into the page as it is.
	SVG string
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

// HTML renders a page as one self-contained file. It also lists what did not fit. The same page always gives the same bytes.
func HTML(p Page) (text []byte, omitted []string, err error) {
	m := &maker{Page: p, left: tablesBytes, leftForPictures: picturesBytes}
	view := m.view()
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, view); err != nil {
		return nil, nil, fmt.Errorf("render report.html: %w", err)
	}
	if out.Len() > MaxHTMLBytes {
		return nil, nil, fmt.Errorf("report.html would take %d bytes, at most %d are allowed", out.Len(), MaxHTMLBytes)
	}
	return out.Bytes(), m.omitted, nil
}

// pageView is what the template shows.
type pageView struct {
	Style                                 template.CSS
	Title, Name, Verdict, Class, Sentence string
	Notices                               []string
	Sections                              []pageSection
	Experiment                            string
}

// pageSection is a part with a heading. Empty ones are left out.
type pageSection struct {
	ID, Title string
	Notes     []string
	Warnings  []string
	// Before and After are tables around the pictures.
	Before, After []table
	Pictures      []drawn
	Texts         []verbatim
}

func (s pageSection) empty() bool {
	return len(s.Notes)+len(s.Warnings)+len(s.Before)+len(s.After)+len(s.Pictures)+len(s.Texts) == 0
}

type drawn struct {
	Title, Caption string
	Drawing        template.HTML
}

type verbatim struct{ Title, Text string }

// table has a heading for each column and each row.
type table struct {
	Caption string
	Head    []string
	Rows    [][]tableCell
	Dropped int
	// Note is shown below.
	Note string
	// Closed tables are collapsed until the reader opens them.
	Closed bool
}

type tableCell struct {
	Text   string
	Class  string
	Strong bool
	Code   bool
	Number bool
}

func words(text string) tableCell { return tableCell{Text: plain(text, maxCellBytes)} }

func codeWords(text string) tableCell { return tableCell{Text: plain(text, maxCellBytes), Code: true} }

func figure(text string) tableCell { return tableCell{Text: text, Number: true} }

func verdictCell(verdict string) tableCell {
	return tableCell{Text: plain(verdict, maxNameBytes), Strong: true, Class: verdictClass(verdict)}
}

// verdictClass returns the class of a verdict: green only if the verdict is known to be good.
func verdictClass(verdict string) string {
	switch verdict {
	case "Passed":
		return "good"
	case "Failed":
		return "bad"
	case "Inconclusive", "Invalid":
		return "doubt"
	default:
		return "none"
	}
}

// maker builds the parts of a page, and counts what fits.
type maker struct {
	Page
	left, leftForPictures int
	omitted               []string
}

// rows adds as many rows to a table as there is room for.
func (m *maker) rows(t table, rows ...[]tableCell) table {
	if len(rows) == 0 {
		return t
	}
	m.left -= 600 + 3*len(html.EscapeString(t.Caption))
	for _, head := range t.Head {
		m.left -= 40 + len(html.EscapeString(head))
	}
	room := min(tableBytes, m.left)
	for i, row := range rows {
		bytes := 12
		for _, cell := range row {
			bytes += 40 + len(html.EscapeString(cell.Text))
		}
		if room -= bytes; room < 0 {
			t.Dropped = len(rows) - i
			m.omitted = append(m.omitted, fmt.Sprintf("report.html: %d rows of %q", t.Dropped, t.Caption))
			break
		}
		m.left -= bytes
		t.Rows = append(t.Rows, row)
	}
	return t
}

// tables keeps the tables that have rows. If no row of a table fits, only the list of omissions names that table.
func tables(all ...table) []table {
	var kept []table
	for _, t := range all {
		if len(t.Rows) > 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

// pictures returns the pictures of a section, as far as there is room.
func (m *maker) pictures(section string) []drawn {
	var kept []drawn
	for _, picture := range m.Pictures {
		if picture.Section != section {
			continue
		}
		if m.leftForPictures -= len(picture.SVG); m.leftForPictures < 0 {
			m.omitted = append(m.omitted, "report.html: picture "+picture.Name)
			continue
		}
		kept = append(kept, drawn{Title: plain(picture.Title, maxNameBytes), Caption: plain(picture.Caption, maxCellBytes),
			Drawing: template.HTML(picture.SVG)}) //nolint:gosec // drawn by this program, with all text escaped
	}
	return kept
}

// pageSections in their order.
var pageSections = []struct {
	id, title string
	make      func(*maker) pageSection
}{
	{"gates", "Gates", (*maker).gates},
	{"warnings", "Warnings", (*maker).warnings},
	{"numbers", "Numbers", (*maker).numbers},
	{"latency", "Latency", (*maker).latency},
	{"time", "Over time", (*maker).overTime},
	{"disks", "What the disks did", (*maker).disks},
	{"nodes", "Nodes", (*maker).nodes},
	{"environment", "Environment", (*maker).environment},
	{"runs", "Runs", (*maker).runs},
	{"repeat", "How to repeat it", (*maker).repeat},
}

func (m *maker) view() pageView {
	e := m.Experiment
	name := plain(e.Benchmark.Namespace+"/"+e.Benchmark.Name, maxNameBytes)
	view := pageView{Style: template.CSS(pageStyle), Name: name, Verdict: plain(verdictWord(e), maxNameBytes), //nolint:gosec // our own file
		Class: verdictClass(e.Verdict), Sentence: m.sentence(), Notices: m.notices(), Experiment: plain(e.Experiment, maxNameBytes)}
	view.Title = name + ": " + view.Verdict
	for _, of := range pageSections {
		section := of.make(m)
		section.ID, section.Title, section.Pictures = of.id, of.title, m.pictures(of.id)
		if !section.empty() {
			view.Sections = append(view.Sections, section)
		}
	}
	return view
}

// sentence returns the message of the verdict, or else its reason, as a sentence.
func (m *maker) sentence() string {
	e := m.Experiment
	sentence := cmp.Or(plain(e.Message, maxCellBytes), plain(e.Reason, maxNameBytes))
	if sentence == "" {
		return "The results give no further explanation."
	}
	letters := []rune(sentence)
	letters[0] = unicode.ToUpper(letters[0])
	if last := letters[len(letters)-1]; unicode.IsLetter(last) || unicode.IsDigit(last) || last == ')' {
		letters = append(letters, '.')
	}
	return string(letters)
}

func (m *maker) notices() []string {
	e := m.Experiment
	var notices []string
	switch e.State {
	case results.StateSuperseded:
		notices = append(notices, "The benchmark was changed before this experiment ended. What was measured until then is below; no verdict "+
			"follows from it.")
	case results.StateIncomplete:
		notices = append(notices, "Runs are missing, so nothing is decided. What was measured is below.")
	default:
	}
	if e.Extended {
		notices = append(notices, "These results are preliminary: a gate is undecided, and more repetitions follow.")
	}
	line := runsText(e.Runs)
	if len(e.Groups) > 0 {
		line += fmt.Sprintf(" The runs on all nodes at the same time are one repetition: there are %d such groups.", len(e.Groups))
	}
	if at := moment(e.FinishedAt); at != "" {
		line += " Finished " + at + "."
	}
	return append(notices, line)
}
