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
		section.Notes = []string{"The experiment has no gates: the verdict says only whether each repetition has a valid run."}
	}
	return section
}

// warningsOf are what a reader must know before trusting the numbers. Those about sectors do not know the ashift of a pool: if a check that
// does has judged all runs, its result counts.
func warningsOf(e results.Experiment) (all []string) {
	judged, others := false, false // whether the check has judged runs, and whether there are others
	for _, run := range e.Runs {
		state := stateOf(run, "ashift")
		known := state == results.PreflightClean || state == results.PreflightWarning
		judged, others = judged || known, others || !known && len(run.Preflight) > 0
	}
	for _, key := range sortedKeys(e.Environment) {
		if hidden := judged && !others && strings.HasSuffix(key, ".sectors"); strings.Contains("."+key, ".warning.") && !hidden {
			all = append(all, e.Environment[key]...)
		}
	}
	return append(slices.Compact(all), cacheWarnings(e)...)
}

func (m *maker) warnings() pageSection {
	section := pageSection{After: m.tables(preflightTable(m.Experiment))}
	for _, warning := range warningsOf(m.Experiment) {
		section.Warnings = append(section.Warnings, plain(warning, maxCellBytes))
	}
	if most := 32; len(section.Warnings) > most {
		section.Notes = []string{fmt.Sprintf("%d more warnings are in results.json.", len(section.Warnings)-most)}
		section.Warnings = section.Warnings[:most]
	}
	return section
}
