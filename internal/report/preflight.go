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

// preflightSection has the checks of the storage that are not clean.
func preflightSection(e results.Experiment) *section {
	s := newSection("Preflight", preflightBytes)
	rows, checked := preflightRows(e)
	if len(rows) == 0 {
		return s
	}
	s.uncounted(fmt.Sprintf("Checks of the storage that are not clean, out of %d in all valid runs.\n\n"+
		"| Variant | Check | State | What |\n|---|---|---|---|", checked))
	for _, row := range rows {
		s.row("| %s | %s | %s | %s |", name(row.variant), name(row.Check), name(row.State), cell(row.words()))
	}
	return s
}

// preflightTable is the same for the page.
func (m *maker) preflightTable() []table {
	var rows [][]tableCell
	found, _ := preflightRows(m.Experiment)
	for _, row := range found {
		rows = append(rows, []tableCell{words(row.variant), words(row.Check), words(row.State), words(row.words())})
	}
	head := table{Caption: "Checks of the storage that are not clean", Head: []string{"Variant", "Check", "State", "What"}}
	return tables(m.rows(head, rows...))
}
