package qualify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// ofNodes makes an experiment of three repetitions on several nodes from the figures of one node, as the manager joins them.
func ofNodes(nodes int32, figures map[string]map[string]int64) results.Experiment {
	var runs []results.RunResult
	for repetition := int32(1); repetition <= 3; repetition++ {
		for node := range nodes {
			run := results.RunResult{Name: fmt.Sprintf("r%d-%d", repetition, node), Variant: "default", Index: repetition - 1,
				Repetition: repetition, Attempt: 1, Valid: true, NodeName: fmt.Sprintf("node-%d", node),
				Group: &results.RunGroup{Name: fmt.Sprintf("r%d", repetition), Index: node, Size: nodes}}
			for name, metrics := range figures {
				run.Phases = append(run.Phases, results.RunPhase{Name: name, Kind: "measure", Outcome: results.OutcomeValid, Metrics: metrics})
			}
			runs = append(runs, run)
		}
	}
	return results.Experiment{State: results.StateComplete, Runs: runs, Groups: results.Join(runs),
		Variants: results.Summarise(runs)}
}

// TestSeveralNodes: limits for one node say nothing good about sums.
func TestSeveralNodes(t *testing.T) {
	// Each of these nodes is at most a Warning by itself; four of them together would be Good.
	slow := func() map[string]map[string]int64 {
		figures := good()
		figures["scan"][rate], figures["aged-scan"][rate] = 55<<20, 55<<20
		figures["read-16"][reads], figures["read-1"][reads] = 900, 100
		figures["postgres"][tps] = 250
		return figures
	}
	left := []string{"Full scan", "Random reads for each of 16 workers", "Random reads of 16 workers", "PostgreSQL transactions of 8 clients",
		"PostgreSQL latency", "Scans after ageing", "Reads and updates after ageing", "Commits, full against empty", "16 workers against one",
		"Runs are alike"}
	for name, test := range map[string]struct {
		nodes  int32
		change func(map[string]map[string]int64)
		want   map[string]Level
		// without are the findings that must be absent.
		without []string
	}{
		"one node": {1, nil, map[string]Level{"Full scan": Warning, "Random reads for each of 16 workers": Warning,
			"PostgreSQL transactions of 8 clients": Warning}, []string{"Figures of several nodes"}},
		"four": {4, nil, map[string]Level{"Figures of several nodes": Unknown, "Commits on the empty volume": Good}, left},
		"bad even together": {4, func(f map[string]map[string]int64) { f["scan"][rate] = 12 << 20 },
			map[string]Level{"Figures of several nodes": Unknown, "Full scan": Bad}, []string{"Scans after ageing"}},
		"bad latency": {4, func(f map[string]map[string]int64) { f["redo-full"][appendP99] = 20e6 },
			map[string]Level{"Commits on the full, aged volume": Bad}, left},
	} {
		figures := slow()
		if test.change != nil {
			test.change(figures)
		}
		whole := ofNodes(test.nodes, figures)
		withoutGroups := whole
		withoutGroups.Groups = nil // as in files of other programs
		for _, e := range []results.Experiment{whole, withoutGroups} {
			card, levels := CardOf("x", nil, e), map[string]Level{}
			for _, f := range card.Findings {
				levels[f.About] = f.Level
			}
			for about, want := range test.want {
				if levels[about] != want {
					t.Errorf("%s: %s: %q, want %s\n%s", name, about, levels[about], want, card.Text())
				}
			}
			for _, about := range test.without {
				if level, has := levels[about]; has {
					t.Errorf("%s: %s is %s", name, about, level)
				}
			}
			if says := fmt.Sprintf("%d nodes at the same time", test.nodes); strings.Contains(card.Text(), says) != (test.nodes > 1) {
				t.Errorf("%s: %s", name, card.Text())
			}
		}
	}
}

// TestMeasuresOneNode: a StorageTarget of several nodes is refused before it is measured.
func TestMeasuresOneNode(t *testing.T) {
	zfs := func(count int32) v1alpha1.Target {
		return v1alpha1.Target{ZFS: &v1alpha1.ZFSTarget{Nodes: v1alpha1.NodeChoice{Count: count}}}
	}
	for name, test := range map[string]struct {
		target v1alpha1.Target
		says   string
	}{
		"class":      {v1alpha1.Target{StorageClass: &v1alpha1.StorageClassTarget{Name: "fast"}}, ""},
		"no count":   {zfs(0), ""},
		"one":        {zfs(1), ""},
		"four nodes": {zfs(4), "StorageTarget hdd has zfs.nodes.count: 4"},
	} {
		err := suiteOf("target/hdd").Measures(test.target)
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
