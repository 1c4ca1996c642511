package report

import (
	"fmt"

	"github.com/storagebench/storagebench/internal/results"
)

// notesSection has what runners say about their own numbers, such as why one is missing.
func notesSection(e results.Experiment) *section {
	s := newSection("Notes about these numbers", notesBytes)
	for i, note := range e.Notes {
		if i == 0 {
			s.uncounted("| Phase | Note | Results |\n|---|---|---|")
		}
		s.row("| %s | %s | %s |", name(note.Phase), cell(note.Text), timesOf(note))
	}
	return s
}

// notesTable is notesSection for a page.
func (m *maker) notesTable() table {
	var rows [][]tableCell
	for _, note := range m.Experiment.Notes {
		rows = append(rows, []tableCell{words(note.Phase), words(note.Text), figure(timesOf(note))})
	}
	return m.rows(table{Caption: "Notes about these numbers", Head: []string{"Phase", "Note", "Results"}}, rows...)
}

func timesOf(note results.Note) string { return fmt.Sprintf("%d of %d", note.Results, note.Of) }
