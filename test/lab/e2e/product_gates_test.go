package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/lab"
)

// gatedIOPS is the limit of the disk that gates judge: an emulated machine reaches it with ease.
const gatedIOPS = 300

// writes measures what the limit applies to. It needs no existing data.
const writes = `
target: {storageClass: {name: ` + lab.BlockClass + `, volumeMode: Block, size: 64Mi}}
phases:
- name: writes
  measure:
    workload:
      fio:
        jobFile: |
          [writes]
          rw=randwrite
          bs=4k
          direct=1
          numjobs=2
          norandommap
          time_based
          ramp_time=2s
          runtime=6s
podTemplate: {nodeSelector: {kubernetes.io/hostname: %s}}
`

// TestVerdicts lets gates judge disks whose truth is known. Statistics need repetitions, so it is a bench.
func TestVerdicts(t *testing.T) {
	onlyAsBench(t, "verdicts")
	installOperator(t)
	for _, known := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"slower disk", slowerDisk},
		{"same things", sameThings},
		{"degrading disk", degrading},
	} {
		part(t, known.name, known.test)
	}
}

// sameThings: twenty gates, one at a time, compare four equal variants with each other, and none may be Failed.
func sameThings(t *testing.T) {
	needsBlockVolume(t, gatedIOPS, 10<<20)
	s := newSpace(t, levelRestricted)
	benchmark := s.concluded("same", fmt.Sprintf(writes, nodes[0])+`
variants: [{name: a}, {name: b, storageClass: {size: 65Mi}}, {name: c, storageClass: {size: 66Mi}}, {name: d, storageClass: {size: 67Mi}}]
`)
	fmt.Printf("%d runs of the same thing took %.0f s\n", len(s.experiment(benchmark).Runs),
		time.Since(benchmark.CreationTimestamp.Time).Seconds())
	for _, metric := range []string{"writeOperationsPerSecond", "writeLatencyMeanNanoseconds"} {
		fmt.Printf("same thing, %s: %v\n", metric, valuesOf(s.experiment(benchmark), "writes", metric))
	}
	verdicts := map[v1alpha1.Verdict]int{}
	for _, rival := range []v1alpha1.VariantParts{"a", "b", "c", "d"} {
		for _, metric := range []string{"writeOperationsPerSecond", "writeBytesPerSecond", "writeLatencyMeanNanoseconds",
			"writeLatencyP50Nanoseconds", "writeLatencyP99Nanoseconds"} {
			gate := s.judged(benchmark, v1alpha1.Gate{Name: "same", Compare: &v1alpha1.CompareGate{
				Metric: v1alpha1.MetricPath("writes." + metric), To: "Variant", Variant: rival}})
			verdicts[gate.Verdict]++
			if gate.Verdict == v1alpha1.VerdictFailed {
				t.Errorf("%s against %s is Failed: %s", metric, rival, gate.Message)
			}
		}
	}
	fmt.Printf("20 gates on the same thing: %v\n", verdicts)
	s.stop(benchmark)
}

// slowerDisk: against an accepted baseline, a disk that is slower by 3% is not Failed, and one that is slower by 10% is.
func slowerDisk(t *testing.T) {
	disk := needsBlockVolume(t, gatedIOPS, 10<<20)
	g, s := gomega.NewWithT(t), newSpace(t, levelRestricted)
	benchmark := s.concluded("slower", fmt.Sprintf(writes, nodes[0])+`
baseline: {configMap: {name: accepted}}
gates: [{name: no-slower, compare: {metric: writes.writeOperationsPerSecond, to: Baseline, acceptSingleDay: true}}]
`)
	g.Expect(benchmark.Status.Gates[0].Reason).To(gomega.Equal("BaselineMissing"))
	baseline, warnings, err := results.MakeBaseline(s.experiment(benchmark), results.AcceptOptions{AcceptedAt: time.Now()})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	text, err := baseline.Encode()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	fmt.Printf("accepted: %v, warnings %v\n", valuesOf(s.experiment(benchmark), "writes", "writeOperationsPerSecond"), warnings)
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "accepted",
		Labels: map[string]string{v1alpha1.LabelBenchmark: benchmark.Name}},
		Data: map[string]string{results.KeyBaseline: string(text)}})
	eventually(t, "the baseline is read, and not compared with itself", func(g gomega.Gomega) {
		g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		g.Expect(benchmark.Status.Gates[0].Message).To(gomega.ContainSubstring("only the numbers of this experiment"))
	})
	for _, step := range []struct {
		percent int64
		failed  bool
	}{{3, false}, {10, true}} {
		disk.IOPS = gatedIOPS * (100 - step.percent) / 100
		throttle(t, disk)
		before := benchmark.Status.Experiment
		s.change(benchmark, func() {
			benchmark.Annotations = map[string]string{v1alpha1.AnnotationRerun: fmt.Sprint(step.percent)}
		})
		eventually(t, "another experiment has begun", func(g gomega.Gomega) {
			g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
			g.Expect(benchmark.Status.Experiment).NotTo(gomega.Equal(before))
		})
		s.over(benchmark)
		gate := benchmark.Status.Gates[0]
		fmt.Printf("%d IOPS instead of %d: %s: %s\n%v\n", disk.IOPS, gatedIOPS, gate.Verdict, gate.Message,
			valuesOf(s.experiment(benchmark), "writes", "writeOperationsPerSecond"))
		if failed := gate.Verdict == v1alpha1.VerdictFailed; failed != step.failed {
			t.Errorf("slower by %d%%: %s %s: %s", step.percent, gate.Verdict, gate.Reason, gate.Message)
		}
	}
	s.stop(benchmark)
}

// concluded makes a benchmark with the default repetitions and order, and waits for its end.
func (s *space) concluded(name, spec string) *v1alpha1.StorageBenchmark {
	s.t.Helper()
	made := s.parsed(name, spec)
	s.create(made)
	s.over(made)
	return made
}

// judged changes the gates of a finished benchmark to this one, and waits until it is judged.
func (s *space) judged(benchmark *v1alpha1.StorageBenchmark, gate v1alpha1.Gate) (status v1alpha1.GateStatus) {
	s.t.Helper()
	s.change(benchmark, func() { benchmark.Spec.Gates = []v1alpha1.Gate{gate} })
	eventually(s.t, "the gate is judged", func(g gomega.Gomega) {
		g.Expect(cluster.Get(s.t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		g.Expect(benchmark.Status.ObservedGeneration).To(gomega.Equal(benchmark.Generation))
		g.Expect(benchmark.Status.Gates).To(gomega.HaveLen(1))
		status = benchmark.Status.Gates[0]
	})
	return status
}

// change patches a benchmark.
func (s *space) change(benchmark *v1alpha1.StorageBenchmark, do func()) {
	s.t.Helper()
	if err := cluster.Get(s.t.Context(), client.ObjectKeyFromObject(benchmark), benchmark); err != nil {
		s.t.Fatal(err)
	}
	before := benchmark.DeepCopy()
	do()
	if err := cluster.Patch(s.t.Context(), benchmark, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// valuesOf returns the values of all valid runs, in the order of execution.
func valuesOf(experiment results.Experiment, phase, metric string) (values []int64) {
	for _, run := range experiment.Runs {
		for _, measured := range run.Phases {
			if value, known := measured.Metrics[metric]; known && run.Valid && measured.Name == phase {
				values = append(values, value)
			}
		}
	}
	return values
}
