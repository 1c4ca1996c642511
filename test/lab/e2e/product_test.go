package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/test/lab/vm"
)

// benchmarkPatience is how long two runs of a benchmark may take: each of their pods takes long to start.
const benchmarkPatience = 4 * patience

// benchmark creates a StorageBenchmark on the first node. The text is its spec.
func (s *space) benchmark(name, spec string) *v1alpha1.StorageBenchmark {
	s.t.Helper()
	made := s.parsed(name, spec)
	made.Spec.Repetitions, made.Spec.MaxAttempts = 1, max(made.Spec.MaxAttempts, 1)
	made.Spec.PodTemplate.NodeSelector = map[string]string{corev1.LabelHostname: nodes[0]}
	s.create(made)
	return made
}

// parsed returns a StorageBenchmark with that spec.
func (s *space) parsed(name, spec string) *v1alpha1.StorageBenchmark {
	s.t.Helper()
	parsed := &v1alpha1.StorageBenchmark{}
	if err := yaml.UnmarshalStrict([]byte(spec), &parsed.Spec); err != nil {
		s.t.Fatal(err)
	}
	parsed.Name = name
	return parsed
}

// ended waits for the verdict on a benchmark. It checks the verdict, and everything else that reports it.
func (s *space) ended(benchmark *v1alpha1.StorageBenchmark, verdict v1alpha1.Verdict) outcome {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	s.over(benchmark)
	passed := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionPassed)
	g.Expect(passed).NotTo(gomega.BeNil())
	o := s.outcome(benchmark)
	g.Expect(benchmark.Status.Verdict).To(gomega.Equal(verdict), "%s %+v", passed.Message, o.experiment.Runs)
	status := map[v1alpha1.Verdict]string{v1alpha1.VerdictPassed: "True", v1alpha1.VerdictFailed: "False"}[verdict]
	if status == "" {
		status = "Unknown"
	}
	g.Expect(string(passed.Status)).To(gomega.Equal(status), passed.Message)
	g.Expect(benchmark.Status.NodeName).To(gomega.Equal(nodes[0]))
	image := runnerImage
	if slices.ContainsFunc(benchmark.Spec.Phases, func(phase v1alpha1.Phase) bool {
		return phase.Measure != nil && phase.Measure.Workload.Postgres != nil
	}) {
		image = postgresImage
	}
	g.Expect(benchmark.Status.RunnerImage).To(gomega.Equal(image))
	state := results.StateComplete
	if verdict == v1alpha1.VerdictInvalid {
		state = results.StateIncomplete // the only run was given up
	}
	g.Expect(o.experiment.State).To(gomega.Equal(state))
	g.Expect(o.experiment.Verdict).To(gomega.Equal(string(verdict)))
	g.Expect(o.report).To(gomega.HavePrefix(fmt.Sprintf("# %s/%s: %s\n", s.name, benchmark.Name, verdict)))
	fmt.Printf("benchmark %s: %s %.0f s after it was made: %s\n", benchmark.Name, verdict,
		time.Since(benchmark.CreationTimestamp.Time).Seconds(), passed.Message)
	return o
}

// over waits until a benchmark has ended.
func (s *space) over(benchmark *v1alpha1.StorageBenchmark) {
	s.t.Helper()
	gomega.NewWithT(s.t).Eventually(func(g gomega.Gomega) {
		g.Expect(cluster.Get(s.t.Context(), client.ObjectKeyFromObject(benchmark), benchmark)).To(gomega.Succeed())
		if stalled := meta.FindStatusCondition(benchmark.Status.Conditions, v1alpha1.ConditionStalled); stalled != nil {
			gomega.StopTrying(stalled.Reason + ": " + stalled.Message).Now()
		}
		g.Expect(meta.IsStatusConditionTrue(benchmark.Status.Conditions, v1alpha1.ConditionComplete)).To(gomega.BeTrue(), "%v",
			benchmark.Status.Conditions)
	}).WithTimeout(time.Duration(max(1, len(benchmark.Spec.Variants)/2))*benchmarkPatience).WithPolling(polling).Should(gomega.Succeed(),
		"benchmark "+benchmark.Name+" is complete")
}

// completed waits for the results of a benchmark whose runs have all completed.
func (s *space) completed(benchmark *v1alpha1.StorageBenchmark) results.Experiment {
	s.t.Helper()
	s.over(benchmark)
	experiment := s.experiment(benchmark)
	gomega.NewWithT(s.t).Expect(experiment.State).To(gomega.Equal(results.StateComplete), experiment.Message)
	return experiment
}

// outcome is what a benchmark of one run leaves in ConfigMaps.
type outcome struct {
	experiment    results.Experiment
	report, junit string
	documents     map[string]results.PhaseDocument // by phase
}

// keepReport saves a report for people, because a benchmark is deleted with its test.
func keepReport(t *testing.T, name, report string) {
	t.Helper()
	const folder = "../../../dist/e2e-reports"
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
}

// outcome reads all results of a benchmark, and checks that they are complete and agree with each other.
func (s *space) outcome(benchmark *v1alpha1.StorageBenchmark) outcome {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	o := outcome{experiment: s.experiment(benchmark), documents: map[string]results.PhaseDocument{}}
	stored := s.configMap(benchmark.Status.Results.ConfigMap)
	o.report, o.junit = stored.Data["report.md"], stored.Data["junit.xml"]
	keepReport(s.t, benchmark.Name, o.report)
	g.Expect(o.experiment.Benchmark).To(gomega.Equal(results.RunIdentity{Namespace: s.name, Name: benchmark.Name, UID: string(benchmark.UID)}))
	g.Expect(o.experiment.Runs).To(gomega.HaveLen(1), "one repetition, one attempt")
	told := o.experiment.Runs[0]
	run := &v1alpha1.BenchmarkRun{}
	g.Expect(cluster.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: told.Name}, run)).To(gomega.Succeed())
	g.Expect(told.UID).To(gomega.Equal(string(run.UID)))
	g.Expect(told.Phases).To(gomega.HaveLen(len(run.Status.Phases)))
	for i, phase := range told.Phases {
		stored := s.configMap(phase.ConfigMap)
		document, err := results.LoadPhase(stored.Data, stored.BinaryData) // compares the digest
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(stored.Data).NotTo(gomega.HaveKey(results.KeyOmitted))
		g.Expect(stored.Data[results.KeyDigest]).To(gomega.Equal(phase.Digest))
		g.Expect(run.Status.Phases[i].Digest).To(gomega.Equal(phase.Digest))
		g.Expect(document.Run).To(gomega.Equal(results.RunIdentity{Namespace: s.name, Name: run.Name, UID: string(run.UID)}))
		g.Expect(document.Phase).To(gomega.Equal(phase.Name))
		g.Expect(document.Outcome).To(gomega.Equal(phase.Outcome))
		g.Expect(document.Metrics).To(gomega.Equal(phase.Metrics))
		o.documents[phase.Name] = document
	}
	return o
}

// experiment returns a benchmark's results.json.
func (s *space) experiment(benchmark *v1alpha1.StorageBenchmark) (experiment results.Experiment) {
	s.t.Helper()
	g := gomega.NewWithT(s.t)
	g.Expect(benchmark.Status.Results).NotTo(gomega.BeNil())
	g.Expect(json.Unmarshal([]byte(s.configMap(benchmark.Status.Results.ConfigMap).Data["results.json"]), &experiment)).To(gomega.Succeed())
	return experiment
}

func (s *space) configMap(name string) *corev1.ConfigMap {
	s.t.Helper()
	found := &corev1.ConfigMap{}
	if err := cluster.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: name}, found); err != nil {
		s.t.Fatalf("results: %v", err)
	}
	return found
}

// settled lists the objects in the cluster, once a new namespace has the objects that every namespace gets.
func (s *space) settled() []string {
	s.t.Helper()
	var found []string
	eventually(s.t, "namespace "+s.name+" is furnished", func(g gomega.Gomega) {
		var err error
		found, err = inventory(s.t.Context())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(found).To(gomega.ContainElements("configmaps "+s.name+"/kube-root-ca.crt", "serviceaccounts "+s.name+"/default"))
	})
	return found
}

// leavesNothing deletes benchmarks and waits until the cluster has no objects that it did not have before them: no runs, Jobs, pods,
// claims, volumes, Leases, ConfigMaps. The manager's own pod may be another one, and its Lease is made once it leads.
func (s *space) leavesNothing(before []string, benchmarks ...*v1alpha1.StorageBenchmark) {
	s.t.Helper()
	started := time.Now()
	for _, benchmark := range benchmarks {
		s.stop(benchmark)
	}
	eventually(s.t, "nothing is left of the benchmark", func(g gomega.Gomega) {
		now, err := inventory(s.t.Context())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		var left []string
		for _, one := range without(now, before) {
			if !strings.HasPrefix(one, "pods "+systemNamespace+"/") && one != managerLease {
				left = append(left, one)
			}
		}
		g.Expect(left).To(gomega.BeEmpty())
	})
	fmt.Printf("nothing is left of %d benchmarks %.0f s after they were deleted\n", len(benchmarks), time.Since(started).Seconds())
}

// working waits until the pod of a phase is in the middle of its work: it reports at least this percentage.
func (s *space) working(benchmark *v1alpha1.StorageBenchmark, phase string, percent int) *corev1.Pod {
	s.t.Helper()
	found := &corev1.Pod{}
	gomega.NewWithT(s.t).Eventually(func(g gomega.Gomega) {
		pods := s.phasePods(benchmark, phase)
		g.Expect(pods).To(gomega.HaveLen(1))
		*found = pods[0]
		if found.Status.Phase == corev1.PodSucceeded || found.Status.Phase == corev1.PodFailed {
			gomega.StopTrying("phase " + phase + " has ended already: make it longer").Now()
		}
		log, err := clients.CoreV1().Pods(s.name).GetLogs(found.Name, &corev1.PodLogOptions{}).DoRaw(s.t.Context())
		g.Expect(err).NotTo(gomega.HaveOccurred())
		g.Expect(progressIn(string(log))).To(gomega.BeNumerically(">=", percent))
	}).WithTimeout(benchmarkPatience).WithPolling(polling).Should(gomega.Succeed(), "phase "+phase+" is at work")
	return found
}

// progressIn returns the last percentage that a runner's log reports.
func progressIn(log string) int {
	percent := 0
	for line := range strings.Lines(log) {
		_, text, is := strings.Cut(line, "storagebench-progress ")
		var progress struct {
			Percent int `json:"percent"`
		}
		if is && json.Unmarshal([]byte(text), &progress) == nil {
			percent = progress.Percent
		}
	}
	return percent
}

func (s *space) phasePods(benchmark *v1alpha1.StorageBenchmark, phase string) []corev1.Pod {
	var pods corev1.PodList
	labels := client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(benchmark.UID), v1alpha1.LabelPhase: phase}
	if err := cluster.List(s.t.Context(), &pods, client.InNamespace(s.name), labels); err != nil && !errors.Is(err, context.Canceled) {
		s.t.Fatal(err)
	}
	return pods.Items
}

// jobs returns the Jobs of a benchmark that keeps them (retain: Always).
func (s *space) jobs(benchmark *v1alpha1.StorageBenchmark) []batchv1.Job {
	s.t.Helper()
	var jobs batchv1.JobList
	if err := cluster.List(s.t.Context(), &jobs, client.InNamespace(s.name),
		client.MatchingLabels{v1alpha1.LabelBenchmarkUID: string(benchmark.UID)}); err != nil {
		s.t.Fatal(err)
	}
	return jobs.Items
}

// needsBlockVolume changes the limits of the disk behind the block volume of the first node until the end of the test, and returns the
// disk. If the test breaks the disk, it is also restored then.
func needsBlockVolume(t *testing.T, iops, bytesPerSecond int64) vm.Disk {
	t.Helper()
	if len(made.Volumes) == 0 {
		t.Skip("this lab has no block volumes: make one with at least 1 ('make lab-up LAB=other LAB_FLAGS=\"--volumes 1\"')")
	}
	disk := made.Volumes[0]
	t.Cleanup(func() {
		ctx, cancel := afterwards(t)
		defer cancel()
		if err := restoreDisk(ctx, nodes[0], disk); err != nil {
			t.Error(err)
		}
	})
	limited := disk
	limited.IOPS, limited.BytesPerSecond = iops, bytesPerSecond
	throttle(t, limited)
	return limited
}

// throttle gives a disk of the first node its limits.
func throttle(t *testing.T, disk vm.Disk) {
	t.Helper()
	if err := theLab.Disk(t.Context(), nodes[0], disk.Name, "throttle", disk.IOPS, disk.BytesPerSecond); err != nil {
		t.Fatalf("limit disk %s of node %s: %v", disk.Name, nodes[0], err)
	}
}
