package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// table is what the reports show, in Markdown and on pages: a heading for each column and each row. Nothing in it is escaped: those who
// render it do that.
type table struct {
	// Caption is shown on pages. In Markdown, the title of the section takes its place.
	Caption string
	Head    []string
	Rows    [][]tableCell
	// Dropped rows did not fit on the page.
	Dropped int
	// Note is shown below, on pages.
	Note string
	// Closed tables are collapsed on pages until the reader opens them.
	Closed bool
}

func (t *table) add(cells ...tableCell) { t.Rows = append(t.Rows, cells) }

type tableCell struct {
	Text   string
	Class  string
	Strong bool
	Code   bool
	Number bool
	// values are what Markdown shows instead of the text, each as code.
	values []string
}

func words(text string) tableCell { return tableCell{Text: plain(text, maxCellBytes)} }

// named is the name of an object, which is shorter than a message.
func named(text string) tableCell { return tableCell{Text: plain(text, maxNameBytes)} }

func codeWords(text string) tableCell { return tableCell{Text: plain(text, maxCellBytes), Code: true} }

func figure(text string) tableCell { return tableCell{Text: text, Number: true} }

func median(metric results.MetricResult) tableCell {
	return figure(Amount(metric.Name, metric.Unit, metric.Median))
}

func count(number int32) tableCell { return figure(strconv.Itoa(int(number))) }

func verdictCell(verdict string) tableCell {
	return tableCell{Text: plain(verdict, maxNameBytes), Strong: true, Class: verdictClass(verdict)}
}

// listed are values that a page shows in one piece, joined by a separator.
func listed(separator string, values []string) tableCell {
	one := codeWords(strings.Join(values, separator))
	for _, value := range values {
		one.values = append(one.values, plain(value, maxCellBytes))
	}
	return one
}

// exact is a value that pages show like words.
func exact(text string) tableCell {
	one := words(text)
	one.values = []string{one.Text}
	return one
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

// figureColumns are the columns for the median of a metric, its range and its runs.
type figureColumns struct {
	head []string
	of   func(results.MetricResult) []tableCell
	none []tableCell
}

var (
	// narrow is for Markdown, which is also read unrendered.
	narrow = figureColumns{[]string{"Median (min..max, runs)"}, func(metric results.MetricResult) []tableCell {
		return []tableCell{figure(Figures(metric))}
	}, []tableCell{figure(notMeasured)}}
	wide = figureColumns{[]string{"Median", "Smallest to largest", "Runs"}, func(metric results.MetricResult) []tableCell {
		s := scaleFor(metric)
		return []tableCell{median(metric), figure(s.format(metric.Min) + " to " + s.format(metric.Max) + s.suffix), count(metric.Runs)}
	}, []tableCell{figure(notMeasured), figure(""), figure("0")}}
)

// wideTable is a table whose last columns are the wide ones.
func wideTable(caption string, head ...string) table {
	return table{Caption: caption, Head: slices.Concat(head, wide.head)}
}

// addFigures adds a row with the wide columns of a metric.
func (t *table) addFigures(metric results.MetricResult, names ...string) {
	var row []tableCell
	for _, of := range names {
		row = append(row, named(of))
	}
	t.add(append(row, wide.of(metric)...)...)
}
