package pictures

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

const (
	// maxHeats limits the heat maps of a matrix, and maxPanels the grids of each.
	maxHeats, maxPanels = 6, 6
	// leastFull is the percentage of the cells that must be combinations of the experiment: a matrix whose paths change together (Zip)
	// makes no grid.
	leastFull = 50
	// maxCells is the size of a grid that can still be read.
	maxCells = 4096
)

// dimension is a path of the matrix with its values, in the order of the spec.
type dimension struct {
	path   string
	values []string
}

// dimensions returns the paths of a matrix that have several values, those with the most values first.
func dimensions(variants []results.VariantResult) []dimension {
	var all []dimension
	for _, path := range slices.Sorted(maps.Keys(joined(variants))) {
		one := dimension{path: path}
		for _, variant := range variants {
			if value, has := variant.Matrix[path]; has && !slices.Contains(one.values, value) {
				one.values = append(one.values, value)
			}
		}
		if len(one.values) > 1 {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b dimension) int { return cmp.Compare(len(b.values), len(a.values)) })
	return all
}

// joined returns every path of the matrix that any variant has.
func joined(variants []results.VariantResult) map[string]string {
	paths := map[string]string{}
	for _, variant := range variants {
		maps.Copy(paths, variant.Matrix)
	}
	return paths
}

// besides names a variant without the values of some paths: "mirror, logbias=latency". Empty if nothing else distinguishes it from others.
func besides(variant results.VariantResult, all []dimension, shown ...string) string {
	var parts []string
	if variant.Base != "" {
		parts = append(parts, variant.Base)
	}
	for _, one := range all {
		if value, has := variant.Matrix[one.path]; has && !slices.Contains(shown, one.path) {
			parts = append(parts, one.path+"="+value)
		}
	}
	return strings.Join(parts, ", ")
}

// subjects returns the metrics that an experiment is about: those of its gates, then the primary ones of its measure phases.
func subjects(e results.Experiment) []results.GateMetric {
	var all []results.GateMetric
	add := func(of results.GateMetric) {
		of.Variant = ""
		if !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	for _, gate := range e.Gates {
		for _, of := range gate.Metrics {
			add(of)
		}
	}
	prepared := preparing(e.Runs)
	for _, variant := range e.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if results.IsPrimary(metric.Name) && !prepared[phase.Name] {
					add(results.GateMetric{Phase: phase.Name, Metric: metric.Name})
				}
			}
		}
	}
	return all
}

// preparing returns the phases that only prepare the data that others measure.
func preparing(runs []results.RunResult) map[string]bool {
	phases := map[string]bool{}
	for _, run := range runs {
		for _, phase := range run.Phases {
			phases[phase.Name] = phase.Kind != results.KindMeasure
		}
	}
	return phases
}

// heat shows the medians of a matrix as a grid: the two paths with most values are its sides, and further ones make further grids.
type heat struct {
	figures
	experiment results.Experiment
}

func newHeat(e results.Experiment) room { return &heat{figuresOf(e), e} }

func (*heat) add(seen) {}

func (h *heat) pictures() []report.Picture {
	all := dimensions(h.experiment.Variants)
	if len(all) < 2 || len(all[0].values)*len(all[1].values) > maxCells {
		return nil
	}
	var drawn []report.Picture
	for _, of := range subjects(h.experiment) {
		if len(drawn) == maxHeats {
			break
		}
		if one, any := h.picture(of, all); any {
			drawn = append(drawn, one)
		}
	}
	return drawn
}

func (h *heat) picture(of results.GateMetric, all []dimension) (one report.Picture, any bool) {
	down, across := all[0], all[1]
	known, _ := results.LookupMetric(of.Metric)
	title := of.Phase + ": " + of.Metric + " by " + down.path + " and " + across.path
	grid := svg.Grid{ID: slug("heat-" + title), Title: title, Unit: unitOf(of.Metric), Down: down.path, Across: across.path, Rows: down.values,
		Columns: across.values, Best: "best median", Missing: "not measured"}
	var titles []string
	cells, left := 0, 0
	for _, variant := range h.experiment.Variants {
		row, column := slices.Index(down.values, variant.Matrix[down.path]), slices.Index(across.values, variant.Matrix[across.path])
		if row < 0 || column < 0 {
			continue
		}
		name := besides(variant, all, down.path, across.path)
		at := slices.Index(titles, name)
		if at < 0 && len(titles) == maxPanels {
			left++
			continue
		}
		if at < 0 {
			at, titles = len(titles), append(titles, name)
			grid.Panels = append(grid.Panels, emptyPanel(name, len(down.values), len(across.values)))
		}
		cell := &grid.Panels[at].Cells[row][column]
		switch metric := metricOf(variant, of.Phase, of.Metric); {
		case metric == nil:
			cell.State = max(cell.State, svg.CellMissing)
		case h.lacks(variant.Name, metric):
			cell.State, grid.Missing = max(cell.State, svg.CellMissing), "not measured in all valid runs"
		default:
			cell.State, cell.Value, any = svg.CellKnown, float64(metric.Median), true
		}
		cells++
	}
	if !any || cells*100 < leastFull*len(titles)*len(down.values)*len(across.values) {
		return one, false
	}
	markBest(&grid, known.Better)
	grid.Description = heatWords(grid)
	caption := "Medians of the valid runs; " + cmp.Or(betterWords(of.Metric), "stronger colour means more") + "."
	if known.Better == results.Higher || known.Better == results.Lower {
		caption += " Stronger colour means more. A median may be the best by chance."
	}
	if left > 0 {
		caption += fmt.Sprintf(" %d more combinations are in the table of numbers.", left)
	}
	return picture("numbers", of.Phase+"-"+of.Metric, title, caption, grid), true
}

func emptyPanel(title string, rows, columns int) svg.Panel {
	panel := svg.Panel{Title: title}
	for range rows {
		panel.Cells = append(panel.Cells, make([]svg.Cell, columns))
	}
	return panel
}

// markBest marks the cells with the best value, unless all cells have the same value.
func markBest(grid *svg.Grid, better results.Direction) {
	var values []float64
	eachCell(grid, func(cell *svg.Cell) { values = append(values, cell.Value) })
	if len(values) == 0 {
		return
	}
	least, most := slices.Min(values), slices.Max(values)
	best := most
	if better == results.Lower {
		best = least
	}
	if least == most || better != results.Lower && better != results.Higher {
		return
	}
	eachCell(grid, func(cell *svg.Cell) { cell.Best = cell.Value == best })
}

func eachCell(grid *svg.Grid, see func(*svg.Cell)) {
	for _, panel := range grid.Panels {
		for _, cells := range panel.Cells {
			for i := range cells {
				if cells[i].State == svg.CellKnown {
					see(&cells[i])
				}
			}
		}
	}
}

// heatWords lists the best cells first, and then all cells. What is cut for lack of room is in the tables of numbers.
func heatWords(grid svg.Grid) string {
	var best, rows []string
	for _, panel := range grid.Panels {
		for i, cells := range panel.Cells {
			var values []string
			for j, cell := range cells {
				if cell.State != svg.CellKnown {
					continue
				}
				value := grid.Unit.Format(cell.Value)
				values = append(values, grid.Columns[j]+" "+value)
				if cell.Best {
					best = append(best, strings.TrimPrefix(panel.Title+", ", ", ")+grid.Rows[i]+" with "+grid.Columns[j]+": "+value)
				}
			}
			rows = append(rows, strings.TrimPrefix(panel.Title+", ", ", ")+grid.Rows[i]+": "+strings.Join(values, ", "))
		}
	}
	words := "Medians by " + grid.Down + ", and in each by " + grid.Across + ". " + strings.Join(rows, "; ")
	if len(best) > 0 {
		words = "Best: " + strings.Join(best, "; ") + ". " + words
	}
	return words
}
