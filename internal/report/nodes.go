package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

const nodesNote = "Each phase was executed on these nodes at once. The numbers above combine all nodes: sums of rates and amounts, and " +
	"the times and shares of the worst node."

// nodesSection compares the nodes of groups, to find slow and late ones.
func nodesSection(e results.Experiment) *section {
	nodes := nodesOf(e.Groups)
	t := table{Head: []string{"Variant", "Phase", "Metric"}}
	byNode := map[string][]results.VariantResult{}
	for _, node := range nodes {
		t.Head = append(t.Head, plain(node, maxNameBytes))
		byNode[node] = results.Summarise(runsOn(e.Runs, node))
	}
	t.Head = append(t.Head, "Slowest/fastest")
	if len(nodes) > 0 {
		for of := range eachPrimary(e.Variants) {
			t.add(append([]tableCell{named(of.variant), named(of.phase), named(of.metric)}, nodeCells(byNode, nodes, of)...)...)
		}
	}
	return newSection("Nodes", 12<<10).
		table(t, nodesNote+" Here are the medians of each node; the last column is the slowest node as a part of the fastest.").
		table(stragglersTable(e), "### Stragglers", "These nodes were not in step with the others, so for some time fewer nodes were active "+
			"than requested.")
}

// nodes has one row for each node, so that any number of nodes fits on the page.
func (m *maker) nodes() pageSection {
	e := m.Experiment
	if len(e.Groups) == 0 {
		return pageSection{}
	}
	t := wideTable("Medians of each node", "Metric", "Phase", "Variant", "Node")
	for _, node := range nodesOf(e.Groups) {
		for of, metric := range eachPrimary(results.Summarise(runsOn(e.Runs, node))) {
			t.addFigures(metric, of.metric, of.phase, of.variant, node)
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b []tableCell) int {
		return cmp.Or(strings.Compare(a[2].Text, b[2].Text), strings.Compare(a[1].Text, b[1].Text), strings.Compare(a[0].Text, b[0].Text))
	})
	return pageSection{Notes: []string{nodesNote}, After: m.tables(t, stragglersTable(e))}
}

// nodesOf returns the nodes of the groups, in the order in which they appear.
func nodesOf(groups []results.GroupResult) []string {
	var nodes []string
	for _, group := range groups {
		for _, node := range group.Nodes {
			if !slices.Contains(nodes, node) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// runsOn returns the valid runs on a node, without their groups, so that each run counts by itself.
func runsOn(runs []results.RunResult, node string) []results.RunResult {
	var those []results.RunResult
	for _, run := range runs {
		if run.NodeName == node && run.Valid {
			run.Group = nil
			those = append(those, run)
		}
	}
	return those
}

// nodeCells returns the medians of the nodes, and the ratio of the slowest to the fastest.
func nodeCells(byNode map[string][]results.VariantResult, nodes []string, of source) []tableCell {
	var cells []tableCell
	var medians []int64
	for _, node := range nodes {
		cell := figure("-")
		for _, variant := range byNode[node] {
			if found, ok := find(variant, of.phase, of.metric); ok && variant.Name == of.variant {
				cell, medians = median(found), append(medians, found.Median)
			}
		}
		cells = append(cells, cell)
	}
	spread := "-"
	if len(medians) > 1 && slices.Max(medians) > 0 {
		spread = fmt.Sprintf("%.0f%%", 100*float64(slices.Min(medians))/float64(slices.Max(medians)))
	}
	return append(cells, figure(spread))
}

// stragglersTable lists the phases that nodes started or finished late.
func stragglersTable(e results.Experiment) table {
	t := table{Caption: "Stragglers", Head: []string{"Group", "Phase", "What"}}
	for _, group := range e.Groups {
		for _, phase := range group.Phases {
			for _, straggler := range phase.Stragglers {
				t.add(named(group.Name), named(phase.Name), words(straggler))
			}
		}
	}
	return t
}
