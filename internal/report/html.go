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

// maker builds the parts of a page, and counts what fits.
type maker struct {
	Page
	left, leftForPictures int
	omitted               []string
}

// tables returns the tables that have rows, each with as many as there is room for. If no row of a table fits, only the list of omissions
// names that table.
func (m *maker) tables(all ...table) []table {
	var kept []table
	for _, t := range all {
		if m.fit(&t); len(t.Rows) > 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

// fit drops the rows of a table for which there is no room.
func (m *maker) fit(t *table) {
	if len(t.Rows) == 0 {
		return
	}
	m.left -= 600 + 3*len(html.EscapeString(t.Caption))
	for _, head := range t.Head {
		m.left -= 40 + len(html.EscapeString(head))
	}
	room := min(tableBytes, m.left)
	for i, row := range t.Rows {
		bytes := 12
		for _, cell := range row {
			bytes += 40 + len(html.EscapeString(cell.Text))
		}
		if room -= bytes; room < 0 {
			t.Rows, t.Dropped = t.Rows[:i], len(t.Rows)-i
			m.omitted = append(m.omitted, fmt.Sprintf("report.html: %d rows of %q", t.Dropped, t.Caption))
			return
		}
		m.left -= bytes
	}
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
	{"time", "Over time", func(*maker) pageSection { return pageSection{} }}, // only pictures
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
		Class: verdictClass(e.Verdict), Sentence: m.sentence(), Notices: notices(e), Experiment: plain(e.Experiment, maxNameBytes)}
	view.Title = name + ": " + view.Verdict
	line := runsWords(e)
	if at := moment(e.FinishedAt); at != "" {
		line = append(line, "Finished "+at+".")
	}
	view.Notices = append(view.Notices, strings.Join(line, " "))
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
