package results

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"
)

// TestLacks: the summary says whether a valid repetition has no value of a metric, even if the runs have no values.
func TestLacks(t *testing.T) {
	node := func(repetition int32, index int32, valid bool) RunResult {
		return RunResult{Variant: "v", Repetition: repetition, Valid: valid,
			Group: &RunGroup{Name: fmt.Sprint("group-", repetition), Index: index, Size: 2}}
	}
	alone := []RunResult{run(0, "v", true), run(1, "v", false), run(2, "w", true), run(3, "v", true), run(4, "v", true)}
	together := []RunResult{node(1, 0, true), node(1, 1, true), node(2, 0, true), node(2, 1, false)}
	for name, test := range map[string]struct {
		runs  []RunResult
		value int32
		want  bool
	}{
		"all valid runs":                 {alone, 3, false},
		"one run lacks it":               {alone, 2, true},
		"none has it":                    {alone, 0, true},
		"last runs did not fit":          {alone, 4, false},
		"the nodes of a repetition":      {together, 1, false},
		"a repetition of nodes lacks it": {together, 0, true},
		"no runs":                        {nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			g.Expect(Lacks(Repetitions(test.runs), "v", MetricResult{Runs: test.value})).To(gomega.Equal(test.want))
		})
	}
}
