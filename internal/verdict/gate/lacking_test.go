package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
)

// TestRunsThatLack: a run that stalled has too few operations for a percentile. The gate must not pass because of the other runs.
func TestRunsThatLack(t *testing.T) {
	const tail = "aged-scan.readLatencyP999Nanoseconds"
	other := measured("old", tail, slices.Repeat([]int64{5_100_000, 5_000_000}, 4)...)
	for name, gate := range map[string]v1alpha1.Gate{
		"bound":      boundGate(tail, "", "10ms"),
		"expression": expression("phase('aged-scan').readLatencyP999Nanoseconds < 10000000.0"),
		"compare":    compareGate(tail, "Variant", "old"),
		"ratio":      ratioGate(tail, "", "old", "", "2x"),
	} {
		t.Run(name, func(t *testing.T) {
			for stalled, want := range map[int]v1alpha1.Verdict{0: passed, 1: inconclusive, 2: inconclusive} {
				values := slices.Repeat([]int64{5_000_000, 5_100_000}, 4)
				for i := range stalled {
					values[2+i] = -1
				}
				evidence := evidenceOf(measured("new", tail, values...), other)
				got := judgeOnly(t, evidence, []v1alpha1.Gate{gate}, "new", "old")[0]
				if got.Verdict != want || stalled > 0 && (got.Reason != ReasonNoData || !strings.Contains(got.Message, "was not measured in repetition")) {
					t.Errorf("%d runs stalled: %s, %s: %s", stalled, got.Verdict, got.Reason, got.Message)
				}
			}
		})
	}
}

// TestLargeResultsSayWhatTheyLack: runs whose values did not fit into the results are not runs in which nothing was measured.
func TestLargeResultsSayWhatTheyLack(t *testing.T) {
	const metric = "readBytesPerSecond"
	for name, test := range map[string]struct {
		stalled bool
		says    string
	}{
		"all runs have it": {false, "the results have 0 of its 3 runs"},
		"one run stalled":  {true, "p.readBytesPerSecond of variant v was not measured in all repetitions, and the other runs cannot replace it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			e := acrossOf(metric, 1e6, 1e6, 1e6)
			if test.stalled {
				e.Runs = append(e.Runs, e.Runs[0])
			}
			for i := range e.Runs {
				e.Runs[i].Phases = nil // as in results that would be too large
			}
			_, unknown := Across(e, e, "v", "p", metric)
			g.Expect(unknown).To(gomega.ContainSubstring(test.says))
		})
	}
}

// TestRoundedNumbers: rates of a few operations a second and bytes of a transaction are whole numbers, and the fragmentation of free space
// is in whole percents. Rounding must not decide.
func TestRoundedNumbers(t *testing.T) {
	const rate, percents, bytes = "readOperationsPerSecond", "freeSpaceFragmentationPartsPerMillion", "diskReadBytesPerTransaction"
	for name, test := range map[string]struct {
		metric      string
		aged, fresh int64
		verdict     v1alpha1.Verdict
		reason      string
	}{
		"3 of 3 may be 72%":         {rate, 3, 3, inconclusive, ReasonTooCoarse},
		"300 of 300 is 99%":         {rate, 300, 300, passed, ReasonHolds},
		"1 of 3 is at most 60%":     {rate, 1, 3, failed, ReasonBelowMinimum},
		"0 of 3 is at most a fifth": {rate, 0, 3, failed, ReasonBelowMinimum},
		"3% of 3% may be 72%":       {percents, 30_000, 30_000, inconclusive, ReasonTooCoarse},
		"30% of 30% is 97%":         {percents, 300_000, 300_000, passed, ReasonHolds},
		"1% of 3% is at most 60%":   {percents, 10_000, 30_000, failed, ReasonBelowMinimum},
		"1 byte of 2 may be all":    {bytes, 1, 2, inconclusive, ReasonTooCoarse},
		"1 kB of 2 is half":         {bytes, 1000, 2000, failed, ReasonBelowMinimum},
	} {
		t.Run(name, func(t *testing.T) {
			aged, fresh := "aged-scan."+test.metric, "fresh-scan."+test.metric
			runs := measured("default", aged, slices.Repeat([]int64{test.aged}, 6)...)
			others := measured("default", fresh, slices.Repeat([]int64{test.fresh}, 6)...)
			for i := range runs {
				runs[i].Phases = append(runs[i].Phases, others[i].Phases...)
			}
			got := judgeOnly(t, evidenceOf(runs), []v1alpha1.Gate{ratioGate(aged, fresh, "", "80%", "")}, "default")[0]
			if got.Verdict != test.verdict || got.Reason != test.reason {
				t.Errorf("%s, %s: %s", got.Verdict, got.Reason, got.Message)
			}
		})
	}
}

// TestSharesOfNodes: the certainty of the share of the worst node depends on the operations of one node, not of all nodes.
func TestSharesOfNodes(t *testing.T) {
	of, is := countOf(reference{"v", "redo", "busy.shareOver10MillisecondsPartsPerMillion"})
	metric, _ := results.LookupMetric(of.metric)
	if !is || of.metric != "busy.writeLatency.count" || metric.Across() != results.AcrossMin {
		t.Error(of, metric)
	}
}
