package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// preflightRow is a result of a check that some runs of a variant have in common.
type preflightRow struct {
	variant string
	results.PreflightResult
	runs, of int
}

// words returns the messages, with the number of runs unless all runs have the result.
func (r preflightRow) words() string {
	text := strings.Join(r.Messages, "; ")
	if r.runs < r.of {
		text += fmt.Sprintf(" (%d of %d runs)", r.runs, r.of)
	}
	return text
}

// preflightRows returns the results that are not clean, of all valid runs, in the order of the variants and checks. checked counts all
// results, including the clean ones.
func preflightRows(e results.Experiment) (rows []preflightRow, checked int) {
	valid := map[string]int{}
	for _, run := range e.Runs {
		if !run.Valid || len(run.Preflight) == 0 { // large results keep those of the first run of each variant only
			continue
		}
		valid[run.Variant]++
		for _, one := range run.Preflight {
			checked++
			if one.State == results.PreflightClean {
				continue
			}
			at := slices.IndexFunc(rows, func(row preflightRow) bool {
				return row.variant == run.Variant && row.Check == one.Check && row.State == one.State &&
					slices.Equal(row.Messages, one.Messages)
			})
			if at < 0 {
				at, rows = len(rows), append(rows, preflightRow{variant: run.Variant, PreflightResult: one})
			}
			rows[at].runs++
		}
	}
	order := func(row preflightRow) int {
		return slices.IndexFunc(e.Variants, func(variant results.VariantResult) bool { return variant.Name == row.variant })
	}
	for i := range rows {
		rows[i].of = valid[rows[i].variant]
	}
	slices.SortStableFunc(rows, func(a, b preflightRow) int { return cmp.Compare(order(a), order(b)) })
	return rows, checked
}

// preflightTable has the checks of the storage that are not clean.
func preflightTable(e results.Experiment) table {
	rows, checked := preflightRows(e)
	t := table{Caption: fmt.Sprintf("Checks of the storage that are not clean, out of %d in all valid runs", checked),
		Head: []string{"Variant", "Check", "State", "What"}}
	for _, row := range rows {
		t.add(named(row.variant), named(row.Check), named(row.State), words(row.words()))
	}
	return t
}
