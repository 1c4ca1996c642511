package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/results"
)

// nodesSection compares the nodes of groups, to find slow and late ones.
func nodesSection(e results.Experiment) *section {
	s := newSection("Nodes", nodesBytes)
	if len(e.Groups) == 0 {
		return s
	}
	nodes := nodesOf(e.Groups)
	shown := make([]string, 0, len(nodes))
	for _, node := range nodes {
		shown = append(shown, name(node))
	}
	s.uncounted("Each phase was executed on these nodes at once. The numbers above combine all nodes: sums of rates and amounts, " +
		"and the times and\nshares of the worst node. Here are the medians of each node; " +
		"the last column is the slowest node as a part of the fastest.\n")
	s.uncounted("| Variant | Phase | Metric | " + strings.Join(shown, " | ") + " | Slowest/fastest |\n|---|---|---|" + strings.Repeat("---|",
		len(nodes)+1))
	byNode := map[string][]results.VariantResult{}
	for _, node := range nodes {
		byNode[node] = results.Summarise(runsOn(e.Runs, node))
	}
	for _, variant := range e.Variants {
		for _, phase := range variant.Phases {
			for _, metric := range phase.Metrics {
				if results.IsPrimary(metric.Name) {
					s.row("| %s | %s | %s | %s |", name(variant.Name), name(phase.Name), name(metric.Name),
						nodeCells(byNode, nodes, variant.Name, phase.Name, metric.Name))
				}
			}
		}
	}
	s.uncounted("")
	s.stragglers(e.Groups)
	return s
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
func nodeCells(byNode map[string][]results.VariantResult, nodes []string, variant, phase, metric string) string {
	var cells []string
	var medians []int64
	for _, node := range nodes {
		at := slices.IndexFunc(byNode[node], func(one results.VariantResult) bool { return one.Name == variant })
		if at < 0 {
			cells = append(cells, "-")
			continue
		}
		found, ok := find(byNode[node][at], phase, metric)
		if !ok {
			cells = append(cells, "-")
			continue
		}
		of := scaleFor(found)
		cells, medians = append(cells, of.format(found.Median)+of.suffix), append(medians, found.Median)
	}
	spread := "-"
	if len(medians) > 1 && slices.Max(medians) > 0 {
		spread = fmt.Sprintf("%.0f%%", 100*float64(slices.Min(medians))/float64(slices.Max(medians)))
	}
	return strings.Join(append(cells, spread), " | ")
}

// stragglers lists the phases that nodes started or finished late.
func (s *section) stragglers(groups []results.GroupResult) {
	first := true
	for _, group := range groups {
		for _, phase := range group.Phases {
			if len(phase.Stragglers) == 0 {
				continue
			}
			if first {
				s.uncounted("### Stragglers\n\nThese nodes were not in step with the others, so for some time fewer nodes were active than " +
					"requested.\n\n| Group | Phase | What |\n|---|---|---|")
				first = false
			}
			s.row("| %s | %s | %s |", name(group.Name), name(phase.Name), cell(strings.Join(phase.Stragglers, "; ")))
		}
	}
}
