package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// preflightRow is a result of a check, with the number of runs of each variant that have it.
type preflightRow struct {
	results.PreflightResult
	runs map[string]int
}

// words returns the messages, with the number of runs unless all runs have the result.
func (r preflightRow) words(runs, of int) string {
	text := strings.Join(r.Messages, "; ")
	if runs < of {
		text += fmt.Sprintf(" (%d of %d runs)", runs, of)
	}
	return text
}

// stateOf returns the state of a check of the storage of a run. Empty if the check does not apply.
func stateOf(run results.RunResult, check string) string {
	for _, one := range run.Preflight {
		if one.Check == check {
			return one.State
		}
	}
	return ""
}

// preflightRows returns the results that are not clean, of all valid runs, and the number of these runs of each variant. Emulated sectors
// are left out if the ashift of the pool fits the real ones. checked counts all results, including the clean ones.
func preflightRows(e results.Experiment) (rows []preflightRow, valid map[string]int, checked int) {
	valid = map[string]int{}
	for _, run := range e.Runs {
		if !run.Valid || len(run.Preflight) == 0 { // large results keep those of the first run of each variant only
			continue
		}
		valid[run.Variant]++
		for _, one := range run.Preflight {
			checked++
			if one.State == results.PreflightClean || one.Check == "sectors" && stateOf(run, "ashift") == results.PreflightClean {
				continue
			}
			at := slices.IndexFunc(rows, func(row preflightRow) bool {
				return row.Check == one.Check && row.State == one.State && slices.Equal(row.Messages, one.Messages)
			})
			if at < 0 {
				at, rows = len(rows), append(rows, preflightRow{one, map[string]int{}})
			}
			rows[at].runs[run.Variant]++
		}
	}
	return rows, valid, checked
}

// preflightTable has the checks of the storage that are not clean. What all of several variants have in common is one row.
func preflightTable(e results.Experiment) table {
	rows, valid, checked := preflightRows(e)
	t := table{Caption: fmt.Sprintf("Checks of the storage that are not clean, out of %d in all valid runs", checked),
		Head: []string{"Variant", "Check", "State", "What"}}
	add := func(variant string, row preflightRow, runs, of int) {
		t.add(named(variant), named(row.Check), named(row.State), words(row.words(runs, of)))
	}
	ofAll := func(row preflightRow) bool { return len(valid) > 1 && len(row.runs) == len(valid) }
	for _, row := range rows {
		if ofAll(row) {
			runs, of := 0, 0
			for variant, count := range valid {
				runs, of = runs+row.runs[variant], of+count
			}
			add("all", row, runs, of)
		}
	}
	for _, variant := range e.Variants {
		for _, row := range rows {
			if runs := row.runs[variant.Name]; runs > 0 && !ofAll(row) {
				add(variant.Name, row, runs, valid[variant.Name])
			}
		}
	}
	return t
}
