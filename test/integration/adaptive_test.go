package integration

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/test/sim"
)

const comparedVariants = `
variants: [{name: old}, {name: new, storageClass: {size: 65Mi}}]
phases: [{name: log, measure: {workload: {redo: {}}}}]
gates: [{name: no-worse, compare: {metric: log.writeBytesPerSecond, to: Variant, variant: old}}]
repetitions: 2
adaptive: {maxRepetitions: 6}
`

// slowerByAFifth makes the runs of the new variant slower by a fifth. It recognizes them by their larger volume.
func slowerByAFifth(request workload.Request, _ *corev1.Pod) sim.Script {
	rate := int64(100_000_000)
	if request.VolumeSizeBytes == 65<<20 {
		rate = 80_000_000
	}
	return sim.Script{Metrics: map[string]int64{"writeBytesPerSecond": rate}}
}

// TestAdaptive: two repetitions prove nothing, so more are made, and they decide.
func TestAdaptive(t *testing.T) {
	t.Parallel()
	l := start(t, slowerByAFifth)
	g := gomega.NewWithT(t)
	benchmark := l.finished(l.submit("bench", comparedVariants), v1alpha1.VerdictFailed)
	l.executedOnce(12)
	g.Expect(benchmark.Status.Progress.RunsTotal).To(gomega.Equal(int32(12)))
	comparison := benchmark.Status.Gates[0].Comparisons[0]
	g.Expect(comparison.Variant).To(gomega.Equal("new"))
	g.Expect(comparison.ChangePartsPerMillion).To(gomega.Equal(int64(-200000)))
	g.Expect(*comparison.LowPartsPerMillion).To(gomega.Equal(int64(-200000)))
	g.Expect(comparison.WorseProbabilityPartsPerMillion).To(gomega.Equal(int64(15625)))
	g.Expect(comparison.Runs).To(gomega.Equal(int32(6)))
	_, written := l.results(benchmark, benchmark.Status.Results.ConfigMap)
	g.Expect(written.Repetitions).To(gomega.Equal(int32(6)))
	g.Expect(written.Extended).To(gomega.BeFalse())
}

// TestAdaptiveBudget: if there is no time for more, the first repetitions decide.
func TestAdaptiveBudget(t *testing.T) {
	t.Parallel()
	l := start(t, slowerByAFifth)
	g := gomega.NewWithT(t)
	benchmark := l.finished(l.submit("bench", strings.Replace(comparedVariants, "6}", "6, budget: 1ms}", 1)), v1alpha1.VerdictInconclusive)
	l.executedOnce(4)
	g.Expect(benchmark.Status.Gates[0].Reason).To(gomega.Equal("TooFewRuns"))
}
