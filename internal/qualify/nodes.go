package qualify

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// oneNode says what to do instead of measuring several nodes at once.
const oneNode = "use a StorageTarget with nodes.count: 1; to compare nodes, use sweep"

// Measures refuses a StorageTarget with several nodes: the limits are for one node, and the figures would be sums.
func (s Suite) Measures(target v1alpha1.Target) error {
	if target.ZFS == nil || target.ZFS.Nodes.Count < 2 {
		return nil
	}
	return fmt.Errorf("%s has zfs.nodes.count: %d, but the limits of qualify are for one node: %s", s.Subject(), target.ZFS.Nodes.Count,
		oneNode)
}

// nodesOf returns how many nodes measured at the same time.
func nodesOf(e results.Experiment) int {
	nodes := 1
	for i := range e.Groups {
		nodes = max(nodes, len(e.Groups[i].Nodes))
	}
	for i := range e.Runs { // files may lack the groups
		if group := e.Runs[i].Group; group != nil {
			nodes = max(nodes, int(group.Size))
		}
	}
	return nodes
}

// severalNodes stands for all findings that limitOfOne and ratioOfOne leave out.
func severalNodes(facts Facts) []Finding {
	if facts.nodes < 2 {
		return nil
	}
	return []Finding{{Level: Unknown, About: "Figures of several nodes",
		Measured: fmt.Sprintf("%d nodes at the same time: rates are their sum, latencies those of the slowest, shares of memory their mean",
			facts.nodes),
		Means: "The limits for reads, scans and PostgreSQL are for one node. These figures can be bad, but do not show that a node is good.",
		Do:    "Measure one node: " + oneNode + "."}}
}

// limitOfOne applies a rule with limits for one node. If several nodes together are beyond the limit, or the slowest is, it is bad.
// Anything else is not known.
func limitOfOne(judge rule) rule {
	return func(facts Facts) []Finding {
		found := judge(facts)
		if facts.nodes < 2 {
			return found
		}
		found = slices.DeleteFunc(found, func(finding Finding) bool { return finding.Level != Bad })
		for i := range found {
			found[i].Measured += fmt.Sprintf("; %d nodes at the same time", facts.nodes)
		}
		return found
	}
}

// ratioOfOne applies a rule that compares rates, but not to sums: a slow node hides behind a fast one, and one whose reads came from memory
// behind the mean.
func ratioOfOne(judge rule) rule {
	return func(facts Facts) []Finding {
		if facts.nodes < 2 {
			return judge(facts)
		}
		return nil
	}
}
