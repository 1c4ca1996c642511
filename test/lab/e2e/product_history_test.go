package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/verdict/history"
)

// goodExperiments come before the disk is made slower. The change must be found within allExperiments. A reference needs at least ten.
const goodExperiments, allExperiments = 11, 16

const declining = "writeOperationsPerSecond"

// degrading: a disk that is measured each minute becomes half as fast. The history says from which experiment on, and the gate fails.
func degrading(t *testing.T) {
	disk := needsBlockVolume(t, gatedIOPS, 10<<20)
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	benchmark := s.parsed("guard", fmt.Sprintf(writes, nodes[0])+`
repetitions: 1
schedule: {cron: "* * * * *"}
gates: [{name: no-decline, compare: {metric: writes.`+declining+`, to: History}}]
`)
	s.create(benchmark)
	last, throttled := "", time.Time{}
	var change *history.Change
	for change == nil {
		eventually(t, "the next experiment is over", func(g gomega.Gomega) {
			g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
			g.Expect(benchmark.Status.Gates).NotTo(gomega.BeEmpty())
			g.Expect(benchmark.Status.Experiment).NotTo(gomega.Equal(last))
			g.Expect(s.pointsOf(benchmark)).To(gomega.ContainElement(gomega.HaveField("Experiment", benchmark.Status.Experiment)))
		})
		last = benchmark.Status.Experiment
		series, gate := s.historyOf(benchmark), benchmark.Status.Gates[0]
		count := len(series.Points)
		fmt.Printf("experiment %d: %d writes a second: %s: %s\n", count, pointMedian(series.Points[count-1], declining), gate.Verdict,
			gate.Message)
		if gate.Verdict == v1alpha1.VerdictFailed {
			g.Expect(throttled).NotTo(gomega.BeZero(), "it was Failed before anything was slower")
			change = changeOf(t, series) // the gate fails by the sum of what is missing, which takes fewer experiments
		}
		if count >= goodExperiments && throttled.IsZero() {
			throttled, disk.IOPS = time.Now(), gatedIOPS/2
			throttle(t, disk)
		}
		g.Expect(count < allExperiments || change != nil).To(gomega.BeTrue(), "of %d experiments, the last is %s: %s", count, gate.Verdict,
			gate.Message)
	}
	fmt.Printf("the history says: %s\n", change)
	g.Expect(change.Worse).To(gomega.BeTrue())
	g.Expect(change.Since).To(gomega.BeTemporally(">", throttled), "it begins with the slower disk")
	s.change(benchmark, func() { benchmark.Spec.Schedule = nil })
	s.stop(benchmark)
}

// changeOf returns the newest change that the history knows, or nil if there is none.
func changeOf(t *testing.T, series *history.Series) *history.Change {
	t.Helper()
	changes, _, err := history.Changes(series, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(changes, func(c history.Change) bool { return c.Metric == declining })
	if at < 0 {
		return nil
	}
	return &changes[at]
}

func (s *space) historyOf(benchmark *v1alpha1.StorageBenchmark) *history.Series {
	var stored corev1.ConfigMap
	if err := cluster.Get(s.t.Context(), client.ObjectKey{Namespace: benchmark.Namespace, Name: naming.HistoryName(benchmark.Name)},
		&stored); err != nil {
		return &history.Series{}
	}
	series, err := history.Decode([]byte(stored.Data[history.Key]))
	if err != nil {
		s.t.Fatal(err)
	}
	return series
}

func (s *space) pointsOf(benchmark *v1alpha1.StorageBenchmark) []history.Point {
	return s.historyOf(benchmark).Points
}

// pointMedian returns the median of a metric in the one phase of an experiment; 0 if it was not measured.
func pointMedian(point history.Point, metric string) int64 {
	for _, one := range point.Metrics {
		if one.Metric == metric {
			return one.Median
		}
	}
	return 0
}
