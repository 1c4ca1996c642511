package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

func gatesTable(e results.Experiment) table {
	t := table{Caption: "Gates with their verdicts", Head: []string{"Gate", "Verdict", "Why", "Definition"}}
	for _, gate := range e.Gates {
		t.add(named(gate.Name), verdictCell(gate.Verdict), words(cmp.Or(gate.Message, gate.Reason)), codeWords(gate.Definition))
	}
	return t
}

func (m *maker) gates() pageSection {
	section := pageSection{Before: m.tables(gatesTable(m.Experiment)), After: m.tables(comparisonsTable(m.Experiment))}
	if len(m.Experiment.Gates) == 0 {
		section.Notes = []string{"The experiment has no gates: the verdict says only whether all runs are valid."}
	}
	return section
}

// warnings are what a reader must know before trusting the numbers.
func (m *maker) warnings() pageSection {
	var section pageSection
	for _, key := range sortedKeys(m.Experiment.Environment) {
		if strings.HasPrefix(key, "warning.") {
			for _, value := range m.Experiment.Environment[key] {
				section.Warnings = append(section.Warnings, plain(value, maxCellBytes))
			}
		}
	}
	section.Warnings = slices.Compact(section.Warnings)
	for _, warning := range cacheWarnings(m.Experiment) {
		section.Warnings = append(section.Warnings, plain(warning, maxCellBytes))
	}
	section.After = m.tables(preflightTable(m.Experiment))
	if most := 32; len(section.Warnings) > most {
		section.Notes = []string{fmt.Sprintf("%d more warnings are in results.json.", len(section.Warnings)-most)}
		section.Warnings = section.Warnings[:most]
	}
	return section
}
